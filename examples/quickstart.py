"""Gaussian-process classification of thyroid patients, from a plain PyMC model to pictures.

Two blood tests of 215 patients, and whether their thyroid is normal. A Gaussian process says
how the probability of an abnormal thyroid varies with the two tests; its length-scales and
its variance are sampled together with it, exactly, by `pmpm.PseudoMarginalMH`.

Run it with ``python examples/quickstart.py``. It takes one to two minutes on two cores (longer
the first time, while PyMC compiles) and leaves three pictures and the draws in a folder.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.interpolate import RectBivariateSpline
from scipy.stats import gaussian_kde
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm

FEATURES = {"thyroxin": "total serum thyroxin", "t3_resin_uptake": "T3-resin uptake (%)"}
CLASSES = ("normal", "abnormal")

# Okabe & Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#C44E00")
CHAIN_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
MARKERS = ("o", "^")


@dataclass(frozen=True)
class Patients:
    """Some of the patients.

    Attributes
    ----------
    features : array, shape (n, 2)
        In the units of the data.
    y : array, shape (n,)
        1 for an abnormal thyroid, 0 for a normal one.
    """

    features: np.ndarray
    y: np.ndarray


def load_patients(rng: np.random.Generator) -> tuple[Patients, Patients]:
    """Two thirds of the patients to learn from, and a third held out."""
    data = pmpm.datasets.load("thyroid", as_frame=True)
    features, y = data.X[list(FEATURES)].to_numpy(), data.y
    order = rng.permutation(len(y))
    held_out, training = np.split(order, [len(y) // 3])
    return Patients(features[training], y[training]), Patients(features[held_out], y[held_out])


def standardise(features: np.ndarray, training: Patients) -> np.ndarray:
    """Features with the mean and the standard deviation of the training patients taken out."""
    return (features - training.features.mean(axis=0)) / training.features.std(axis=0)


def build_model(training: Patients) -> tuple[pm.Model, pm.gp.Latent]:
    """A Gaussian-process probit model, written as for any other sampler of PyMC."""
    X = standardise(training.features, training)
    d = X.shape[1]
    with pm.Model(coords={"feature": list(FEATURES)}) as model:
        ls = pm.Gamma("ls", 1.0, 1 / np.sqrt(d), dims="feature")  # a length-scale per feature
        sigma = pm.Gamma("sigma", 1.2, 0.2)  # the prior variance of f
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(d, ls=ls))
        f = gp.prior("f", X=X)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=training.y)
    return model, gp


def report(idata) -> None:
    """Print the posterior of the hyper-parameters and how the sampler fared."""
    print(az.summary(idata, var_names=["ls", "sigma"]).to_string())
    statistics = idata["sample_stats"]
    print(
        f"Sampler: {float(statistics['pm_accepted'].mean()):.0%} of the proposals accepted, "
        f"mean sd of the log weights {float(statistics['pm_log_weight_sd'].mean()):.2f}, "
        f"{int(statistics['pm_failed'].sum())} numerical failures."
    )


def predict(idata, model: pm.Model, gp: pm.gp.Latent, X: np.ndarray, seed: int) -> np.ndarray:
    """p(abnormal) at the rows of X, theta and f integrated out; shape (len(X),).

    Every draw of (theta, f) gives one draw of f at the new points, and the mean of Phi of
    those is the probability. Successive draws are alike, so that a few hundred suffice.
    """
    posterior = idata["posterior"]
    thinning = max(1, posterior.sizes["chain"] * posterior.sizes["draw"] // 200)
    with model:
        f_new = gp.conditional("f_new", X)
        pm.Deterministic("p_new", pm.math.invprobit(f_new))
        predictions = pm.sample_posterior_predictive(
            idata.sel(draw=slice(None, None, thinning)),
            var_names=["p_new"],
            predictions=True,
            random_seed=seed,
            progressbar=False,
        )
    return predictions["predictions"]["p_new"].mean(dim=("chain", "draw")).to_numpy()


def make_grid(training: Patients, held_out: Patients, size: int = 20) -> list[np.ndarray]:
    """The two axes of a grid over all patients, with a margin; shape (size,) each."""
    features = np.vstack([training.features, held_out.features])
    low, high = features.min(axis=0), features.max(axis=0)
    margin = 0.05 * (high - low)
    low, high = np.maximum(low - margin, 0.0), high + margin
    return [np.linspace(a, b, size) for a, b in zip(low, high, strict=True)]


def roc_curve(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """False and true positive rates as the threshold falls, and the area under the curve."""
    thresholds = np.concatenate([[np.inf], np.unique(p)[::-1]])
    called = p >= thresholds[:, None]
    false_positive, true_positive = called[:, y == 0].mean(axis=1), called[:, y == 1].mean(axis=1)
    return false_positive, true_positive, float(np.trapezoid(true_positive, false_positive))


def plot_traces(idata) -> Figure:
    """Marginal densities and traces of the hyper-parameters, chain by chain."""
    posterior = idata["posterior"]
    parameters = {
        f"length-scale of {name}\n(in its standard deviations)": posterior["ls"].sel(feature=name)
        for name in FEATURES
    } | {"prior variance σ of f": posterior["sigma"]}
    figure = Figure(figsize=(10, 7), layout="constrained")
    figure.suptitle("Do the chains agree? Densities and traces of the hyper-parameters")
    rows = figure.subplots(len(parameters), 2, width_ratios=(1, 2), squeeze=False)
    for (density, trace), (label, values) in zip(rows, parameters.items(), strict=True):
        draws = values.to_numpy()
        grid = np.geomspace(0.8 * draws.min(), 1.2 * draws.max(), 200)
        for chain, colour in zip(draws, cycle(CHAIN_COLOURS), strict=False):
            density.plot(grid, gaussian_kde(np.log(chain))(np.log(grid)), color=colour)
            trace.plot(chain, color=colour, lw=0.5)
        density.set(xscale="log", xlabel=label, ylim=(0, None), yticks=[])
        trace.set(yscale="log", xlim=(0, draws.shape[1]), xlabel="draw")
        for axis in (density.xaxis, trace.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        rhat, ess = float(az.rhat(draws)), float(az.ess(draws))
        trace.set_title(f"R-hat {rhat:.3f}, effective sample size {ess:.0f}", fontsize="medium")
    names = [f"chain {i + 1}" for i in range(len(draws))]
    figure.legend(density.lines, names, loc="outside lower center", ncols=len(names))
    return figure


def plot_map(
    axes: list[np.ndarray], p: np.ndarray, training: Patients, held_out: Patients
) -> Figure:
    """p(abnormal), given on the grid of the two axes, with the patients on it."""
    # The surface is smooth on the scale of the grid: a spline shows it without corners.
    fine = [np.linspace(axis[0], axis[-1], 150) for axis in axes]
    p = np.clip(RectBivariateSpline(*axes, p)(*fine), 0, 1).T
    figure = Figure(figsize=(7.4, 5.7), layout="constrained")
    ax = figure.subplots()
    shades = LinearSegmentedColormap.from_list("p", ["#6CB4E0", "#FAFAFA", "#F5A876"])
    surface = ax.contourf(*fine, p, np.linspace(0, 1, 21), cmap=shades)
    ax.contour(*fine, p, [0.5], colors="black", linewidths=2)
    ax.contour(*fine, p, [0.25, 0.75], colors="black", linewidths=0.9, linestyles="dashed")
    colour_bar = figure.colorbar(surface, ticks=np.linspace(0, 1, 5), pad=0.02)
    colour_bar.set_label("p(abnormal), hyper-parameters and latent integrated out")
    symbols = [
        symbol
        for patients, held in ((training, False), (held_out, True))
        for symbol in draw_patients(ax, patients, held_out=held)
    ]
    lines = [
        Line2D([], [], color="black", lw=2, label="p = 0.5"),
        Line2D([], [], color="black", lw=0.9, ls="dashed", label="p = 0.25 and 0.75"),
    ]
    ax.set(**dict(zip(("xlabel", "ylabel"), FEATURES.values(), strict=True)))
    ax.set_title("Probability of an abnormal thyroid: high on both sides of a normal band")
    figure.legend(handles=symbols + lines, loc="outside lower center", ncols=3)
    return figure


def draw_patients(ax: Axes, patients: Patients, *, held_out: bool) -> list[PathCollection]:
    """Mark patients by class, those held out with open symbols."""
    return [
        ax.scatter(
            *patients.features[patients.y == label].T,
            s=34,
            marker=marker,
            facecolor="white" if held_out else colour,
            edgecolor=colour if held_out else "white",
            linewidth=1.6 if held_out else 0.7,
            zorder=3,  # above the contours
            label=f"{name}, {'held out' if held_out else 'training'}",
        )
        for label, (name, marker, colour) in enumerate(zip(CLASSES, MARKERS, COLOURS, strict=True))
    ]


def plot_roc(y: np.ndarray, p: np.ndarray) -> Figure:
    """The ROC curve of the held-out patients."""
    false_positive, true_positive, auc = roc_curve(y, p)
    called = p >= 0.5
    figure = Figure(figsize=(5.6, 5.6), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="0.5", ls="dashed", label="guessing (AUC 0.5)")
    ax.plot(false_positive, true_positive, color=COLOURS[0], lw=2.2, label="Gaussian process")
    ax.scatter(
        called[y == 0].mean(),
        called[y == 1].mean(),
        s=70,
        color=COLOURS[1],
        zorder=3,
        label="calling abnormal where p ≥ 0.5",
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel="false positive rate (normal patients called abnormal)")
    ax.set(ylabel="true positive rate (abnormal patients found)")
    ax.set_title(f"ROC on {len(y)} held-out patients, {y.sum()} of them abnormal: AUC {auc:.3f}")
    ax.title.set_fontsize("medium")
    ax.legend(loc="lower right")
    return figure


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2000, help="draws per chain")
    parser.add_argument("--tune", type=int, default=500, help="tuning draws per chain")
    parser.add_argument("--chains", type=int, default=4, help="number of chains")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument(
        "--output", type=Path, default=Path("quickstart_output"), help="folder for the results"
    )
    return parser.parse_args(arguments)


# Matrices of this size are factorised fastest by one thread: more get in each other's way.
@threadpool_limits.wrap(limits=1)
def main(arguments: Sequence[str] | None = None) -> None:
    """Learn from two thirds of the patients, and predict for the rest and for a map."""
    options = parse_arguments(arguments)
    training, held_out = load_patients(np.random.default_rng(options.seed))
    model, gp = build_model(training)
    print(pmpm.read_model(model))

    with model:
        idata = pm.sample(
            # EP rather than the default, Laplace: where the classes hardly overlap, as here,
            # its importance weights vary much less (see the statistics printed below).
            step=pmpm.PseudoMarginalMH(approximation="ep"),
            draws=options.draws,
            tune=options.tune,
            chains=options.chains,
            cores=min(options.chains, os.cpu_count() or 1),
            random_seed=options.seed,
        )
    report(idata)

    axes = make_grid(training, held_out)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    X_new = standardise(np.vstack([grid, held_out.features]), training)
    p_grid, p_held_out = np.split(predict(idata, model, gp, X_new, options.seed), [len(grid)])
    print(f"AUC on {len(held_out.y)} held-out patients: {roc_curve(held_out.y, p_held_out)[2]:.3f}")

    options.output.mkdir(parents=True, exist_ok=True)
    figures = {
        "traces": plot_traces(idata),
        "map": plot_map(axes, p_grid.reshape(len(axes[0]), -1), training, held_out),
        "roc": plot_roc(held_out.y, p_held_out),
    }
    for name, figure in figures.items():
        figure.savefig(options.output / f"{name}.png", dpi=150)
    idata.to_netcdf(options.output / "idata.nc")
    print(f"Saved {', '.join(f'{name}.png' for name in figures)} and idata.nc in {options.output}.")


if __name__ == "__main__":
    main()
