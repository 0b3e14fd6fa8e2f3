"""The paper's model, and data simulated from it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pymc as pm

from examples.paper.tasks import seed_of

LENGTHSCALE, VARIANCE = 0.35, 2.08
"""With which the data of two inputs were simulated."""

# The shape and rate of the Gamma prior of sigma, for simulated and for real data.
SIMULATED_PRIOR = (1.2, 0.2)
REAL_PRIOR = (1.1, 0.1)


def gp_probit(
    X: np.ndarray, y: np.ndarray, *, ard: bool = False, prior: tuple[float, float] = SIMULATED_PRIOR
) -> tuple[pm.Model, pm.gp.Latent]:
    """GP probit model with a squared exponential covariance.

    Parameters
    ----------
    X : array, shape (n, d)
    y : array, shape (n,)
        Labels 0 and 1.
    ard : bool
        A length-scale for every input instead of one for all.
    prior : tuple
        Shape and rate of the Gamma prior of sigma, the variance of f.
    """
    d = X.shape[1]
    with pm.Model() as model:
        ls = pm.Gamma("ls", 1.0, 1.0 / np.sqrt(d), shape=d if ard else None)
        sigma = pm.Gamma("sigma", *prior)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(d, ls=ls))
        # Given as f itself, which saves a factorisation per draw wherever it is recorded.
        f = gp.prior("f", X=pm.Data("X", X), reparameterize=False)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=pm.Data("labels", y))
    return model, gp


def prior_draw(
    model: pm.Model, rng: np.random.Generator, prior: tuple[float, float] = SIMULATED_PRIOR
) -> dict[str, np.ndarray]:
    """A point with hyper-parameters from their prior and f at zero."""
    point = model.initial_point()
    d = model["X"].get_value().shape[1]
    point["ls_log__"] = np.log(rng.gamma(1.0, np.sqrt(d), size=point["ls_log__"].shape))
    point["sigma_log__"] = np.log(rng.gamma(prior[0], 1.0 / prior[1]))
    return {name: np.asarray(value, dtype=float) for name, value in point.items()}


@cache
def simulated(n: int, d: int, data_set: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs uniform in the unit cube and labels of the model, half of them of each class.

    The paper does not say with which length-scale it simulated more than two inputs. It grows here
    as distances do, with the square root of d.

    Parameters
    ----------
    n, d : int
    data_set : int
        One of as many as are wanted.

    Returns
    -------
    X : array, shape (n, d)
    y : array, shape (n,)
    """
    names = ("simulated", n, d, data_set) if data_set else ("simulated", n, d)
    rng = np.random.default_rng(seed_of(*names))
    chosen = np.empty(0, dtype=int)
    while len(chosen) < n:  # f may be of one sign nearly everywhere
        X = rng.uniform(size=(4 * n, d))
        squares = ((X[:, None] - X) ** 2).sum(axis=-1)
        K = VARIANCE * np.exp(-0.5 * squares / (LENGTHSCALE**2 * d / 2.0)) + 1e-6 * np.eye(4 * n)
        f = np.linalg.cholesky(K) @ rng.standard_normal(4 * n)
        y = (f + rng.standard_normal(4 * n) > 0).astype(int)
        chosen = np.concatenate([np.flatnonzero(y == label)[: n // 2] for label in (0, 1)])
    rng.shuffle(chosen)
    return X[chosen], y[chosen]
