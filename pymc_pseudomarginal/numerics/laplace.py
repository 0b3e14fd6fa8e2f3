"""Laplace's approximation: a Gaussian at the mode of p(f|y), with its curvature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation, NumericalFailure
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DenseFactor, DensePrior

_MAX_HALVINGS = 30
_ROUNDING = 1e-13


class _Point(NamedTuple):
    """f = m + K a, and Psi(f) = log p(y|f) - aᵀ(f - m)/2."""

    a: np.ndarray
    f: np.ndarray
    psi: float


def laplace(
    prior: DensePrior,
    likelihood: Likelihood,
    *,
    start: np.ndarray | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    chord_tolerance: float = 0.0,
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
        A guess of the mode (the ``anchor`` of another approximation). Newton's first step
        is made there, unless it ends lower than where it would start otherwise, f = m.
    tolerance : float
        Bound on the squared Newton decrement Δfᵀ (K^-1 + W) Δf.
    max_iterations : int
    chord_tolerance : float
        Bound on the squared decrement of a chord step: one step more with the factor in hand,
        which costs no Cholesky. Below it that factor is kept, though its W belongs to the point
        before. It is a q for importance sampling, often after a single Cholesky; its log
        marginal is less accurate. Zero asks for W at the mode itself.

    Returns
    -------
    Approximation

    Raises
    ------
    NumericalFailure
        If B cannot be factorised or no finite mode is found.

    References
    ----------
    Rasmussen & Williams (2006), algorithm 3.1; Kelley (1995), Iterative Methods for Linear
    and Nonlinear Equations, chapter 5, for chord steps.
    """
    # What overflows shows as a decrement or a log marginal that is not finite.
    with np.errstate(all="ignore"):
        at, factor, iterations, converged = _climb(
            prior, likelihood, start, tolerance, max_iterations, chord_tolerance
        )
    log_marginal = at.psi - 0.5 * factor.log_determinant
    if not np.isfinite(log_marginal):
        raise NoFiniteApproximation("The Laplace log marginal is not finite.")
    return Approximation(prior, at.f, at.a, factor, log_marginal, iterations, converged, at.f)


def _climb(prior, likelihood, start, tolerance, max_iterations, chord_tolerance):
    """(point arrived at, factor, iterations, whether converged)."""
    at, factor = _starting_point(prior, likelihood, start)
    iteration = 0 if factor is None else 1
    while True:
        if factor is not None and chord_tolerance > 0.0:
            chord, decrement = _chord_step(prior, likelihood, factor, at)
            if chord.psi > at.psi:
                at = chord
                if decrement < chord_tolerance:
                    return at, factor, iteration, True
        if iteration >= max_iterations:
            return at, prior.condition(likelihood.derivatives(at.f)[1]), iteration, False
        iteration += 1
        newton, factor = _newton_step(prior, likelihood, at.f)
        decrement = _squared_length(newton.a - at.a, newton.f - at.f, factor)
        if not np.isfinite(decrement):
            raise NoFiniteApproximation(f"Newton's step {iteration} is not finite.")
        if decrement < tolerance:
            return newton, factor, iteration, True
        higher = _line_search(prior, likelihood, at, newton)
        if higher is None:
            # No ascent is left in floating point: rounding hides the rest of the way.
            converged = decrement < _ROUNDING * (1.0 + abs(at.psi))
            return newton if converged else at, factor, iteration, converged
        at = higher


def _starting_point(prior, likelihood, start):
    """Where to start, and the factor of the step that led there, if one did."""
    cold = _point(prior, likelihood, np.zeros(prior.size), prior.mean)
    if start is not None:
        try:
            warm, factor = _newton_step(prior, likelihood, start)
        except NumericalFailure:
            pass  # the guess is far off
        else:
            if np.isfinite(warm.psi) and not warm.psi < cold.psi:
                return warm, factor
    if not np.isfinite(cold.psi):
        raise NoFiniteApproximation("log p(y|f) is not finite where Newton's method starts.")
    return cold, None


def _newton_step(prior, likelihood, f) -> tuple[_Point, DenseFactor]:
    """The maximum of the quadratic approximation of Psi at f, and the factor of its B."""
    gradient, W = likelihood.derivatives(f)
    if not np.isfinite(gradient.sum() + W.sum()):
        raise NoFiniteApproximation("The derivatives of log p(y|f) are not finite.")
    factor = prior.condition(W)
    b = W * (f - prior.mean) + gradient
    a = b - factor.solve(prior.multiply(b))
    return _point(prior, likelihood, a, prior.mean + prior.multiply(a)), factor


def _chord_step(prior, likelihood, factor, at) -> tuple[_Point, float]:
    """The step (K^-1 + W)^-1 grad Psi with the W of a factor in hand, and its squared length."""
    gradient = likelihood.derivatives(at.f)[0] - at.a
    da = gradient - factor.solve(prior.multiply(gradient))
    df = prior.multiply(da)
    return _point(prior, likelihood, at.a + da, at.f + df), _squared_length(da, df, factor)


def _squared_length(da, df, factor):
    """Δfᵀ (K^-1 + W) Δf for Δf = K Δa."""
    return float(da @ df + factor.precision @ df**2)


def _line_search(prior, likelihood, at, newton) -> _Point | None:
    """The first point with a higher Psi on the way halved again and again, or None."""
    candidate, step = newton, 1.0
    for _ in range(_MAX_HALVINGS):
        if candidate.psi > at.psi:
            return candidate
        step *= 0.5
        a, f = at.a + step * (newton.a - at.a), at.f + step * (newton.f - at.f)
        candidate = _point(prior, likelihood, a, f)
    return None


def _point(prior, likelihood, a, f):
    return _Point(a, f, float(likelihood.log_density(f)) - 0.5 * float(a @ (f - prior.mean)))
