"""Gradients of the approximate log marginals with respect to the prior's m and K."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.likelihoods import Likelihood


class PriorCotangents(NamedTuple):
    """d log Z / dm, shape (n,), and d log Z / dK, shape (n, n), symmetric."""

    mean: np.ndarray
    covariance: np.ndarray


def laplace_gradient(approximation: Approximation, likelihood: Likelihood) -> PriorCotangents:
    """Differentiate log Z_LA, through the mode as well, at a converged approximation.

    With R = W^1/2 B^-1 W^1/2 and s = diag(Sigma) ∂³log p / 2, the effect of the
    moving mode on log|B| enters as w = s - R K s, and

        d log Z / dm = a + w,
        d log Z / dK = (a aᵀ - R)/2 + (w aᵀ + a wᵀ)/2.

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
    factor = approximation.factor
    third = likelihood.third_derivative(approximation.mean)
    s = 0.5 * factor.marginal_variances() * third
    w = s - factor.solve(approximation.prior.multiply(s))
    return _cotangents(approximation, w)


def ep_gradient(approximation: Approximation, likelihood: Likelihood) -> PriorCotangents:
    """Differentiate log Z_EP at a fixed point of EP.

    The sites are stationary there, so that only the explicit dependence counts:
    the formulas of `laplace_gradient` with w = 0.

    References
    ----------
    Rasmussen & Williams (2006), section 5.5.2.
    """
    return _cotangents(approximation, np.zeros_like(approximation.dual))


def _cotangents(approximation: Approximation, w: np.ndarray) -> PriorCotangents:
    a = approximation.dual
    covariance = np.outer(0.5 * a + w, a)
    covariance += covariance.T
    covariance -= approximation.factor.site_covariance_inverse()
    return PriorCotangents(a + w, 0.5 * covariance)
