"""Mixtures of multivariate Student t densities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from pymc_pseudomarginal.kernels.mixing import log_sum_exp


@dataclass(frozen=True)
class StudentMixture:
    """sum_k weights_k t(centres_k, factors_k factors_k', degrees).

    Attributes
    ----------
    weights : array, shape (K,)
        They add up to one.
    centres : array, shape (K, d)
    factors : array, shape (K, d, d)
        Lower Cholesky factors of the scale matrices.
    degrees : array, shape (K,)
        Degrees of freedom.
    """

    weights: np.ndarray
    centres: np.ndarray
    factors: np.ndarray
    degrees: np.ndarray

    @classmethod
    def single(cls, centre: np.ndarray, factor: np.ndarray, degrees: float) -> StudentMixture:
        """One component, of centre (d,) and factor (d, d)."""
        return cls(np.ones(1), centre[None], factor[None], np.array([degrees]))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws, shape (count, d)."""
        k = np.searchsorted(self._cumulative, rng.uniform(size=count), side="right")
        z = rng.standard_normal((count, self.centres.shape[1]))
        precision = rng.chisquare(self.degrees[k]) / self.degrees[k]
        return self.centres[k] + np.einsum("kij,kj->ki", self.factors[k], z) / np.sqrt(
            precision[:, None]
        )

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """At every row, shape (m, d) to (m,)."""
        return log_sum_exp(self.log_parts(thetas)[0].T)

    def log_parts(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log weighted density of every component and squared distance from it, (K, m) each."""
        z = (thetas - self.centres[:, None]) @ self._transposed_inverses
        distances = np.einsum("kmd,kmd->km", z, z)
        degrees = self.degrees[:, None]
        half = 0.5 * (degrees + thetas.shape[1])
        return self._log_constants[:, None] - half * np.log1p(distances / degrees), distances

    def autoregress(self, rng: np.random.Generator, theta: np.ndarray, rho: float) -> np.ndarray:
        """A move that is reversible with respect to the mixture, shape (d,) to (d,).

        The component and its scale are drawn given theta; given them theta is Gaussian, and
        c + rho (theta - c) + sqrt(1 - rho²) noise leaves that Gaussian invariant.
        """
        parts, distances = self.log_parts(theta[None])
        shares = np.cumsum(np.exp(parts[:, 0] - parts[:, 0].max()))
        k = int(np.searchsorted(shares, rng.uniform() * shares[-1], side="right"))
        k = min(k, len(shares) - 1)
        shape = 0.5 * (self.degrees[k] + len(theta))
        precision = rng.gamma(shape) / (0.5 * (self.degrees[k] + distances[k, 0]))
        noise = self.factors[k] @ rng.standard_normal(len(theta)) / math.sqrt(precision)
        centre = self.centres[k]
        return centre + rho * (theta - centre) + math.sqrt(1.0 - rho * rho) * noise

    @cached_property
    def _cumulative(self) -> np.ndarray:
        cumulative = np.cumsum(self.weights)
        cumulative[-1] = 1.0
        return cumulative

    @cached_property
    def _transposed_inverses(self) -> np.ndarray:
        unit = np.eye(self.centres.shape[1])
        if not len(unit):
            return self.factors
        return np.stack([solve_triangular(factor, unit, lower=True).T for factor in self.factors])

    @cached_property
    def _log_constants(self) -> np.ndarray:
        d = self.centres.shape[1]
        diagonals = np.diagonal(self.factors, axis1=1, axis2=2)
        return (
            np.log(self.weights)
            + gammaln(0.5 * (self.degrees + d))
            - gammaln(0.5 * self.degrees)
            - 0.5 * d * np.log(self.degrees * math.pi)
            - np.log(diagonals).sum(axis=1)
        )
