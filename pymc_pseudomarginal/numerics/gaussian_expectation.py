"""Expectations of a function of one normal variable, for many of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_FIRST_STEP = 0.7  # in standard deviations: the rule is then exact for the density itself
_REACH = 8.5  # beyond it the density has no mass in double precision
_LONGEST_REACH = 40.0
_MAX_HALVINGS = 10
_ELEMENTS_AT_ONCE = 2**18


def gaussian_expectation(
    function: Callable[[np.ndarray], np.ndarray],
    mean: np.ndarray,
    variance: np.ndarray,
    *,
    tolerance: float = 1e-8,
) -> np.ndarray:
    """E g(f) for f ~ N(mean, variance), elementwise, by the trapezoidal rule.

    The rule converges exponentially for analytic g, however wide the normal is beside
    the features of g; its step is halved until two successive sums agree.

    Parameters
    ----------
    function : callable
        g: values of shape (Q, B) -> values of shape (Q, B) or (Q, B, C).
    mean, variance : array
        Of the same shape.
    tolerance : float
        Between successive sums, relative to the largest of one and the sum.

    Returns
    -------
    array
        Of the shape of `mean`, and (C,) if g has that axis.

    References
    ----------
    Trefethen & Weideman (2014), The exponentially convergent trapezoidal rule, SIAM
    Review 56.
    """
    shape = np.broadcast_shapes(mean.shape, variance.shape)
    flat_mean = np.broadcast_to(mean, shape).ravel()
    sd = np.sqrt(np.broadcast_to(variance, shape).ravel())
    # As many values at once as their first nodes fit into the bound.
    block = max(1, _ELEMENTS_AT_ONCE // int(2 * _REACH / _FIRST_STEP))
    parts = [
        _trapezoidal(function, flat_mean[i : i + block], sd[i : i + block], tolerance)
        for i in range(0, len(sd), block)
    ]
    result = np.concatenate(parts)
    return result.reshape(shape + result.shape[1:])


def _trapezoidal(function, mean, sd, tolerance):
    # A function that grows like exp(f) moves the mass of the integrand by sd.
    reach = min(_REACH + sd.max(initial=0.0), _LONGEST_REACH)
    n = int(np.ceil(reach / _FIRST_STEP))
    step = reach / n
    total = _sum(function, mean, sd, step * np.arange(-n, n + 1)) * step
    for _ in range(_MAX_HALVINGS):
        middles = step * (np.arange(-n, n) + 0.5)
        refined = 0.5 * (total + step * _sum(function, mean, sd, middles))
        change = np.abs(refined - total) / np.maximum(np.abs(refined), 1.0)
        total, step, n = refined, 0.5 * step, 2 * n
        if not (change > tolerance).any():
            break
    return total


def _sum(function, mean, sd, z):
    """Sum over the nodes z of phi(z) g(mean + sd z), in blocks of nodes."""
    rows = max(1, _ELEMENTS_AT_ONCE // max(1, len(mean)))
    total = 0.0
    for i in range(0, len(z), rows):
        nodes = z[i : i + rows]
        weights = np.exp(-0.5 * nodes**2) / np.sqrt(2.0 * np.pi)
        values = function(mean + sd * nodes[:, None])
        total = total + np.tensordot(weights, values, axes=1)
    return total
