"""The simulated models that all benchmarks share, and a chain on one of them."""

from __future__ import annotations

import numpy as np
import pymc as pm

import pymc_pseudomarginal as pmpm

VARIANCE = 5.0
PLAIN = {"n_importance": 16, "annealing": 0, "normals": "independent", "proposal": "random-walk"}
"""`PseudoMarginalMH` with nothing chosen by itself, for figures that compare from run to run."""


def simulated_labels(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in the unit cube, shape (n, d), and labels of a GP probit model, shape (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    # Distances grow as sqrt(d), and the length-scale with them: f is as rough in any dimension.
    lengthscale = 0.3 * np.sqrt(d / 2)
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    K = VARIANCE * np.exp(-0.5 * squares / lengthscale**2) + 1e-6 * np.eye(n)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    return X, (f + rng.standard_normal(n) > 0).astype(int)


def probit_model(
    n: int, d: int, ard: bool = False, seed: int = 1, reparameterize: bool = True
) -> pm.Model:
    """A GP probit model of simulated labels.

    Parameters
    ----------
    n : int
        Number of labels.
    d : int
        Number of inputs.
    ard : bool
        A length-scale for every input instead of one for all.
    seed : int
        Of the simulated data.
    reparameterize : bool
        Whether PyMC stores f whitened, with f itself as a deterministic of it.
    """
    X, y = simulated_labels(n, d, seed)
    with pm.Model() as model:
        ls = pm.Gamma("ls", 3.0, 6.0 / np.sqrt(d / 2), shape=d if ard else None)
        sigma = pm.Gamma("sigma", 3.0, 0.6)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(d, ls=ls))
        f = gp.prior("f", X=pm.Data("X", X), reparameterize=reparameterize)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=pm.Data("labels", y))
    return model


def tuning_draws(n: int) -> int:
    """Enough to find the proposal's scale, and not longer than the measurement itself."""
    if n <= 200:
        return 300
    return 150 if n <= 1000 else 60


class Chain:
    """One chain of `PseudoMarginalMH`, drawn without PyMC's sampling loop around it.

    Parameters
    ----------
    model : pymc.Model
    seed : int
    **settings
        Of `PseudoMarginalMH`, where they differ from `PLAIN`.
    """

    def __init__(self, model: pm.Model, seed: int = 1, **settings):
        with model:
            self.step = pmpm.PseudoMarginalMH(**PLAIN | settings)
        self.point = model.initial_point()
        self.step.set_rng(np.random.default_rng(seed))

    def draw(self) -> dict:
        """Take one draw; its statistics."""
        self.point, (statistics,) = self.step.step(self.point)
        return statistics

    def tune(self, draws: int) -> None:
        """Take tuning draws, freeze the proposal, and take one draw to warm up."""
        for _ in range(draws):
            self.draw()
        self.step.stop_tuning()
        self.draw()
