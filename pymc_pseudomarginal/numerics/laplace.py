"""Laplace's approximation: a Gaussian at the mode of p(f|y), with its curvature."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DensePrior

_MAX_HALVINGS = 30
_ROUNDING = 1e-13


def laplace(
    prior: DensePrior,
    likelihood: Likelihood,
    *,
    start: np.ndarray | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
) -> Approximation:
    """Laplace approximation of p(f|y) by Newton's method with a line search.

    Newton runs on a = K^-1 (f - m), which is all that Psi(f) = log p(y|f) -
    aᵀ(f - m)/2 needs. An iteration costs one Cholesky of B; the last one serves
    both the convergence test and the approximation itself.

    Parameters
    ----------
    prior : DensePrior
    likelihood : Likelihood
    start : array, shape (n,), optional
        A value of a to start from (the ``anchor`` of another approximation). The
        better of it and a = 0 is taken.
    tolerance : float
        Bound on the squared Newton decrement Δfᵀ (K^-1 + W) Δf.
    max_iterations : int

    Returns
    -------
    Approximation

    Raises
    ------
    NumericalFailure
        If B cannot be factorised or no finite mode is found.

    References
    ----------
    Rasmussen & Williams (2006), algorithm 3.1.
    """
    # What overflows shows as a decrement or a log marginal that is not finite.
    with np.errstate(all="ignore"):
        return _run(prior, likelihood, start, tolerance, max_iterations)


def _run(prior, likelihood, start, tolerance, max_iterations):
    m = prior.mean
    a, f, psi = _starting_point(prior, likelihood, start)
    converged = False
    for iteration in range(1, max_iterations + 1):
        gradient, W = likelihood.derivatives(f)
        if not np.isfinite(gradient.sum() + W.sum()):
            raise NoFiniteApproximation("The derivatives of log p(y|f) are not finite.")
        factor = prior.condition(W)
        b = W * (f - m) + gradient
        a_newton = b - factor.solve(prior.multiply(b))
        f_newton = m + prior.multiply(a_newton)
        da, df = a_newton - a, f_newton - f
        decrement = float(da @ df + W @ df**2)
        if not np.isfinite(decrement):
            raise NoFiniteApproximation(f"Newton's step {iteration} is not finite.")
        if decrement < tolerance:
            converged = True
            break
        step, psi_new = _line_search(likelihood, m, a, f, da, df, psi)
        if step == 0.0:
            # No ascent is left in floating point: rounding hides the rest of the way.
            converged = decrement < _ROUNDING * (1.0 + abs(psi))
            break
        a, f, psi = a + step * da, f + step * df, psi_new
    if converged:
        a, f = a_newton, f_newton
        psi = _objective(likelihood, m, a, f)
    elif step != 0.0:
        factor = prior.condition(likelihood.derivatives(f)[1])
    log_marginal = psi - 0.5 * factor.log_determinant
    if not np.isfinite(log_marginal):
        raise NoFiniteApproximation("The Laplace log marginal is not finite.")
    return Approximation(prior, f, a, factor, log_marginal, iteration, converged, a)


def _starting_point(prior, likelihood, start):
    """The better of a = 0 and the given start: (a, f, Psi)."""
    zero = np.zeros(prior.size)
    a, f, psi = zero, prior.mean, _objective(likelihood, prior.mean, zero, prior.mean)
    if start is not None:
        f_start = prior.mean + prior.multiply(start)
        psi_start = _objective(likelihood, prior.mean, start, f_start)
        if psi_start > psi or not np.isfinite(psi):
            a, f, psi = start, f_start, psi_start
    if not np.isfinite(psi):
        raise NoFiniteApproximation("log p(y|f) is not finite where Newton's method starts.")
    return a, f, psi


def _line_search(likelihood, m, a, f, da, df, psi):
    """Halve the Newton step until Psi increases: (step, Psi), step 0 if it never does."""
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        psi_new = _objective(likelihood, m, a + step * da, f + step * df)
        if psi_new > psi:
            return step, psi_new
        step *= 0.5
    return 0.0, psi


def _objective(likelihood, m, a, f):
    return float(likelihood.log_density(f)) - 0.5 * float(a @ (f - m))
