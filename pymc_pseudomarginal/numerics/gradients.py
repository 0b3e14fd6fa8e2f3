"""Gradients of the approximate log marginals in the prior's m and K and in the likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.triangles import symmetric_combination


class PriorCotangents(NamedTuple):
    """d log Z / dm, shape (n,), and d log Z / dK, shape (n, n), symmetric."""

    mean: np.ndarray
    covariance: np.ndarray


class Differential(NamedTuple):
    """How log Z changes with the prior and with the likelihood.

    Attributes
    ----------
    prior : PriorCotangents
    of_likelihood : callable
        Likelihood -> float, at O(n) cost: with q held fixed, what changes with the parameters
        of the likelihood as log Z does, to the first order. Its value itself means nothing.
    """

    prior: PriorCotangents
    of_likelihood: Callable[[Likelihood], float]


def laplace_differential(approximation: Approximation, likelihood: Likelihood) -> Differential:
    """Differentiate log Z_LA, through the mode as well, at a converged approximation.

    With R = W^1/2 B^-1 W^1/2 and s = diag(Sigma) ∂³log p / 2, the effect of the
    moving mode on log|B| enters as w = s - R K s, and

        d log Z / dm = a + w,
        d log Z / dK = (a aᵀ - R)/2 + (w aᵀ + a wᵀ)/2.

    A parameter of the likelihood changes log p and W at the mode, and moves the mode by
    Sigma ∂g, g being the gradient of log p; as Sigma s = K w,

        d log Z = sum_i d [log p_i - Sigma_ii W_i / 2 + (K w)_i g_i] at the mode, held fixed.

    Parameters
    ----------
    approximation : Approximation
        From `laplace`, converged.
    likelihood : Likelihood
        The one that it was made with.

    References
    ----------
    Rasmussen & Williams (2006), section 5.5.1.
    """
    mode, prior = approximation.mean, approximation.prior
    inverse = approximation.factor.invert()
    s = 0.5 * inverse.variances * likelihood.third_derivative(mode)
    w = s - approximation.factor.solve(prior.multiply(s))

    def of_likelihood(other: Likelihood) -> float:
        gradient, W = other.derivatives(mode)
        level = float(other.log_density(mode))
        return level - 0.5 * float(inverse.variances @ W) + float(prior.multiply(w) @ gradient)

    return Differential(_cotangents(approximation, inverse.lower, w), of_likelihood)


def ep_differential(approximation: Approximation, likelihood: Likelihood) -> Differential:
    """Differentiate log Z_EP at a fixed point of EP.

    The sites are stationary there, so that only the explicit dependence counts: for the
    prior the formulas of `laplace_differential` with w = 0; for the likelihood the
    normalisers of the tilted distributions with their cavities held fixed.

    References
    ----------
    Rasmussen & Williams (2006), section 5.5.2; Seeger (2005), Expectation propagation for
    exponential families.
    """
    a = approximation.dual
    inverse = approximation.factor.invert()
    variance = inverse.variances / inverse.diagonal
    mean = approximation.mean - variance * a

    def of_likelihood(other: Likelihood) -> float:
        return float(other.tilted_moments(mean, variance).log_normaliser.sum())

    return Differential(_cotangents(approximation, inverse.lower, np.zeros_like(a)), of_likelihood)


DIFFERENTIALS = {"laplace": laplace_differential, "ep": ep_differential}
"""By the names of the approximations."""


def laplace_gradient(approximation: Approximation, likelihood: Likelihood) -> PriorCotangents:
    """The part of `laplace_differential` that belongs to the prior."""
    return laplace_differential(approximation, likelihood).prior


def ep_gradient(approximation: Approximation, likelihood: Likelihood) -> PriorCotangents:
    """The part of `ep_differential` that belongs to the prior."""
    return ep_differential(approximation, likelihood).prior


def _cotangents(
    approximation: Approximation, inverse: np.ndarray, w: np.ndarray
) -> PriorCotangents:
    """From the lower triangle of B^-1, without a pass over n×n numbers for every term."""
    a, root = approximation.dual, approximation.factor.root_precision
    covariance = symmetric_combination(inverse, root, -0.5, 0.25 * a + 0.5 * w, a)
    return PriorCotangents(a + w, covariance)
