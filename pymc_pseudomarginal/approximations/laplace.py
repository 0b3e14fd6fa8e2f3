"""Laplace's approximation: a Gaussian at the mode of p(x|y, theta), with its curvature."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pymc_pseudomarginal.approximations.smoothed import has_kinks, smoothed
from pymc_pseudomarginal.linalg.curvature import Weights
from pymc_pseudomarginal.linalg.factor import Factor, Plan
from pymc_pseudomarginal.linalg.latent import Derivatives, LatentAt
from pymc_pseudomarginal.linalg.products import times, transpose_times
from pymc_pseudomarginal.numerics.errors import (
    NoFiniteApproximation,
    NotPositiveDefinite,
    NumericalFailure,
)

_MAX_HALVINGS = 40
# A loss of this part of the objective is rounding, not descent.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Laplace:
    """q(x) = N(mean, P^-1), P = Q + A'WA.

    Parameters
    ----------
    mean : (n,) array
    weights : Weights
        W, of the last point at which Newton's step was taken.
    gradient : (m,) array
        Of the quadratic that stands for log p(y|eta), at the mean.
    factor : Factor
        Of P.
    iterations : int
        Factorisations.
    converged : bool
    """

    mean: np.ndarray
    weights: Weights
    gradient: np.ndarray
    factor: Factor
    iterations: int
    converged: bool


class _Point(NamedTuple):
    """x, eta and the likelihood there, log p(x|theta) and its gradient, and their sum psi."""

    x: np.ndarray
    eta: np.ndarray
    likelihood: Derivatives
    prior_gradient: np.ndarray
    psi: float


def laplace(
    at: LatentAt,
    plan: Plan,
    start: np.ndarray,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
) -> Laplace:
    """Laplace's approximation of p(x|y, theta) by Newton's method with a line search.

    The last step is taken with the factor in hand, so that W belongs to the point before it;
    the difference is of the order of the square root of `tolerance`. Where the likelihood has
    kinks (a zero second derivative on both sides), it is smoothed by q itself: see `smoothed`.

    Parameters
    ----------
    at : LatentAt
    plan : Plan
    start : (n,) array
        A guess of the mode. Where the density is zero there, or Newton's method fails from
        there, x = 0 and the prior's mean are tried instead.
    tolerance : float
        Bound on the squared Newton decrement s'P s, the length of a step in units of q's
        standard deviations, squared.
    max_iterations : int

    Returns
    -------
    Laplace

    Raises
    ------
    NumericalFailure
        P has no factor, or the density is zero wherever Newton's method could start.

    References
    ----------
    Rasmussen & Williams (2006), algorithm 3.1, in the space of x.
    """
    failure: NumericalFailure | None = None
    # What overflows shows as an objective that is not finite.
    with np.errstate(all="ignore"):
        for point in _starting_points(at, plan, start):
            try:
                return _from(at, plan, point, tolerance, max_iterations)
            except NumericalFailure as error:
                # From far away curvatures may differ by more than digits can hold.
                failure = failure or error
    if failure is not None:
        raise failure
    raise NoFiniteApproximation("log p(y, x|theta) is not finite where Newton could start.")


def _from(at: LatentAt, plan: Plan, point: _Point, tolerance: float, most: int) -> Laplace:
    """Laplace's approximation by the way that suits the likelihood."""
    spent = 0
    if has_kinks(plan, point.likelihood):
        fit = smoothed(at, plan, point.x)
        arrived, spent = _evaluate(at, fit.mean), fit.iterations
        # Saturated terms look like kinks from far away, and no longer do from here.
        if arrived is None or has_kinks(plan, arrived.likelihood):
            return Laplace(fit.mean, fit.weights, fit.gradient, fit.factor, spent, True)
        point = arrived
    return _newton(at, plan, point, tolerance, most, spent)


