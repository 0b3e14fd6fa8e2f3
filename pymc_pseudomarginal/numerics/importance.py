"""Unbiased, importance-sampled estimate of the marginal likelihood p(y|theta)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation
from pymc_pseudomarginal.numerics.likelihoods import Likelihood


@dataclass(frozen=True)
class ImportanceSet:
    """N latent vectors with their importance weights.

    Attributes
    ----------
    samples : array, shape (N, n)
    log_weights : array, shape (N,)
        log w(f) = log p(y|f) + log p(f) - log q(f).
    """

    samples: np.ndarray
    log_weights: np.ndarray

    @cached_property
    def log_estimate(self) -> float:
        """Log of the mean weight, whose exponential is unbiased for p(y)."""
        return float(np.logaddexp.reduce(self.log_weights)) - math.log(len(self.log_weights))

    def pick(self, rng: np.random.Generator) -> np.ndarray:
        """One of the samples with probability proportional to its weight, shape (n,)."""
        if len(self.log_weights) == 1:
            return self.samples[0]
        # The maximum of log weights plus Gumbel noise has just that distribution.
        return self.samples[np.argmax(self.log_weights + rng.gumbel(size=len(self.log_weights)))]


def importance_set(
    approximation: Approximation,
    likelihood: Likelihood,
    u: np.ndarray,
    *,
    include: np.ndarray | None = None,
) -> ImportanceSet:
    """Draws from q with their weights, as a pure function of standard normals.

    Parameters
    ----------
    approximation : Approximation
    likelihood : Likelihood
    u : array, shape (2, N, n)
        Standard normals; two for every latent value (see `draw`).
    include : array, shape (n,), optional
        A latent vector that joins the set as its first member: with it the N draws
        become the refreshed companions of the current state.
    """
    if include is None:
        samples = draw(approximation, u)
    elif u.shape[1] == 0:
        samples = include[None]
    else:
        samples = np.concatenate([include[None], draw(approximation, u)])
    return ImportanceSet(samples, log_weights(approximation, likelihood, samples))


def draw(approximation: Approximation, u: np.ndarray) -> np.ndarray:
    """Draws from q, shape (N, n), from standard normals u of shape (2, N, n).

    Matheron's rule: with a draw L z1 of the prior and noise z2 of the sites,
    f = mu + L z1 - K W^1/2 B^-1 (W^1/2 L z1 + z2). It needs the Cholesky factor L
    of K, shared with elliptical slice sampling, and none of Sigma. K is applied as
    L Lᵀ, so that f - m lies in the range of L to the last digit.
    """
    prior, factor = approximation.prior, approximation.factor
    z1, z2 = u
    root = factor.root_precision
    residual = root * factor.solve_unscaled(root * prior.colour(z1) + z2)
    whitened = z1 + prior.colour_transposed(approximation.dual - residual)
    return prior.mean + prior.colour(whitened)


def log_weights(approximation: Approximation, likelihood: Likelihood, f: np.ndarray) -> np.ndarray:
    """Log p(y|f) + log p(f) - log q(f) for every row of f, shape (..., n) to (...).

    The two Gaussians differ by their sites only, so that
    log w = log p(y|f) - aᵀ(f - m) + aᵀ(mu - m)/2 + (f - mu)ᵀ W (f - mu)/2 - log|B|/2.
    """
    m, mu, a = approximation.prior.mean, approximation.mean, approximation.dual
    constant = 0.5 * (float(a @ (mu - m)) - approximation.factor.log_determinant)
    with np.errstate(all="ignore"):
        result = np.asarray(likelihood.log_density(f) + constant)
    rows = f.reshape(-1, f.shape[-1])
    _add_sites(rows, m, mu, a, approximation.precision, result.reshape(-1))
    if not (result < np.inf).all():
        raise NoFiniteApproximation("An importance weight is not a finite number.")
    return result


@njit(cache=True)
def _add_sites(f, m, mu, a, W, result):
    """Add what depends on f and not on the data, in one pass: the arrays are short, and many."""
    for i in range(f.shape[0]):
        for j in range(f.shape[1]):
            deviation = f[i, j] - mu[j]
            result[i] += 0.5 * W[j] * deviation * deviation - a[j] * (f[i, j] - m[j])
