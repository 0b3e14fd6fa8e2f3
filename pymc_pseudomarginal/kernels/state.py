"""The state of a chain, and what a draw tells about itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.kernels.target import Conditional, Target
from pymc_pseudomarginal.numerics.errors import NumericalFailure


@dataclass(frozen=True)
class State:
    """Where a chain is.

    Attributes
    ----------
    theta : array, shape (d,)
    u : array, shape (n,)
    conditional : Conditional
        q at theta; kept for speed alone, `target.at(theta)` makes the same again.
    log_weight : float
        log w(theta, u).
    """

    theta: np.ndarray
    u: np.ndarray
    conditional: Conditional
    log_weight: float

    @property
    def log_level(self) -> float:
        """Log p(theta) + log w(theta, u)."""
        return self.conditional.log_prior + self.log_weight

    @property
    def latent(self) -> np.ndarray:
        """The latent x, shape (n,)."""
        return self.conditional.latent(self.u)


@dataclass(frozen=True)
class Info:
    """What happened in a draw.

    Attributes
    ----------
    acceptance : float
        Mean acceptance probability of the moves of theta; NaN when there was none.
    moved : bool
        Whether one of them was accepted.
    noise_acceptance : float
        Acceptance probability of the move of u alone; NaN when there was none.
    joint : bool
        Whether theta and u were proposed together.
    failed : int
        Number of proposals at which q could not be computed: rejections.
    evaluations : int
        Number of thetas at which q was asked for.
    """

    acceptance: float = math.nan
    moved: bool = False
    noise_acceptance: float = math.nan
    joint: bool = False
    failed: int = 0
    evaluations: int = 0


def state_at(target: Target, theta: np.ndarray, u: np.ndarray) -> State:
    """The state at theta, shape (d,), and u, shape (n,); raises `NumericalFailure`."""
    conditional = target.at(theta)
    return State(theta, u, conditional, finite_or_nothing(conditional.log_weight(u)))


def proposed_state(target: Target, theta: np.ndarray, u: np.ndarray) -> State | None:
    """The same, or None where q cannot be computed: a proposal to reject."""
    try:
        return state_at(target, theta, u)
    except NumericalFailure:
        return None


def restored(target: Target, theta: np.ndarray, u: np.ndarray, log_weight: float) -> State:
    """The state of which these were kept; with the generator's state, draws go on identically."""
    return State(theta, u, target.at(theta), float(log_weight))


def finite_or_nothing(log_weight: float) -> float:
    """Not a number and plus infinity are no weights: minus infinity, which is never accepted."""
    return float(log_weight) if log_weight < math.inf else -math.inf


def acceptance_probability(log_ratio: float) -> float:
    """min(1, exp(log_ratio)); 0 where that is not a number."""
    return 0.0 if math.isnan(log_ratio) else math.exp(min(0.0, log_ratio))
