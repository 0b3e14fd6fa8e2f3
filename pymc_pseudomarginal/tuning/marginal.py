"""The approximate log marginal posterior of theta, counted and remembered."""

from __future__ import annotations

import math

import numpy as np

from pymc_pseudomarginal.kernels.target import Conditional, Target
from pymc_pseudomarginal.numerics.errors import NumericalFailure

# Numbers that the kept conditionals may hold, were each a dense matrix.
_KEPT_NUMBERS = 3e7
_MOST_KEPT = 32
# A conditional this much below the best tells nothing about where chains will be.
_TOO_LOW = 12.0


def laplace_level(conditional: Conditional) -> float:
    """Log p(theta) + log w(theta, 0); minus infinity where it is not a number."""
    value = float(conditional.log_prior + conditional.log_weight(np.zeros(conditional.size)))
    return value if value < math.inf else -math.inf


class Marginal:
    """a(theta) = log p(theta) + log w(theta, 0), Laplace's log p(theta, y).

    Attributes
    ----------
    thetas : list of arrays, shape (d,)
        Everywhere it is known.
    values : list of float
        a there; minus infinity where q could not be computed.
    evaluations : int
        How often q was computed.
    """

    def __init__(self, target: Target):
        self.target = target
        self.thetas: list[np.ndarray] = []
        self.values: list[float] = []
        self.evaluations = 0
        self._kept: list[tuple[float, Conditional]] = []

    def __call__(self, theta: np.ndarray) -> float:
        """The value at theta, shape (d,)."""
        theta = np.array(theta, dtype=float)
        self.evaluations += 1
        try:
            conditional = self.target.at(theta)
            value = laplace_level(conditional)
        except NumericalFailure:
            value = -math.inf
        else:
            self._keep(value, conditional)
        self.remember(theta, value)
        return value

    def looked_up(self, thetas: np.ndarray) -> np.ndarray:
        """The values at rows, (k, d) to (k,)."""
        return np.array([self(theta) for theta in thetas])

    def remember(self, theta: np.ndarray, value: float) -> None:
        """A value that was found elsewhere."""
        self.thetas.append(theta)
        self.values.append(value)

    def conditionals(self) -> list[Conditional]:
        """The ones to learn from: the highest, no more than memory allows."""
        best = max((value for value, _ in self._kept), default=-math.inf)
        return [conditional for value, conditional in self._kept if value > best - _TOO_LOW]

    def _keep(self, value: float, conditional: Conditional) -> None:
        if value == -math.inf:
            return
        allowed = _KEPT_NUMBERS / max(self.target.size, 1) ** 2
        most = max(self.target.dim_theta + 3, int(min(_MOST_KEPT, allowed)))
        self._kept.append((value, conditional))
        if len(self._kept) > most:
            lowest = min(range(len(self._kept)), key=lambda i: self._kept[i][0])
            del self._kept[lowest]
