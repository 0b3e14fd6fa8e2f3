"""What the approximations and the samplers ask of a likelihood."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np


class TiltedMoments(NamedTuple):
    """Moments of p(y_i|f_i) N(f_i | mean_i, variance_i), each of shape (n,)."""

    log_normaliser: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


class Likelihood(Protocol):
    """p(y|f) = prod_i p(y_i|f_i), the data y held inside."""

    def log_density(self, f: np.ndarray) -> np.ndarray:
        """sum_i log p(y_i|f_i), for f of shape (..., n); shape (...)."""

    def derivatives(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of log p and its negative curvature W >= 0, each of shape (n,)."""

    def third_derivative(self, f: np.ndarray) -> np.ndarray:
        """d³ log p(y_i|f_i) / df_i³, shape (n,)."""

    def tilted_moments(self, mean: np.ndarray, variance: np.ndarray) -> TiltedMoments:
        """Normaliser, mean and variance of p(y_i|f_i) N(f_i|mean_i, variance_i)."""
