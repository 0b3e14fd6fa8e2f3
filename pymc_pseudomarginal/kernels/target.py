"""What the kernels ask of a model: a Gaussian q at every theta, seen through its noise.

The target of every kernel is pi(theta, u) = p(theta) N(u; 0, I) w(theta, u), where
w(theta, u) = p(y, x|theta) / q_theta(x) at x = latent(u).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

import numpy as np


class Conditional(Protocol):
    """q at one theta and the map from noise u to the latent x."""

    @property
    def theta(self) -> np.ndarray:
        """Where it was made, shape (d,)."""

    @property
    def log_prior(self) -> float:
        """Log p(theta)."""

    @property
    def size(self) -> int:
        """Length n of u and of x."""

    @property
    def mean(self) -> np.ndarray:
        """The latent at u = 0, shape (n,)."""

    def latent(self, u: np.ndarray) -> np.ndarray:
        """The latent at noise of shape (n,) or (k, n)."""

    def noise(self, x: np.ndarray) -> np.ndarray:
        """The noise of a latent, shape (n,)."""

    def log_weight(self, u: np.ndarray) -> float:
        """Log w(theta, u) at noise of shape (n,): perhaps minus infinity, never NaN."""

    def log_weight_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Log w and its gradient in u, shape (n,)."""

    def log_weights(self, u: np.ndarray) -> np.ndarray:
        """Log w at every row, shape (k, n) to (k,)."""


class Target(Protocol):
    """A posterior of theta and x."""

    @property
    def dim_theta(self) -> int:
        """Number d of hyper-parameters; perhaps 0."""

    @property
    def size(self) -> int:
        """Length n of the noise."""

    def at(self, theta: np.ndarray) -> Conditional:
        """Q at theta, a function of theta alone; raises `NumericalFailure`."""

    def learn_start(self, conditionals: Sequence[Conditional]) -> Self:
        """A target that finds q faster, learnt from some of them."""

    def frozen(self) -> dict[str, np.ndarray]:
        """What was learnt, as arrays."""

    def thawed(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """The target that had learnt them."""
