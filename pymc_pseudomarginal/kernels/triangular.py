"""A density of theta as a chain of conditionals: skewed, bent and of changing width.

One coordinate after the other: its mean is a quadratic and the logarithm of its width is linear in
those before it, and what remains is a mixture of normals in one dimension. A funnel and a banana
are of this kind exactly. Reference: Parno and Marzouk (2018), Transport map accelerated MCMC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from pymc_pseudomarginal.kernels.mixing import log_sum_exp

STRAY_SHARE, STRAY_WIDTH = 0.05, 3.0
"""Probability that one coordinate is a stray, and standard deviation of a stray over its own."""

WIDEST = 12.0
"""Bound on the logarithm of a width: none overflows, however far theta is."""

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class TriangularDensity:
    """theta[order] = centre + factor v, v_j = m_j(v_<j) + exp(l_j(v_<j)) e_j, e_j ~ a mixture.

    With a small probability one of the e_j is drawn from a wide normal instead: tails along one
    coordinate are covered at a cost that does not grow with the dimension.

    Attributes
    ----------
    order : array of int, shape (d,)
    centre : array, shape (d,)
    factor : array, shape (d, d)
        Lower triangular.
    bends : array, shape (d, p)
        Coefficients of m_j over `monomials(v)`; those of coordinates from j on are zero.
    slopes : array, shape (d, d)
        Coefficients of l_j over v, strictly lower triangular.
    weights, means, sds : arrays, shape (d, K)
        Of the mixtures; weights of a row add up to one.
    """

    order: np.ndarray
    centre: np.ndarray
    factor: np.ndarray
    bends: np.ndarray
    slopes: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    sds: np.ndarray

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws, shape (count, d)."""
        d = len(self.order)
        k = (rng.uniform(size=(count, d, 1)) > self._cumulative).sum(axis=2)
        which, strays = rng.integers(d, size=count), rng.uniform(size=count) < STRAY_SHARE
        k[strays, which[strays]] = self.weights.shape[1]
        means, sds = self._normals(k)
        return self._theta(means + sds * rng.standard_normal((count, d)))

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """At every row, shape (m, d) to (m,)."""
        return self.log_density_of(*self.standardised(thetas))

    def log_density_of(self, e: np.ndarray, log_widths: np.ndarray) -> np.ndarray:
        """The same, of what is `standardised` there, shape (m, d) each."""
        usual, strays = self._log_parts(e)
        usual = log_sum_exp(usual)
        whole = usual.sum(axis=1) - log_widths.sum(axis=1) - self._log_volume
        return whole + log_sum_exp(self._log_strays(usual, strays))

    def standardised(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All e_j and the logarithms of their widths at every row, (m, d) to (m, d) each."""
        v = (thetas[:, self.order] - self.centre) @ self._transposed_inverse
        log_widths = self._log_widths(v)
        return (v - monomials(v) @ self.bends.T) * np.exp(-log_widths), log_widths

    def autoregress(self, rng: np.random.Generator, theta: np.ndarray, rho: float) -> np.ndarray:
        """A move that is reversible with respect to the density, shape (d,) to (d,).

        The normal of every e_j is drawn given them; e_j then moves across it.
        """
        e = self.standardised(theta[None])[0][0]
        usual, strays = self._log_parts(e)
        k = _drawn(rng, usual)
        logs = self._log_strays(log_sum_exp(usual)[None], strays[None])
        stray = int(_drawn(rng, logs)[0])
        if stray:
            k[stray - 1] = self.weights.shape[1]
        means, sds = self._normals(k)
        noise = sds * rng.standard_normal(len(e))
        return self._theta((means + rho * (e - means) + math.sqrt(1.0 - rho * rho) * noise)[None])[
            0
        ]

    @cached_property
    def spreads(self) -> np.ndarray:
        """Standard deviations of the e_j, without strays, shape (d,)."""
        squares = (self.weights * (self.means**2 + self.sds**2)).sum(axis=1)
        return np.sqrt(squares - self._overall_means**2)

    def _theta(self, e: np.ndarray) -> np.ndarray:
        v = np.zeros_like(e)
        for j in range(e.shape[1]):
            v[:, j] = monomials(v) @ self.bends[j] + np.exp(self._log_widths(v, j)) * e[:, j]
        thetas = np.empty_like(v)
        thetas[:, self.order] = self.centre + v @ self.factor.T
        return thetas

    def _log_widths(self, v, rows=slice(None)):
        return np.clip(v @ self.slopes[rows].T, -WIDEST, WIDEST)

    def _log_parts(self, e):
        """Log weighted density of every component (..., d, K), and of a stray (..., d)."""
        z = (e[..., None] - self.means) / self.sds
        sds = STRAY_WIDTH * self.spreads
        stray = (e - self._overall_means) / sds
        return (
            self._log_constants - 0.5 * z * z,
            -0.5 * stray * stray - np.log(sds) - 0.5 * _LOG_2PI,
        )

    def _log_strays(self, usual, strays):
        """Log probability of no stray and of each, over the usual density, (m, d) to (m, 1 + d)."""
        none = np.full((len(usual), 1), math.log1p(-STRAY_SHARE))
        return np.hstack([none, math.log(STRAY_SHARE / usual.shape[1]) + strays - usual])

    def _normals(self, k):
        """Means and standard deviations of components, the last of which is a stray's."""
        rows = np.arange(len(self.order))
        means = np.column_stack([self.means, self._overall_means])
        sds = np.column_stack([self.sds, STRAY_WIDTH * self.spreads])
        return means[rows, k], sds[rows, k]

    @cached_property
    def _overall_means(self) -> np.ndarray:
        return (self.weights * self.means).sum(axis=1)

    @cached_property
    def _cumulative(self) -> np.ndarray:
        return np.cumsum(self.weights, axis=1)[:, :-1]

    @cached_property
    def _transposed_inverse(self) -> np.ndarray:
        return np.linalg.inv(self.factor).T

    @cached_property
    def _log_volume(self) -> float:
        return float(np.log(np.diagonal(self.factor)).sum())

    @cached_property
    def _log_constants(self) -> np.ndarray:
        return np.log(self.weights) - np.log(self.sds) - 0.5 * _LOG_2PI


def monomials(v: np.ndarray) -> np.ndarray:
    """One, v_i and v_i v_k, i >= k, shape (m, d) to (m, 1 + d + d (d + 1) / 2)."""
    rows, columns = _pairs(v.shape[1])
    return np.column_stack([np.ones(len(v)), v, v[:, rows] * v[:, columns]])


def highest_coordinate(d: int) -> np.ndarray:
    """The last coordinate that each of the monomials holds, -1 for the constant."""
    return np.concatenate([[-1], np.arange(d), _pairs(d)[0]])


@cache
def _pairs(d):
    return np.tril_indices(d)


def _drawn(rng, logs):
    """An index of the last axis with probability of exp(logs), (m, K) to (m,)."""
    shares = np.cumsum(np.exp(logs - logs.max(axis=-1, keepdims=True)), axis=-1)
    coins = rng.uniform(size=(len(logs), 1)) * shares[:, -1:]
    return np.minimum((coins > shares).sum(axis=-1), logs.shape[1] - 1)
