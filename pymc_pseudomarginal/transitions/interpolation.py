"""Interpolation of smooth functions of theta between values at some thetas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
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
            scaled = _Scaled.by(points, length_scale)
            correlation = _correlation(scaled, scaled)
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
        correlation = _correlation(_Scaled.by(points, self.length_scale), self._scaled_points)
        known = np.einsum("ij,ij->i", correlation @ self.inverse, correlation)
        return self.level + correlation @ self.coefficients, np.maximum(1.0 - known, 0.0)

    @cached_property
    def _scaled_points(self):
        return _Scaled.by(self.points, self.length_scale)


class _Scaled(NamedTuple):
    """Points x in units of a length-scale, shape (m, d), and |x|²/2, shape (m,)."""

    points: np.ndarray
    half_squares: np.ndarray

    @classmethod
    def by(cls, points, length_scale):
        x = points / length_scale
        return cls(x, 0.5 * (x * x).sum(axis=1))


def _correlation(left, right):
    """exp(-|x - z|²/2) for every pair of rows of two sets of scaled points."""
    products = left.points @ right.points.T
    return np.exp(products - left.half_squares[:, None] - right.half_squares)
