"""Hamiltonian Monte Carlo for f given theta, with K as the inverse mass matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DensePrior

# A step size that varies from one trajectory to the next keeps them from closing on themselves.
_JITTER = 0.2


@dataclass(frozen=True)
class HMCInfo:
    """What one trajectory did.

    Attributes
    ----------
    accepted : bool
    acceptance : float
    evaluations : int
        Evaluations of the gradient of the likelihood.
    """

    accepted: bool
    acceptance: float
    evaluations: int


def latent_hmc(
    rng: np.random.Generator,
    f: np.ndarray,
    prior: DensePrior,
    likelihood: Likelihood,
    *,
    step_size: float,
    n_steps: int,
) -> tuple[np.ndarray, HMCInfo]:
    """Move f, leaving p(f|y) ∝ N(f|m, K) p(y|f) invariant.

    With f = m + L z and a momentum p ~ N(0, I) for z (that is, N(0, K^-1) for f), the
    Hamiltonian is |z|²/2 + |p|²/2 - log p(y|m + L z). Its Gaussian part is a rotation of (z, p)
    and is followed exactly; the likelihood kicks p before and after. A step costs two
    products with L, O(n²).

    Parameters
    ----------
    rng : numpy.random.Generator
    f : array, shape (n,)
        The current point, where p(y|f) > 0.
    prior : DensePrior
        N(m, K).
    likelihood : Likelihood
    step_size : float
        Angle of the rotation in a step.
    n_steps : int
        Steps in a trajectory.

    Returns
    -------
    f : array, shape (n,)
    info : HMCInfo

    References
    ----------
    Filippone, Zhong & Girolami (2013), A comparative evaluation of stochastic inference
    methods for Gaussian process models, Machine Learning 93; Shahbaba, Lan, Johnson & Neal
    (2014), Split Hamiltonian Monte Carlo, Statistics and Computing 24.
    """

    def kick(z):
        gradient, _ = likelihood.derivatives(prior.mean + prior.colour(z))
        return 0.5 * angle * prior.colour_transposed(gradient)

    def energy(z, p):
        log_likelihood = float(likelihood.log_density(prior.mean + prior.colour(z)))
        return 0.5 * float(z @ z + p @ p) - log_likelihood

    angle = step_size * (1.0 + _JITTER * rng.uniform(-1.0, 1.0))
    cosine, sine = np.cos(angle), np.sin(angle)
    start = prior.whiten(f)
    z, p = start, rng.standard_normal(prior.size)
    # What overflows shows as an energy that is not finite, and is rejected.
    with np.errstate(all="ignore"):
        before, half_kick = energy(z, p), kick(z)
        for _ in range(n_steps):
            p = p + half_kick
            z, p = cosine * z + sine * p, cosine * p - sine * z
            half_kick = kick(z)
            p = p + half_kick
        change = energy(z, p) - before
    acceptance = float(np.exp(-max(0.0, change))) if np.isfinite(change) else 0.0
    accepted = bool(rng.uniform() < acceptance)
    f = prior.mean + prior.colour(z) if accepted else f
    return f, HMCInfo(accepted, acceptance, n_steps + 1)
