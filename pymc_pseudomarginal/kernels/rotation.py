"""u given theta by Hamiltonian trajectories whose flow between kicks is exact.

The Hamiltonian is (u'u + p'p)/2 - log w(theta, u). Without w its flow rotates (u, p); w enters
by kicks of the momentum. Where q is the conditional, w is constant, nothing is ever rejected and
a quarter turn makes u' independent of u. References: Shahbaba et al. (2014), Split Hamiltonian
Monte Carlo; Blanes, Casas and Sanz-Serna (2014) for the two-stage weights.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pymc_pseudomarginal.kernels.state import State, acceptance_probability, finite_or_nothing
from pymc_pseudomarginal.kernels.target import Conditional

QUARTER_TURN = 0.5 * math.pi
# The angle varies by this share either way, so that no trajectory closes on itself.
_ANGLE_SPREAD = 0.2
# First weight of the two-stage integrator with the smallest error at moderate steps.
_TWO_STAGE = 0.19318


def kick_weights(kicks: int) -> np.ndarray:
    """Symmetric weights of the kicks, shape (kicks + 1,), which add up to `kicks`.

    Even numbers take the two-stage integrator, odd ones the leapfrog.
    """
    if kicks % 2:
        weights = np.ones(kicks + 1)
        weights[[0, -1]] = 0.5
        return weights
    weights = np.full(kicks + 1, 2.0 * (1.0 - 2.0 * _TWO_STAGE))
    weights[::2] = 4.0 * _TWO_STAGE
    weights[[0, -1]] = 2.0 * _TWO_STAGE
    return weights


def trajectory(
    conditional: Conditional, u: np.ndarray, p: np.ndarray, kicks: int, angle: float
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Follow (u, p) through an angle.

    Parameters
    ----------
    conditional : Conditional
    u, p : arrays, shape (n,)
    kicks : int
        Number of rotations, with a kick before the first and after each.
    angle : float
        Their sum, in radians.

    Returns
    -------
    u, p : arrays, shape (n,)
    log_weight : float
        At the end.
    change : float
        log w - p'p/2 - u'u/2 at the end minus the same at the start.
    """
    step = angle / kicks
    cosine, sine = math.cos(step), math.sin(step)
    weights = step * kick_weights(kicks)
    log_weight, gradient = conditional.log_weight_and_gradient(u)
    start = log_weight - 0.5 * (u @ u + p @ p)
    p = p + weights[0] * gradient
    for weight in weights[1:]:
        u, p = cosine * u + sine * p, cosine * p - sine * u
        log_weight, gradient = conditional.log_weight_and_gradient(u)
        p = p + weight * gradient
    return u, p, log_weight, log_weight - 0.5 * (u @ u + p @ p) - start


def rotate(
    rng: np.random.Generator, state: State, kicks: int, angle: float = QUARTER_TURN
) -> tuple[State, float]:
    """Move u at fixed theta; the new state and the probability with which it was accepted."""
    p = rng.standard_normal(len(state.u))
    turn = angle * rng.uniform(1.0 - _ANGLE_SPREAD, 1.0 + _ANGLE_SPREAD)
    coin = rng.uniform()
    # A trajectory that overflows has an energy of no number or of infinity: a rejection.
    with np.errstate(all="ignore"):
        u, _, log_weight, change = trajectory(state.conditional, state.u, p, kicks, turn)
    log_weight = finite_or_nothing(log_weight)
    probability = acceptance_probability(change) if log_weight > -math.inf else 0.0
    if coin < probability:
        return replace(state, u=u, log_weight=log_weight), probability
    return state, probability
