"""A likelihood of eta = slope f[index] + offset, seen as a likelihood of f."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.numerics.likelihoods.base import Likelihood, TiltedMoments


class LinearPredictorLikelihood:
    """p(y|f) = prod_j p(y_j|eta_j) with eta_j = slope_j f[index_j] + offset_j.

    Latent values that no index names have no data.

    Parameters
    ----------
    base : Likelihood
        Of eta, shape (m,).
    size : int
        n, the number of latent values.
    index : array of int, shape (m,)
        No value twice: the closed moments of `base` are those of one observation.
    slope, offset : array, shape (m,)
        Every slope differs from zero.
    """

    def __init__(
        self,
        base: Likelihood,
        size: int,
        index: np.ndarray,
        slope: np.ndarray,
        offset: np.ndarray,
    ):
        self.base = base
        self.size = size
        self.index = index
        self.slope = slope
        self.offset = offset

    def _eta(self, f):
        return self.slope * f[..., self.index] + self.offset

    def _scatter(self, values):
        result = np.zeros(self.size)
        result[self.index] = values
        return result

    def log_density(self, f):
        """sum_j log p(y_j|eta_j), for f of shape (..., n); shape (...)."""
        return self.base.log_density(self._eta(f))

    def derivatives(self, f):
        """Gradient and W by the chain rule; zero where there are no data."""
        gradient, W = self.base.derivatives(self._eta(f))
        return self._scatter(self.slope * gradient), self._scatter(self.slope**2 * W)

    def third_derivative(self, f):
        """By the chain rule; zero where there are no data."""
        return self._scatter(self.slope**3 * self.base.third_derivative(self._eta(f)))

    def tilted_moments(self, mean, variance):
        """Those of eta, carried back to f; the cavity itself where there are no data."""
        index, slope = self.index, self.slope
        tilted = self.base.tilted_moments(self._eta(mean), slope**2 * variance[index])
        mean, variance = mean.copy(), variance.copy()
        mean[index] = (tilted.mean - self.offset) / slope
        variance[index] = tilted.variance / slope**2
        return TiltedMoments(self._scatter(tilted.log_normaliser), mean, variance)
