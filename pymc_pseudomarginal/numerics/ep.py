"""Expectation propagation with parallel, damped updates of all sites."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DensePrior
from pymc_pseudomarginal.numerics.sites import condition_on_sites

_SMALLEST_DAMPING = 0.05


def expectation_propagation(
    prior: DensePrior,
    likelihood: Likelihood,
    *,
    start: np.ndarray | None = None,
    tolerance: float = 1e-3,
    max_iterations: int = 100,
    last_update: bool = False,
) -> Approximation:
    """EP approximation of p(f|y) by parallel sweeps over sites exp(nu f - W f²/2).

    A sweep costs one Cholesky of B and one triangular inverse. All sites are
    updated at once; the update is damped more (by halves) whenever a sweep leaves
    the moments further from matching than the one before.

    Parameters
    ----------
    prior : DensePrior
    likelihood : Likelihood
    start : array, shape (2, n), optional
        Sites (W, nu) to start from (the ``anchor`` of another approximation). A
        negative W is taken as zero.
    tolerance : float
        Largest mismatch between the tilted and the Gaussian marginals, as the
        difference of means in standard deviations and the relative one of variances.
    max_iterations : int
    last_update : bool
        Whether q takes the sites to which the last sweep would update, at the cost of one
        Cholesky of B: with it a coarse tolerance does. The log marginal is that of the last
        sweep; its error is of the second order in the mismatch.

    Returns
    -------
    Approximation

    Raises
    ------
    NumericalFailure
        If B cannot be factorised or the sites do not stay finite.

    References
    ----------
    Minka (2001), Expectation Propagation for Approximate Bayesian Inference;
    Rasmussen & Williams (2006), section 3.6, for the formulas;
    van Gerven et al. (2010), NeuroImage 50, for parallel updates.
    """
    # What overflows shows as a mismatch or a log marginal that is not finite.
    with np.errstate(all="ignore"):
        return _run(prior, likelihood, start, tolerance, max_iterations, last_update)


def _run(prior, likelihood, start, tolerance, max_iterations, last_update):
    m = prior.mean
    W, nu = np.zeros((2, prior.size)) if start is None else (np.maximum(start[0], 0.0), start[1])
    damping, previous_mismatch = 1.0, np.inf
    for iteration in range(1, max_iterations + 1):
        factor, shifted, a, mean = condition_on_sites(prior, W, nu)
        # Cavities. Sigma_ii and its site would give them as differences, which lose all digits
        # for a narrow likelihood; b = (B^-1)_ii and a = nu - W mean do not.
        # Where the last update will be made, no sweep's own factor is the final one.
        variance, b = factor.marginals(consume=last_update)
        cavity_variance = variance / b
        cavity_precision = b / variance
        cavity_mean = mean - cavity_variance * a
        tilted = likelihood.tilted_moments(cavity_mean, cavity_variance)

        # A site that wants a negative precision gets none, but still matches the mean.
        W_new = np.maximum(1.0 / tilted.variance - cavity_precision, 0.0)
        precision_new = cavity_precision + W_new
        nu_new = tilted.mean * precision_new - cavity_mean * cavity_precision

        mismatch = max(
            np.max(np.abs(tilted.mean - mean) / np.sqrt(variance)),
            np.max(np.abs(1.0 / (precision_new * variance) - 1.0)),
        )
        if not np.isfinite(mismatch):
            raise NoFiniteApproximation(f"The moments of EP's sweep {iteration} are not finite.")
        converged = bool(mismatch < tolerance)
        if converged or iteration == max_iterations:
            break
        if mismatch > previous_mismatch:
            damping = max(0.5 * damping, _SMALLEST_DAMPING)
        previous_mismatch = mismatch
        W = W + damping * (W_new - W)
        nu = nu + damping * (nu_new - nu)

    log_marginal = _log_marginal(
        m, W, nu, shifted, mean, factor, cavity_precision, cavity_mean, tilted.log_normaliser
    )
    if not np.isfinite(log_marginal):
        raise NoFiniteApproximation("The EP log marginal is not finite.")
    if last_update:
        if converged:
            W, nu = W + damping * (W_new - W), nu + damping * (nu_new - nu)
        factor, _, a, mean = condition_on_sites(prior, W, nu)
    return Approximation(
        prior, mean, a, factor, log_marginal, iteration, converged, np.stack([W, nu])
    )


def _log_marginal(m, W, nu, shifted, mean, factor, cavity_precision, cavity_mean, log_normaliser):
    """Log ∫ N(f|m,K) prod_i t_i(f_i) df, each site scaled to the tilted normaliser."""
    # log ∫ cavity_i(f) exp(nu_i f - W_i f²/2) df
    natural_mean = cavity_mean * cavity_precision
    site_integrals = 0.5 * (
        (nu + natural_mean) ** 2 / (W + cavity_precision)
        - cavity_mean * natural_mean
        - np.log1p(W / cavity_precision)
    )
    gaussian = nu @ m - 0.5 * m @ (W * m) + 0.5 * shifted @ (mean - m)
    return float((log_normaliser - site_integrals).sum() + gaussian - 0.5 * factor.log_determinant)
