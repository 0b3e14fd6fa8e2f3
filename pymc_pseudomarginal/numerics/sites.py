"""The Gaussian that follows from a prior and given Gaussian sites."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DenseFactor, DensePrior


class Conditioned(NamedTuple):
    """N(m, K) times sites exp(nu f - W f²/2): the factor of B, nu - W m, a = K^-1 (mu - m), mu."""

    factor: DenseFactor
    shifted: np.ndarray
    dual: np.ndarray
    mean: np.ndarray


def condition_on_sites(prior: DensePrior, W: np.ndarray, nu: np.ndarray) -> Conditioned:
    """Multiply a prior by sites with precisions W and natural means nu, each of shape (n,)."""
    factor = prior.condition(W)
    shifted = nu - W * prior.mean
    dual = shifted - factor.solve(prior.multiply(shifted))
    return Conditioned(factor, shifted, dual, prior.mean + prior.multiply(dual))


def given_sites(prior: DensePrior, likelihood: Likelihood, sites: np.ndarray) -> Approximation:
    """The q of sites that are known beforehand, at the price of one Cholesky.

    Sites of EP are smooth functions of theta, so that those fitted to it make weights about as
    little spread as those that EP itself would find.

    Parameters
    ----------
    prior : DensePrior
    likelihood : Likelihood
    sites : array, shape (2, n)
        W and nu; a negative precision counts as none.

    Returns
    -------
    Approximation
        With log w(mu), the log weight of its mean, in the place of a log marginal.

    Raises
    ------
    NumericalFailure
        If B cannot be factorised, or the log weight of the mean is not finite.
    """
    W = np.maximum(sites[0], 0.0)
    factor, _, dual, mean = condition_on_sites(prior, W, sites[1])
    level = float(likelihood.log_density(mean)) - 0.5 * (
        float(dual @ (mean - prior.mean)) + factor.log_determinant
    )
    if not np.isfinite(level):
        raise NoFiniteApproximation("The weight at the mean of given sites is not finite.")
    return Approximation(prior, mean, dual, factor, level, 0, True, sites)
