"""Ordinal regression with a Gaussian process: the lungs of coal miners against years at the face.

Of 371 miners the years spent at the coal face are known, and whether an X-ray showed their lungs
as normal, mildly or severely diseased. A Gaussian process says how the risk grows with the
years; its length-scale and amplitude and the two cut-points between the three grades are
sampled together with it, exactly, by `pmpm.PseudoMarginalMH`.

Run it with ``python examples/ordinal_regression.py``. It takes one to two minutes on two cores
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
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from pymc.distributions.transforms import ordered
from scipy.stats import gaussian_kde, norm
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm

DATA = Path(__file__).parent / "data" / "coal_miners.csv"
GRADES = ("normal", "mild", "severe")
HYPERPARAMETERS = ("ls", "eta", "cutpoints")

# Okabe & Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#C44E00")
MARKERS = ("o", "s", "^")
AFTER_YEARS = (15.0, 30.0, 45.0)  # for which the risk of severe disease is reported
LINE_STYLES = ("dotted", "dashed", "solid")


@dataclass(frozen=True)
class Miners:
    """Miners in groups of equal exposure.

    Attributes
    ----------
    years : array, shape (8,)
        At the coal face, one value per group.
    counts : array, shape (8, 3)
        Miners of each group by grade.
    """

    years: np.ndarray
    counts: np.ndarray

    def one_by_one(self) -> tuple[np.ndarray, np.ndarray]:
        """The years and the grade of every miner; shape (371,) each."""
        groups, grades = np.indices(self.counts.shape).reshape(2, -1)
        miners = np.repeat(np.arange(self.counts.size), self.counts.ravel())
        return self.years[groups[miners]], grades[miners]


def load_miners() -> Miners:
    """The table of the data."""
    table = pd.read_csv(DATA)
    return Miners(table["years"].to_numpy(dtype=float), table[list(GRADES)].to_numpy(dtype=int))


def build_model(miners: Miners) -> pm.Model:
    """An ordered probit model with a latent value for each exposure, observed or not."""
    # The exposures of the miners, and those between and beyond them for the curves.
    years = np.union1d(miners.years, np.arange(5.0, 55.1, 1.25))
    logs = np.log(years)
    X = (logs - logs.mean()) / logs.std()
    miner_years, grade = miners.one_by_one()
    coords = {"years": years, "cut": ["normal | mild", "mild | severe"]}
    with pm.Model(coords=coords) as model:
        # In standard deviations of log years: the risk changes over a good part of their range.
        ls = pm.InverseGamma("ls", 5.0, 5.0)
        # In units of the probit's own noise: 2 goes from nearly all healthy to nearly all ill.
        eta = pm.HalfNormal("eta", 2.0)
        gp = pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ls=ls))
        f = gp.prior("f", X=X[:, None], dims="years")
        # f has mean zero and the probit noise variance one, so that both cut-points are free.
        cutpoints = pm.Normal("cutpoints", [-0.5, 0.5], 2.0, transform=ordered, dims="cut")
        pm.OrderedProbit(
            "grade",
            eta=f[np.searchsorted(years, miner_years)],
            cutpoints=cutpoints,
            compute_p=False,
            observed=grade,
        )
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


def grade_probabilities(idata) -> np.ndarray:
    """Draws of the probabilities of the grades at every exposure; shape (draws, years, 3)."""
    posterior = idata["posterior"]
    f, cutpoints = posterior["f"].to_numpy(), posterior["cutpoints"].to_numpy()
    at_most = norm.cdf(cutpoints[:, :, None, :] - f[..., None])  # a grade, but the last
    p = np.diff(at_most, prepend=0.0, append=1.0)
    return p.reshape(-1, *p.shape[2:])


def draw_curves(ax: Axes, years: np.ndarray, p: np.ndarray, miners: Miners) -> None:
    """Probability of each grade against exposure, with its band, over the observed shares."""
    shares = miners.counts / miners.counts.sum(axis=1, keepdims=True)
    for k, (grade, colour, marker) in enumerate(zip(GRADES, COLOURS, MARKERS, strict=True)):
        low, high = np.quantile(p[..., k], [0.05, 0.95], axis=0)
        ax.fill_between(years, low, high, color=colour, alpha=0.22, lw=0)
        ax.plot(years, p[..., k].mean(axis=0), color=colour, lw=2)
        ax.plot(
            miners.years,
            shares[:, k],
            linestyle="none",
            marker=marker,
            ms=8,
            color=colour,
            mec="white",
            label=grade,
            clip_on=False,  # the shares of none and of all lie on the frame
            zorder=3,
        )
    ax.set(xlim=(years[0], years[-1]), ylim=(0, 1))
    ax.set(xlabel="years at the coal face", ylabel="probability of the grade")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_title("Lungs of coal miners: posterior mean, 90% band, observed shares")
    ax.legend(loc="center left", frameon=False)


def draw_risks(ax: Axes, risks: dict[float, np.ndarray]) -> None:
    """Posterior densities of the risk of severe disease after some years."""
    grid = np.linspace(0, max(np.quantile(p, 0.999) for p in risks.values()), 400)
    for (years, p), style in zip(risks.items(), LINE_STYLES, strict=True):
        # Successive draws are alike: the bandwidth is that for some hundred independent ones.
        density = gaussian_kde(p, bw_method=0.3)(grid)
        ax.fill_between(grid, density, color=COLOURS[-1], alpha=0.12, lw=0)
        ax.plot(grid, density, color=COLOURS[-1], ls=style, lw=2, label=f"after {years:g} years")
    ax.set(xlim=(0, grid[-1]), ylim=(0, None), yticks=[])
    ax.set(xlabel="probability of severe disease", ylabel="posterior density")
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_title("Risk of severe disease")
    ax.legend(frameon=False)


def plot_results(years: np.ndarray, p: np.ndarray, risks: dict, miners: Miners) -> Figure:
    """The grades against exposure, and the risk of severe disease."""
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    curves, densities = figure.subplots(1, 2, width_ratios=(1.7, 1))
    draw_curves(curves, years, p, miners)
    draw_risks(densities, risks)
    return figure


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4000, help="draws per chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws per chain")
    parser.add_argument("--chains", type=int, default=4, help="number of chains")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument(
        "--quick", action="store_true", help="two chains of 60 draws, to see that it runs"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("ordinal_regression_output"),
        help="folder for the results",
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.draws, options.tune, options.chains = 60, 60, 2
    return options


# Matrices of this size are factorised fastest by one thread: more get in each other's way.
@threadpool_limits.wrap(limits=1)
def main(arguments: Sequence[str] | None = None) -> None:
    """Sample the model, and draw the risk against exposure."""
    options = parse_arguments(arguments)
    miners = load_miners()
    model = build_model(miners)
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

    years, p = idata["posterior"]["years"].to_numpy(), grade_probabilities(idata)
    risks = {after: p[:, years == after, -1].ravel() for after in AFTER_YEARS}
    for after, risk in risks.items():
        low, high = np.quantile(risk, [0.05, 0.95])
        print(
            f"Severe disease after {after:g} years: {risk.mean():.1%}, "
            f"90% interval {low:.1%} to {high:.1%}"
        )

    options.output.mkdir(parents=True, exist_ok=True)
    figure = plot_results(years, p, risks, miners)
    figure.savefig(options.output / "ordinal_regression.png", dpi=110)
    idata.to_netcdf(options.output / "idata.nc")
    print(f"Saved ordinal_regression.png and idata.nc in {options.output}.")


if __name__ == "__main__":
    main()
