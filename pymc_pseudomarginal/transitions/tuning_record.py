"""Where the chain has been while it was tuned, and what was found around there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

_CAPACITY = 512


@dataclass(frozen=True)
class TuningRecord:
    """Evenly spaced tuning draws of theta.

    When it is full every other draw is dropped, and from then on half as many are taken.

    Attributes
    ----------
    thetas : array, shape (m, d)
    every : int
        Draws from one entry to the next.
    seen : int
        Draws so far, recorded or not.
    """

    thetas: np.ndarray
    every: int = 1
    seen: int = 0

    @classmethod
    def empty(cls, dimension: int) -> TuningRecord:
        """Before the first draw."""
        return cls(np.empty((0, dimension)))

    def updated(self, theta: np.ndarray) -> TuningRecord:
        """The record after one more draw."""
        seen = self.seen + 1
        if seen % self.every:
            return replace(self, seen=seen)
        thetas = np.vstack([self.thetas, theta])
        if len(thetas) < _CAPACITY:
            return replace(self, thetas=thetas, seen=seen)
        return TuningRecord(thetas[1::2], 2 * self.every, seen)

    def settled(self) -> TuningRecord:
        """The later two thirds: the way to the posterior is left out."""
        return replace(self, thetas=self.thetas[len(self.thetas) // 3 :])

    def spread_out(self, count: int) -> np.ndarray:
        """At most so many of its thetas, evenly over the record and without repetitions."""
        different = self.thetas[np.sort(np.unique(self.thetas, axis=0, return_index=True)[1])]
        chosen = np.linspace(0, len(different) - 1, min(count, len(different)))
        return different[chosen.round().astype(int)]


@dataclass(frozen=True)
class Exploration:
    """An approximation at thetas where the chain has been, and at others further out.

    Attributes
    ----------
    thetas : array, shape (m, d)
    levels : array, shape (m,)
        Log of p(theta) Z_q(theta), finite.
    anchors : array, shape (m, ...)
        Of the approximations.
    """

    thetas: np.ndarray
    levels: np.ndarray
    anchors: np.ndarray
