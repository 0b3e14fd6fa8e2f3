"""Maximisation of a smooth function that fails at some theta, and its curvature there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from pymc_pseudomarginal.numerics.errors import NumericalFailure

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""theta, shape (d,), to a log density and its gradient, shape (d,); may raise NumericalFailure."""

# How much worse than at its start the function is taken to be where it fails. A larger number
# would make the line search, which interpolates, creep.
_PENALTY = 1e3
# What may be left of the gradient, in nats per unit of theta, at an optimum.
_CONVERGED = 1e-3
# A difference, in nats, that counts as none.
_FLAT = 1e-3
# Of differences of the gradient, relative to max(1, |theta_j|): errors of 1e-8 in the gradient
# then leave the Hessian five digits.
_STEP = 1e-3


class Climb(NamedTuple):
    """One run of the optimiser.

    Attributes
    ----------
    initial, theta : array, shape (d,)
        Where it began and where it arrived; NaN if it failed.
    value : float
        The function at theta; -inf if it failed.
    converged : bool
    evaluations : int
    """

    initial: np.ndarray
    theta: np.ndarray
    value: float
    converged: bool
    evaluations: int


def climb(function: Objective, initial: np.ndarray, box: np.ndarray) -> Climb:
    """Maximise inside a box by L-BFGS-B; where the function fails it counts as very bad.

    Parameters
    ----------
    function : Objective
    initial : array, shape (d,)
    box : array, shape (2, d)
        Lower and upper bounds.
    """
    try:
        first, _ = function(initial)
    except NumericalFailure:
        return Climb(initial, np.full(initial.size, np.nan), -np.inf, False, 1)

    def negative(theta):
        try:
            value, gradient = function(theta)
        except NumericalFailure:
            return _PENALTY - first, np.zeros(theta.size)
        return -value, -gradient

    options = {"ftol": 1e-14, "gtol": 1e-6, "maxiter": 1000, "maxls": 40}
    found = minimize(negative, initial, jac=True, bounds=box.T, method="L-BFGS-B", options=options)
    # Judged anew: rounding may end the solver's line search, a failure to it, at an optimum.
    uphill = np.clip(found.x - found.jac, *box) - found.x
    converged = bool(np.max(np.abs(uphill)) < _CONVERGED)
    return Climb(initial, found.x, -float(found.fun), converged, found.nfev + 1)


def unbounded_elements(function: Objective, found: Climb, box: np.ndarray) -> np.ndarray:
    """Which elements of theta could as well lie on the edge of the box, shape (d,) of bool.

    An optimiser on its way to infinity stops early where the function flattens out, so
    that the edge itself is tried: one element at a time, the others staying.
    """

    def as_high_at(j, edge):
        theta = found.theta.copy()
        theta[j] = edge
        try:
            return function(theta)[0] > found.value - _FLAT
        except NumericalFailure:
            return False

    d = found.theta.size
    return np.array([any(as_high_at(j, edge) for edge in box[:, j]) for j in range(d)])


def curvature_covariance(
    function: Objective, theta: np.ndarray, chosen: np.ndarray, box: np.ndarray
) -> np.ndarray:
    """Inverse of the negative Hessian at theta in the chosen elements, the others fixed.

    Parameters
    ----------
    function : Objective
    theta : array, shape (d,)
    chosen : array of bool, shape (d,)
    box : array, shape (2, d)

    Returns
    -------
    array, shape (d, d)
        NaN for elements not chosen, and for all if the Hessian is not negative definite or
        so flat along some direction that a standard deviation exceeds the width of the box.
    """
    elements = np.flatnonzero(chosen)
    covariance = np.full((theta.size, theta.size), np.nan)
    try:
        rows = [_gradient_difference(function, theta, j)[elements] for j in elements]
    except NumericalFailure:
        return covariance
    hessian = np.reshape(rows, (elements.size, elements.size))
    precision = -0.5 * (hessian + hessian.T)
    width = np.diff(box, axis=0)[0, elements]
    if np.all(np.linalg.eigvalsh(width[:, None] * precision * width) > 1.0):
        covariance[np.ix_(elements, elements)] = np.linalg.inv(precision)
    return covariance


def _gradient_difference(function, theta, j):
    """The column j of the Hessian by central differences, shape (d,)."""
    step = np.zeros(theta.size)
    step[j] = _STEP * max(1.0, abs(theta[j]))
    return (function(theta + step)[1] - function(theta - step)[1]) / (2.0 * step[j])
