"""Every plot of the package, from thyroid patients and labels simulated as in the paper.

Run it with ``python examples/gallery.py``. It takes two to three minutes on two cores and leaves
six pictures in a folder, those of docs/plots.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pymc as pm
from matplotlib import pyplot as plt
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm

FEATURES = {"thyroxin": "total serum thyroxin", "t3_resin_uptake": "T3-resin uptake (%)"}


@dataclass(frozen=True)
class Settings:
    """How much is computed."""

    draws: int
    grid: int
    repeats: int
    values: int


FULL = Settings(draws=2000, grid=50, repeats=500, values=60)
QUICK = Settings(draws=60, grid=8, repeats=10, values=6)


def thyroid(features: Sequence[str], n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Standardised blood tests and labels, 1 for an abnormal thyroid, in random order."""
    data = pmpm.datasets.load("thyroid", as_frame=True, standardise=True)
    order = np.random.default_rng(2).permutation(len(data.y))[:n]
    return data.X[list(features)].to_numpy()[order], data.y[order]


def gp_probit(X: np.ndarray, y: np.ndarray) -> tuple[pm.Model, pm.gp.Latent]:
    """The isotropic probit model of the paper."""
    d = X.shape[1]
    with pm.Model() as model:
        ls = pm.Gamma("ls", 1.0, 1 / np.sqrt(d))
        sigma = pm.Gamma("sigma", 1.2, 0.2)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(d, ls=ls))
        f = gp.prior("f", X=pm.Data("X", X))
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=pm.Data("labels", y))
    return model, gp


def sample(model: pm.Model, settings: Settings, **step):
    """Four chains from PyMC's initial point."""
    with model:
        return pm.sample(
            settings.draws,
            tune=settings.draws // 4,
            chains=4,
            cores=min(4, os.cpu_count() or 1),
            step=pmpm.PseudoMarginalMH(**step),
            random_seed=1,
        )


def latent(settings: Settings):
    """The latent function over one blood test."""
    X, y = thyroid(["thyroxin"], n=100)
    model, gp = gp_probit(X, y)
    idata = sample(model, settings, approximation="ep")
    x = np.linspace(X.min() - 0.5, X.max() + 0.5, 4 * settings.grid)
    predictions = pmpm.predict(idata.sel(draw=slice(None, None, 5)), gp, x[:, None], model=model)
    ax = pmpm.plots.plot_latent(x, predictions, X=X, y=y)
    ax.set_xlabel("total serum thyroxin, standardised")
    return ax


def probability(model, gp, idata, X, y, settings: Settings):
    """The probability of an abnormal thyroid over two blood tests."""
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    axes = [np.linspace(a, b, settings.grid) for a, b in zip(low, high, strict=True)]
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(*axes)])
    predictions = pmpm.predict(idata.sel(draw=slice(None, None, 10)), gp, grid, model=model)
    names = [f"{name}, standardised" for name in FEATURES.values()]
    return pmpm.plots.plot_probability(grid, predictions["p"], X=X, y=y, feature_names=names)


def capacity(settings: Settings):
    """Two classifiers that learned from 30 patients, on the others."""
    X, y = thyroid(FEATURES)
    model, gp = gp_probit(X[:30], y[:30])
    X, y = X[30:], y[30:]
    idata = sample(model, settings, approximation="ep")
    exact = pmpm.predict(idata, gp, X, model=model)["p"].mean(("chain", "draw"))
    median = {name: float(idata["posterior"][name].median()) for name in ("ls", "sigma")}
    fixed = pmpm.predict_approximately(median, gp, X, model=model)["p"]
    return pmpm.plots.plot_capacity(
        {
            "theta and f integrated out": pmpm.capacity_scores(y, exact),
            "EP at the median theta": pmpm.capacity_scores(y, fixed),
        }
    )


def simulated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels drawn from the model, with the hyper-parameters of the paper."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(n, 2))
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    K = 2.08 * np.exp(-0.5 * squares / 0.35**2) + 1e-6 * np.eye(n)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    return X, (f + rng.standard_normal(n) > 0).astype(int)


def spread(settings: Settings):
    """The estimate of p(y|theta) along the length-scale, as in the paper's figure 2."""
    model, _ = gp_probit(*simulated(50))
    values = np.linspace(0.05, 4.0, settings.values)
    found = pmpm.estimator_spread(
        "ls", values, {"sigma": 2.08}, repeats=settings.repeats, random_seed=1, model=model
    )
    ax = pmpm.plots.plot_estimator_spread(found)
    ax.set_title("Laplace, n = 50")
    return ax


def make_pictures(settings: Settings) -> dict:
    """Axes by the name of the picture."""
    X, y = thyroid(FEATURES, n=100)
    model, gp = gp_probit(X, y)
    idata = {
        "Laplace, N = 1": sample(
            model, settings, approximation="laplace", n_importance=1, proposal="random-walk"
        ),
        "EP, N = 16": sample(
            model, settings, approximation="ep", n_importance=16, proposal="random-walk"
        ),
    }
    draws = {name: np.log(found["posterior"]["ls"]) for name, found in idata.items()}
    return {
        "running_rhat": pmpm.plots.plot_running_rhat(draws),
        "autocorrelation": pmpm.plots.plot_autocorrelation(draws, max_lag=80),
        "probability": probability(model, gp, idata["EP, N = 16"], X, y, settings),
        "latent": latent(settings),
        "capacity": capacity(settings),
        "estimator_spread": spread(settings),
    }


# Matrices of this size are factorised fastest by one thread: more get in each other's way.
@threadpool_limits.wrap(limits=1)
def main(arguments: Sequence[str] | None = None) -> None:
    """Make and save the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a short run, for tests")
    parser.add_argument("--output", type=Path, default=Path("gallery_output"), help="folder")
    options = parser.parse_args(arguments)
    pictures = make_pictures(QUICK if options.quick else FULL)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, axes in pictures.items():
        figure = np.ravel(axes)[0].figure
        figure.savefig(options.output / f"plot_{name}.png", dpi=120)
        plt.close(figure)
    print(f"Saved {', '.join(f'plot_{name}.png' for name in pictures)} in {options.output}.")


if __name__ == "__main__":
    main()