def _newton(
    at: LatentAt, plan: Plan, point: _Point, tolerance: float, max_iterations: int, spent: int
) -> Laplace:
    """Newton's iterations from a point with a finite objective."""
    for iteration in range(1, max_iterations + 1):
        weights, factor = _curvature_at(at, plan, point)
        uphill = transpose_times(at.predictor.matrix, point.likelihood.gradient)
        uphill += point.prior_gradient
        step = factor.solve(uphill)
        decrement = float(step @ uphill)
        if not np.isfinite(decrement):
            raise NoFiniteApproximation(f"Newton's step {iteration} is not finite.")
        if decrement < tolerance:
            return _result(at, point, step, weights, factor, spent + iteration, True)
        higher = _line_search(at, point, step)
        if higher is None or iteration == max_iterations:
            # No ascent is left in floating point, or time is up: q is centred where we are.
            arrived = decrement < _ROUNDING * (1.0 + abs(point.psi))
            step = step if arrived else np.zeros_like(step)
            return _result(at, point, step, weights, factor, spent + iteration, arrived)
        point = higher
    raise AssertionError("unreachable")


def _result(
    at: LatentAt,
    point: _Point,
    step: np.ndarray,
    weights: Weights,
    factor: Factor,
    iterations: int,
    converged: bool,
) -> Laplace:
    moved = times(at.predictor.matrix, step)
    gradient = point.likelihood.gradient - weights.times(moved)
    return Laplace(point.x + step, weights, gradient, factor, iterations, converged)


def _evaluate(at: LatentAt, x: np.ndarray) -> _Point | None:
    """The point x, or None if its density is not positive and finite."""
    eta = times(at.predictor.matrix, x) + at.predictor.offset
    if not np.isfinite(eta.sum()):
        return None
    likelihood = at.likelihood.derivatives(eta)
    prior_gradient = at.prior.gradient(x)
    prior = at.prior.constant + 0.5 * float(x @ (at.prior.linear + prior_gradient))
    psi = float(likelihood.value) + prior
    if not np.isfinite(psi + likelihood.gradient.sum()):
        return None
    return _Point(x, eta, likelihood, prior_gradient, psi)


def _starting_points(at: LatentAt, plan: Plan, start: np.ndarray) -> Iterator[_Point]:
    """The guess, x = 0 and the prior's mean, where the density is positive."""
    if (point := _evaluate(at, start)) is not None:
        yield point
    if start.any() and (point := _evaluate(at, np.zeros_like(start))) is not None:
        yield point
    zero = plan.curvature_form.of_diagonal(np.zeros(at.predictor.size))
    try:
        prior = plan.form.factor(at.prior, at.predictor, zero)
    except NotPositiveDefinite:
        return  # an improper prior has no mean
    if (point := _evaluate(at, prior.solve(at.prior.linear))) is not None:
        yield point


def _curvature_at(at: LatentAt, plan: Plan, point: _Point) -> tuple[Weights, Factor]:
    """W and the factor of P; from absolute curvatures where positive ones do not suffice."""
    curvature = point.likelihood.curvature
    weights = plan.curvature_form.weights(curvature)
    try:
        return weights, plan.form.factor(at.prior, at.predictor, weights)
    except NotPositiveDefinite:
        # Far from the data, log-concavity may be lost in all terms that hold x (Student t).
        diagonal = np.abs(plan.curvature_form.diagonal_of(curvature))
        weights = plan.curvature_form.of_diagonal(diagonal)
        return weights, plan.form.factor(at.prior, at.predictor, weights)


def _line_search(at: LatentAt, point: _Point, step: np.ndarray) -> _Point | None:
    """The first of the steps 1, 1/2, 1/4, ... that does not lower the objective."""
    floor = point.psi - _ROUNDING * (1.0 + abs(point.psi))
    moved = times(at.predictor.matrix, step)
    pulled = at.prior.precision_times(step)
    slope, bend = float(step @ point.prior_gradient), float(step @ pulled)
    prior = point.psi - float(point.likelihood.value)
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        eta = point.eta + length * moved
        value = prior + length * (slope - 0.5 * length * bend)
        likelihood = at.likelihood.derivatives(eta)
        psi = value + float(likelihood.value)
        if psi >= floor and np.isfinite(psi + likelihood.gradient.sum()):
            gradient = point.prior_gradient - length * pulled
            return _Point(point.x + length * step, eta, likelihood, gradient, psi)
        length *= 0.5
    return None
