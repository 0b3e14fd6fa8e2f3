"""A multivariate Student t density fitted to draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln

DEGREES = 6.0
"""Few enough for tails as heavy as a posterior may have, enough for a covariance to exist."""

# A density that is too wide loses a little everywhere, one that is too narrow sticks outside.
_WIDER = 1.1
_RIDGE = 1e-6


@dataclass(frozen=True)
class StudentT:
    """A multivariate Student t density with 6 degrees of freedom.

    Attributes
    ----------
    centre : array, shape (d,)
    factor : array, shape (d, d)
        Lower Cholesky factor of its scale matrix.
    """

    centre: np.ndarray
    factor: np.ndarray

    @classmethod
    def fitted(cls, draws: np.ndarray) -> StudentT:
        """With the mean and 1.1 times the covariance of draws of shape (m, d) as its scale."""
        d = draws.shape[1]
        covariance = _WIDER * np.cov(draws.T).reshape(d, d)
        ridge = _RIDGE * (np.trace(covariance) / d + 1e-12)
        return cls(draws.mean(axis=0), np.linalg.cholesky(covariance + ridge * np.eye(d)))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws, shape (count, d)."""
        return self.at(self.draw_standardised(rng, count))

    def draw_standardised(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws in units of the scale, from the centre, shape (count, d)."""
        z = rng.standard_normal((count, len(self.centre)))
        return z * np.sqrt(DEGREES / rng.chisquare(DEGREES, (count, 1)))

    def at(self, z: np.ndarray) -> np.ndarray:
        """The thetas that these standardise to, shape (..., d) to (..., d)."""
        return self.centre + z @ self.factor.T

    def standardised(self, thetas: np.ndarray) -> np.ndarray:
        """Thetas in units of the scale, from the centre, shape (m, d) to (m, d)."""
        return (thetas - self.centre) @ self._inverse_factor.T

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """At every row, shape (m, d) to (m,)."""
        return self.log_density_standardised(self.standardised(thetas))

    def log_density_standardised(self, z: np.ndarray) -> np.ndarray:
        """Of thetas, at every row of what they standardise to, shape (m, d) to (m,)."""
        half = 0.5 * (DEGREES + z.shape[1])
        return self._log_constant - half * np.log1p((z * z).sum(axis=1) / DEGREES)

    @cached_property
    def _inverse_factor(self):
        return solve_triangular(self.factor, np.eye(len(self.centre)), lower=True)

    @cached_property
    def _log_constant(self):
        d = len(self.centre)
        return float(
            gammaln(0.5 * (DEGREES + d))
            - gammaln(0.5 * DEGREES)
            - 0.5 * d * np.log(DEGREES * np.pi)
            - np.log(np.diagonal(self.factor)).sum()
        )
