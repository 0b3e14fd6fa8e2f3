"""Overrelaxation: from a point of a density to one on the other side of it.

A pool of the current point and of draws of a density t is ordered along a line. Given the pool,
the current point is any member with a probability in proportion to its weight, the target over t.
The members share the unit interval by their weights; a position within the share of the current
one is reflected to the other end of the interval and shifted, and the member to which it falls
comes next. Reflection and shift have a density that is symmetric in the two positions, so that
one move is as likely as its reverse once weighted, and none is ever rejected.

Draws that lie opposite each other cancel in means. The shift is over half of the interval: the
distance of a position from the middle is then independent of that before, and nothing is lost for
variances, as it would be by reflection alone.

References
----------
Neal (1998), Suppressing random walks in Markov chain Monte Carlo using ordered overrelaxation, in
Learning in Graphical Models; Tjelmeland (2004), Using all Metropolis-Hastings proposals to estimate
mean values.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Largest shift, as a share of the interval.
_SHIFT = 0.5


@njit(cache=True)
def opposite_position(position: float, uniform: float) -> float:
    """Of a position in the unit interval, reflected and shifted by a uniform number."""
    shifted = abs(1.0 - position + _SHIFT * (2.0 * uniform - 1.0))
    return 2.0 - shifted if shifted > 1.0 else shifted


@njit(cache=True)
def opposite_member(places: np.ndarray, weights: np.ndarray, uniforms: np.ndarray) -> int:
    """Which member of a pool comes after the first.

    Parameters
    ----------
    places : array, shape (m,)
        Of the members, along a line.
    weights : array, shape (m,)
        Of the target relative to the density of the draws.
    uniforms : array, shape (2,)
        Where in its own share the first member is, and the shift.
    """
    before = weights[places < places[0]].sum()
    total = weights.sum()
    position = (before + uniforms[0] * weights[0]) / total
    wanted = opposite_position(position, uniforms[1]) * total
    order = np.argsort(places)
    for i in order:
        wanted -= weights[i]
        if wanted <= 0.0:
            return i
    return order[-1]
