"""A density of theta fitted to tuning draws, from which nearly independent draws are proposed.

A Student t with the moments of the draws comes first. What is left of the log posterior density
is interpolated between values at some thetas, and the product g(theta) = t(theta) exp(r(theta)) is
nearly the posterior itself. A few Metropolis steps with independent proposals from t, which
evaluate g alone and no covariance, lead from theta to a draw that is almost one of g. They are
reversible with respect to g, so that what is left for the acceptance of the whole is
pi(new) / g(new) relative to pi(theta) / g(theta), whatever g is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack
from scipy.special import gammaln

# Few enough for tails as heavy as a posterior may have, enough for a covariance to exist.
_DEGREES = 6.0
# A density that is too wide loses a little everywhere, one that is too narrow sticks outside.
_WIDER = 1.1
_RIDGE = 1e-6
# Length-scales of the interpolation in standard deviations of theta, and noise of the values
# relative to their spread, from which those are taken that predict left-out values best.
_LENGTH_SCALES = (1.0, 1.5, 2.2, 3.3)
_NOISES = (1e-6, 1e-4, 1e-2, 1.0)
# Depth at which r levels off, and the share of it beyond which r is as low as it gets.
_DEEPEST = 8.0
_ALMOST = 0.999
# Standard deviations that are taken off a depth where it is uncertain.
_CAUTION = 2.0
# Added to a variance, so that rounding of one near zero is not magnified by its root.
_SMOOTHING = 1e-4
# Steps of the inner chain: enough to leave theta behind unless hardly any is accepted.
_STEPS = 8


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
        return z * np.sqrt(_DEGREES / rng.chisquare(_DEGREES, (count, 1)))

    def at(self, z: np.ndarray) -> np.ndarray:
        """The thetas that these standardise to, shape (..., d) to (..., d)."""
        return self.centre + z @ self.factor.T

    def standardised(self, thetas: np.ndarray) -> np.ndarray:
        """Thetas in units of the scale, from the centre, shape (m, d) to (m, d)."""
        z, _ = lapack.dtrtrs(self.factor, (thetas - self.centre).T, lower=1)
        return z.T

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """At every row, shape (m, d) to (m,)."""
        return self.log_density_standardised(self.standardised(thetas))

    def log_density_standardised(self, z: np.ndarray) -> np.ndarray:
        """Of thetas, at every row of what they standardise to, shape (m, d) to (m,)."""
        half = 0.5 * (_DEGREES + z.shape[1])
        return self._log_constant - half * np.log1p((z * z).sum(axis=1) / _DEGREES)

    @cached_property
    def _log_constant(self):
        d = len(self.centre)
        return float(
            gammaln(0.5 * (_DEGREES + d))
            - gammaln(0.5 * _DEGREES)
            - 0.5 * d * np.log(_DEGREES * np.pi)
            - np.log(np.diagonal(self.factor)).sum()
        )


@dataclass(frozen=True)
class FittedDensity:
    """g(theta) = t(theta) exp(r(theta)), with r interpolated by a Gaussian process.

    What is interpolated is the depth of r below its highest value, made to level off: how deep
    r is where it is very low does not matter, and should not disturb what does.

    Attributes
    ----------
    base : StudentT
        t.
    points : array, shape (m, d)
        Where r was fitted, standardised by t.
    coefficients : array, shape (m,)
    inverse : array, shape (m, m)
        Of the kernel matrix of the points.
    length_scale : float
        Of the squared-exponential kernel between standardised points.
    level, scale : float
        Mean and standard deviation of the depth far from the points.
    errors : array, shape (m,)
        Depth at the points, each predicted from all the others, minus what it is there.
    """

    base: StudentT
    points: np.ndarray
    coefficients: np.ndarray
    inverse: np.ndarray
    length_scale: float
    level: float
    scale: float
    errors: np.ndarray

    @classmethod
    def fitted(cls, base: StudentT, thetas: np.ndarray, log_densities: np.ndarray) -> FittedDensity:
        """To finite log posterior densities, shape (m,), known up to a constant, at thetas (m, d).

        References
        ----------
        Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, section 5.4.2, for
        predictions of left-out values.
        """
        points = base.standardised(thetas)
        residuals = log_densities - base.log_density(thetas)
        depths = -_DEEPEST * np.expm1((residuals - residuals.max()) / _DEEPEST)
        level = float(np.median(depths))
        fits = [
            (length_scale, *_regression(points, depths - level, length_scale, noise))
            for length_scale in _LENGTH_SCALES
            for noise in _NOISES
        ]
        length_scale, coefficients, inverse, errors = min(
            fits, key=lambda fit: np.abs(fit[-1]).mean()
        )
        scale = float(np.sqrt(coefficients @ (depths - level) / len(depths)))
        return cls(base, points, coefficients, inverse, length_scale, level, scale, errors)

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """Log g at every row, up to a constant, shape (m, d) to (m,)."""
        z = self.base.standardised(thetas)
        return self.correction(z) + self.base.log_density_standardised(z)

    def correction(self, z: np.ndarray) -> np.ndarray:
        """r at every row of standardised thetas, shape (k, d) to (k,); zero is the highest.

        Where it is not known it is rather too high than too low: a density that is too high costs
        a proposal, one that is too low holds the chain.
        """
        kernel = _kernel(z, self.points, self.length_scale)
        known = np.einsum("ij,ij->i", kernel @ self.inverse, kernel)
        unknown = self.scale * np.sqrt(np.maximum(1.0 - known, 0.0) + _SMOOTHING)
        depths = self.level + kernel @ self.coefficients - _CAUTION * unknown
        return _DEEPEST * np.log1p(-np.clip(depths / _DEEPEST, 0.0, _ALMOST))

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Where a few steps that leave g invariant lead, and log g(theta) - log g(there).

        References
        ----------
        Liu (2001), Monte Carlo Strategies in Scientific Computing, section 9.4.3, surrogate
        transitions.
        """
        start = self.base.standardised(theta[None])
        z = np.concatenate([start, self.base.draw_standardised(rng, _STEPS)])
        corrections = self.correction(z)
        thresholds = np.log(rng.uniform(size=_STEPS)).tolist()
        heights = corrections.tolist()
        at = 0
        for i, threshold in enumerate(thresholds, start=1):
            if threshold < heights[i] - heights[at]:
                at = i
        if at == 0:
            return theta, 0.0
        ends = [0, at]
        levels = corrections[ends] + self.base.log_density_standardised(z[ends])
        return self.base.at(z[at]), float(levels[0] - levels[1])


def _kernel(left, right, length_scale):
    """exp(-|x - z|²/2) for every pair of rows in units of the length-scale."""
    left, right = left / length_scale, right / length_scale
    squares = [0.5 * (x * x).sum(axis=1) for x in (left, right)]
    return np.exp(left @ right.T - squares[0][:, None] - squares[1])


def _regression(points, values, length_scale, noise):
    """Coefficients, inverse kernel matrix, and errors of values predicted from the others."""
    kernel = _kernel(points, points, length_scale)
    kernel[np.diag_indices_from(kernel)] += noise + _RIDGE
    inverse = cho_solve(cho_factor(kernel, lower=True), np.eye(len(values)))
    coefficients = inverse @ values
    return coefficients, inverse, -coefficients / np.diagonal(inverse)
