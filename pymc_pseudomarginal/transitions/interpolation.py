"""Interpolation of smooth functions of theta between values at some thetas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve

# Length-scales in standard deviations of theta, and noise of the values relative to their spread,
# from which those are taken that predict left-out values best.
_LENGTH_SCALES = (1.0, 1.5, 2.2, 3.3)
_NOISES = (1e-6, 1e-4, 1e-2, 1.0)
_RIDGE = 1e-6


@dataclass(frozen=True)
class Interpolation:
    """The mean of a Gaussian process with a squared-exponential covariance.

    Attributes
    ----------
    points : array, shape (m, d)
        Where values were given, in units of about a standard deviation.
    coefficients : array, shape (m, k)
    inverse : array, shape (m, m)
        Of the correlation matrix of the points.
    length_scale : float
    level : array, shape (k,)
        What the values fall back to far from the points.
    errors : array, shape (m, k)
        The values, each predicted from those at the other points, minus what they are.

    References
    ----------
    Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, sections 2.2 and 5.4.2.
    """

    points: np.ndarray
    coefficients: np.ndarray
    inverse: np.ndarray
    length_scale: float
    level: np.ndarray
    errors: np.ndarray

    @classmethod
    def fitted(cls, points: np.ndarray, values: np.ndarray) -> Interpolation:
        """Through values of shape (m, k) at points of shape (m, d)."""
        level = np.median(values, axis=0)
        spread = np.abs(values - level).mean(axis=0) + np.finfo(float).tiny
        best = None
        for length_scale in _LENGTH_SCALES:
            correlation = _correlation(points / length_scale)
            for noise in _NOISES:
                noisy = correlation + (noise + _RIDGE) * np.eye(len(points))
                inverse = cho_solve(cho_factor(noisy, lower=True), np.eye(len(points)))
                coefficients = inverse @ (values - level)
                errors = -coefficients / np.diagonal(inverse)[:, None]
                loss = np.mean(np.abs(errors).mean(axis=0) / spread)
                if best is None or loss < best[0]:
                    best = loss, cls(points, coefficients, inverse, length_scale, level, errors)
        return best[1]

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values, shape (q, k), and which share of their variance is not known, shape (q,).

        Parameters
        ----------
        points : array, shape (q, d)
        """
        values = np.tile(self.level, (len(points), 1))
        unknown = interpolate(np.ascontiguousarray(points), self.terms, values)
        return values, unknown

    @cached_property
    def terms(self) -> Terms:
        """What a value is a sum of, for compiled loops."""
        arrays = (self.points / self.length_scale, self.coefficients, self.inverse)
        return Terms(*map(np.ascontiguousarray, arrays), float(self.length_scale))


class Terms(NamedTuple):
    """Points in units of the length-scale, (m, d), coefficients, (m, k), inverse, (m, m)."""

    points: np.ndarray
    coefficients: np.ndarray
    inverse: np.ndarray
    length_scale: float


@njit(cache=True)
def interpolate(x: np.ndarray, terms: Terms, values: np.ndarray) -> np.ndarray:
    """Add to the level what the points say of every x; which share of the variance is not known.

    Compiled: a chain asks for few at a time, which is over before NumPy has looked at its
    arguments.

    Parameters
    ----------
    x : array, shape (q, d)
    terms : Terms
    values : array, shape (q, k)
        The level in every row, in whose place the values are put.

    Returns
    -------
    array, shape (q,)
    """
    points, coefficients, inverse, length_scale = terms
    correlation = np.empty((len(x), len(points)))
    for i in range(len(x)):
        for j in range(len(points)):
            square = 0.0
            for k in range(x.shape[1]):
                square += (x[i, k] / length_scale - points[j, k]) ** 2
            correlation[i, j] = math.exp(-0.5 * square)
    values += np.dot(correlation, coefficients)
    explained = np.dot(correlation, inverse) * correlation
    return np.array([max(1.0 - row.sum(), 0.0) for row in explained])


def _correlation(x):
    """exp(-|x - z|²/2) for every pair of rows."""
    half_squares = 0.5 * (x * x).sum(axis=1)
    return np.exp(x @ x.T - half_squares[:, None] - half_squares)
