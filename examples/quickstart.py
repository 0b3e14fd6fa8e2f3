"""Gaussian-process classification of thyroid patients, from a plain PyMC model to pictures.

Two blood tests of 215 patients, and whether their thyroid is normal. A Gaussian process says
how the probability of an abnormal thyroid varies with the two tests; its length-scales and
its variance are sampled together with it, exactly, by `pmpm.PseudoMarginalMH`.

Run it with ``python examples/quickstart.py``. It takes about a minute on two cores (longer the
first time, while PyMC compiles) and leaves three pictures and the draws in a folder.
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
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
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
    d = len(FEATURES)
    with pm.Model(coords={"feature": list(FEATURES)}) as model:
        # In pm.Data, so that PyMC 6 need not compile anew for other data of the same kind.
        X = pm.Data("X", standardise(training.features, training))
        ls = pm.Gamma("ls", 1.0, 1 / np.sqrt(d), dims="feature")  # a length-scale per feature
        sigma = pm.Gamma("sigma", 1.2, 0.2)  # the prior variance of f
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(d, ls=ls))
        f = gp.prior("f", X=X)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=pm.Data("labels", training.y))
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


def make_grid(training: Patients, held_out: Patients, size: int = 50) -> np.ndarray:
    """The points of a grid over all patients, with a margin; shape (size², 2)."""
    features = np.vstack([training.features, held_out.features])
    low, high = features.min(axis=0), features.max(axis=0)
    margin = 0.05 * (high - low)
    low, high = np.maximum(low - margin, 0.0), high + margin
    axes = [np.linspace(a, b, size) for a, b in zip(low, high, strict=True)]
    return np.column_stack([axis.ravel() for axis in np.meshgrid(*axes)])


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


def plot_map(grid: np.ndarray, p: np.ndarray, training: Patients, held_out: Patients) -> Figure:
    """p(abnormal) at the points of the grid, with the patients on it."""
    figure = Figure(figsize=(7.4, 5.7), layout="constrained")
    ax = pmpm.plots.plot_probability(
        grid, p, ax=figure.subplots(), feature_names=list(FEATURES.values())
    )
    for patients, held in ((training, False), (held_out, True)):
        for label, (name, marker, colour) in enumerate(zip(CLASSES, MARKERS, COLOURS, strict=True)):
            ax.scatter(
                *patients.features[patients.y == label].T,
                s=34,
                marker=marker,
                facecolor="white" if held else colour,
                edgecolor=colour if held else "white",
                linewidth=1.6 if held else 0.7,
                zorder=3,  # above the contours
                label=f"{name}, {'held out' if held else 'training'}",
            )
    ax.set_title("Probability of an abnormal thyroid: high on both sides of a normal band")
    if ax.get_legend() is not None:
        ax.get_legend().remove()
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def plot_scores(scores: pmpm.CapacityScores, held_out: Patients) -> Figure:
    """Accuracy and AUC of the patients for whom the classifier is sure enough to decide."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    figure.suptitle(
        f"{len(held_out.y)} held-out patients, {held_out.y.sum()} of them abnormal: "
        "does it know when it does not know?"
    )
    pmpm.plots.plot_capacity(scores, ax=figure.subplots(1, 2))
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
            step=pmpm.PseudoMarginalMH(),
            draws=options.draws,
            tune=options.tune,
            chains=options.chains,
            cores=min(options.chains, os.cpu_count() or 1),
            random_seed=options.seed,
        )
        report(idata)
        # Successive draws are alike: every tenth says as much about a map.
        thinned = idata.sel(draw=slice(None, None, 10))
        grid = make_grid(training, held_out)
        p_grid = pmpm.predict(thinned, gp, standardise(grid, training))["p"]
        p = pmpm.predict(idata, gp, standardise(held_out.features, training))["p"]
    scores = pmpm.capacity_scores(held_out.y, p.mean(("chain", "draw")).to_numpy())
    print(f"{len(held_out.y)} held-out patients: {scores}")

    options.output.mkdir(parents=True, exist_ok=True)
    figures = {
        "traces": plot_traces(idata),
        "map": plot_map(grid, p_grid, training, held_out),
        "capacity": plot_scores(scores, held_out),
    }
    for name, figure in figures.items():
        figure.savefig(options.output / f"{name}.png", dpi=150)
    idata.to_netcdf(options.output / "idata.nc")
    print(f"Saved {', '.join(f'{name}.png' for name in figures)} and idata.nc in {options.output}.")


if __name__ == "__main__":
    main()
