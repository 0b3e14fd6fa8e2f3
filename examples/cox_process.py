"""A log-Gaussian Cox process for a map of redwood seedlings: where they grow, and how clustered.

The places of 195 seedlings in a plot of about 40 m by 40 m are counted on a grid. The log of
their intensity is a constant plus a Gaussian process; the constant, the length-scale and the
amplitude are sampled together with the process, exactly, by `pmpm.PseudoMarginalMH`.

Run it with ``python examples/cox_process.py``. It takes one to two minutes on two cores
(longer the first time, while PyMC compiles) and leaves a picture and the draws in a folder.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm

DATA = Path(__file__).parent / "data" / "redwoods.csv"
SIDE = 130 * 0.3048  # of the plot, in metres: Strauss's map is about 130 feet across

# Strauss's line between two kinds of soil, from edge to edge of the plot, in units of its side.
SOIL_BOUNDARY = ((0.1574, 1.0), (0.0, 0.9521))

HYPERPARAMETERS = {
    "mu": "mean log intensity µ",
    "eta": "amplitude η of the process",
    "ls": "length-scale (m)",
}

COLOUR = "#0072B2"


@dataclass(frozen=True)
class Grid:
    """The seedlings counted in the cells of a grid.

    Attributes
    ----------
    edges : array, shape (cells + 1,)
        Of the cells, the same along both sides, in metres.
    counts : array, shape (cells, cells)
        Seedlings in each cell; the first axis is x, the second y.
    """

    edges: np.ndarray
    counts: np.ndarray

    @property
    def centres(self) -> np.ndarray:
        """Middles of the cells in the order of `counts.ravel()`; shape (cells**2, 2)."""
        middle = (self.edges[:-1] + self.edges[1:]) / 2
        return np.column_stack(
            [axis.ravel() for axis in np.meshgrid(middle, middle, indexing="ij")]
        )

    @property
    def cell_area(self) -> float:
        """In units of 100 square metres."""
        return float(self.edges[1] - self.edges[0]) ** 2 / 100


def load_seedlings() -> np.ndarray:
    """Where the seedlings stand, in metres; shape (195, 2)."""
    return SIDE * pd.read_csv(DATA)[["x", "y"]].to_numpy(dtype=float)


def count_in_cells(seedlings: np.ndarray, cells: int) -> Grid:
    """The seedlings on a grid of `cells` by `cells`."""
    edges = np.linspace(0, SIDE, cells + 1)
    counts, _, _ = np.histogram2d(*seedlings.T, bins=(edges, edges))
    return Grid(edges, counts.astype(int))


def build_model(grid: Grid) -> pm.Model:
    """A log-Gaussian Cox process, its intensity taken as constant within a cell."""
    with pm.Model() as model:
        # The median intensity, per 100 square metres: from less than one to some hundred.
        mu = pm.Normal("mu", 2.0, 1.5)
        # One is a factor of e up or down, plenty for an intensity.
        eta = pm.HalfNormal("eta", 1.5)
        # Of a few metres: much shorter than a cell it could not be seen, nor longer than the plot.
        ls = pm.InverseGamma("ls", 5.0, 20.0)
        gp = pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.Matern52(2, ls=ls))
        f = gp.prior("f", X=grid.centres)
        pm.Poisson("counts", mu=grid.cell_area * pm.math.exp(mu + f), observed=grid.counts.ravel())
    return model


def report(idata) -> None:
    """Print the posterior of the hyper-parameters and how the sampler fared."""
    print(az.summary(idata, var_names=list(HYPERPARAMETERS)).to_string())
    statistics = idata["sample_stats"]
    print(
        f"Sampler: {float(statistics['pm_accepted'].mean()):.0%} of the proposals accepted, "
        f"median sd of the log weights {float(statistics['pm_log_weight_sd'].median()):.2f}, "
        f"{int(statistics['pm_failed'].sum())} numerical failures."
    )


def log_intensity(idata, grid: Grid) -> np.ndarray:
    """Draws of the log intensity per 100 square metres; shape (draws, cells, cells)."""
    posterior = idata["posterior"]
    mu, f = posterior["mu"].to_numpy(), posterior["f"].to_numpy()
    return (mu[..., None] + f).reshape(-1, *grid.counts.shape)


def draw_map(
    ax: Axes, grid: Grid, values: np.ndarray, label: str, *, line: str = "white", **style
) -> None:
    """A value for each cell, shape (cells, cells), with a colour bar and the soil boundary."""
    # pcolormesh takes rows for y; the first axis of the grid is x.
    image = ax.pcolormesh(grid.edges, grid.edges, values.T, **style)
    ax.plot(*SIDE * np.array(SOIL_BOUNDARY), color=line, ls="dashed", lw=1.5)
    ax.set(xlim=(0, SIDE), ylim=(0, SIDE), aspect="equal", xlabel="metres", ylabel="metres")
    ax.set(xticks=range(0, 40, 10), yticks=range(0, 40, 10))
    bar = ax.figure.colorbar(image, ax=ax, location="bottom", label=label, pad=0.02)
    if isinstance(image.norm, LogNorm):
        low, high = image.norm.vmin, image.norm.vmax
        ticks = [tick for tick in (2, 5, 10, 20, 50, 100) if low <= tick <= high]
        bar.set_ticks(ticks, labels=[str(tick) for tick in ticks])
        bar.minorticks_off()


def draw_marginal(ax: Axes, model: pm.Model, idata, name: str) -> None:
    """The posterior density of a hyper-parameter over its prior density."""
    draws = idata["posterior"][name].to_numpy().ravel()
    low, high = draws.min(), draws.max()
    margin = 0.3 * (high - low)
    grid = np.linspace(max(low - margin, 1e-3), high + margin, 300)
    # Successive draws are alike: the bandwidth is that for some hundred independent ones.
    posterior = gaussian_kde(draws, bw_method=0.3)(grid)
    prior = np.exp(pm.logp(model[name], grid).eval())
    ax.fill_between(grid, posterior, color=COLOUR, alpha=0.3, lw=0)
    ax.plot(grid, posterior, color=COLOUR, lw=1.8, label="posterior")
    ax.plot(grid, prior, color="0.3", ls="dashed", lw=1.3, label="prior")
    ax.set(xlim=grid[[0, -1]], ylim=(0, None), xlabel=HYPERPARAMETERS[name], yticks=[])


def plot_results(idata, model: pm.Model, grid: Grid, seedlings: np.ndarray) -> Figure:
    """Maps of the intensity and of its uncertainty, and the hyper-parameters beside them."""
    draws = log_intensity(idata, grid)
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    axes = figure.subplot_mosaic(
        [["mean", "sd", name] for name in HYPERPARAMETERS], width_ratios=(1.5, 1.5, 1)
    )
    mean = np.exp(draws).mean(axis=0)
    # The model is of the log of the intensity, and so are the colours.
    draw_map(axes["mean"], grid, mean, "seedlings per 100 m²", cmap="viridis", norm=LogNorm())
    axes["mean"].scatter(*seedlings.T, s=14, color="white", edgecolor="black", lw=0.7, zorder=3)
    axes["mean"].set_title("Posterior mean intensity, with the seedlings")
    sd = draws.std(axis=0)
    draw_map(
        axes["sd"], grid, sd, "posterior sd of the log intensity", line="black", cmap="cividis"
    )
    axes["sd"].set_title("Its uncertainty; dashed: border between soils")
    for name in HYPERPARAMETERS:
        draw_marginal(axes[name], model, idata, name)
    first = next(iter(HYPERPARAMETERS))
    axes[first].legend(frameon=False, fontsize="small")
    axes[first].set_title("Hyper-parameters")
    return figure


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=12, help="cells along each side of the plot")
    parser.add_argument("--draws", type=int, default=2000, help="draws per chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws per chain")
    parser.add_argument("--chains", type=int, default=4, help="number of chains")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument(
        "--quick", action="store_true", help="two chains of 60 draws, to see that it runs"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("cox_process_output"), help="folder for the results"
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.draws, options.tune, options.chains = 60, 60, 2
    return options


# Matrices of this size are factorised fastest by one thread: more get in each other's way.
@threadpool_limits.wrap(limits=1)
def main(arguments: Sequence[str] | None = None) -> None:
    """Count the seedlings on the grid, sample, and map the intensity."""
    options = parse_arguments(arguments)
    seedlings = load_seedlings()
    grid = count_in_cells(seedlings, options.cells)
    model = build_model(grid)
    print(pmpm.read_model(model))

    with model:
        idata = pm.sample(
            step=pmpm.PseudoMarginalMH(),
            draws=options.draws,
            tune=options.tune,
            chains=options.chains,
            cores=min(options.chains, os.cpu_count() or 1),
            random_seed=options.seed,
            progressbar=not options.quick,
        )
    report(idata)
    expected = grid.cell_area * np.exp(log_intensity(idata, grid)).sum(axis=(1, 2))
    print(
        f"Seedlings expected in the plot: {expected.mean():.0f} ± {expected.std():.0f}, "
        f"{len(seedlings)} were found."
    )

    options.output.mkdir(parents=True, exist_ok=True)
    figure = plot_results(idata, model, grid, seedlings)
    figure.savefig(options.output / "cox_process.png", dpi=110)
    idata.to_netcdf(options.output / "idata.nc")
    print(f"Saved cox_process.png and idata.nc in {options.output}.")


if __name__ == "__main__":
    main()
