"""Proposals for theta.

A proposal is a callable (rng, theta) -> (new, log q(theta|new) - log q(new|theta)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Proposal = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, float]]


@dataclass(frozen=True)
class RandomWalk:
    """theta' ~ N(theta, L Lᵀ), symmetric.

    Attributes
    ----------
    factor : array, shape (d, d)
        L, lower triangular.
    """

    factor: np.ndarray

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A new theta, and the log ratio of proposal densities (zero)."""
        return theta + self.factor @ rng.standard_normal(len(theta)), 0.0
