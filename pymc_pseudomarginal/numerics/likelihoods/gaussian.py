"""The Gaussian likelihood, for which both approximations are exact."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.numerics.likelihoods.base import TiltedMoments

_LOG_2PI = np.log(2.0 * np.pi)


class GaussianLikelihood:
    """p(y_i|f_i) = N(y_i | f_i, variance_i).

    Laplace and EP both give the exact posterior, so that every importance weight
    equals the marginal likelihood: the closed-form check of everything downstream.

    Parameters
    ----------
    y : array, shape (n,)
    variance : float or array of shape (n,)
    """

    def __init__(self, y: np.ndarray, variance: float | np.ndarray):
        self.y = np.asarray(y, dtype=float)
        self.variance = np.broadcast_to(np.asarray(variance, dtype=float), self.y.shape)

    def log_density(self, f):
        """sum_i log N(y_i | f_i, variance_i), for f of shape (..., n); shape (...)."""
        squares = (self.y - f) ** 2 / self.variance
        return -0.5 * (squares + np.log(self.variance) + _LOG_2PI).sum(axis=-1)

    def derivatives(self, f):
        """Gradient (y - f) / variance and W = 1 / variance."""
        return (self.y - f) / self.variance, 1.0 / self.variance

    def third_derivative(self, f):
        """Zero: the log density is quadratic."""
        return np.zeros_like(f)

    def tilted_moments(self, mean, variance):
        """Moments of a product of two Gaussians."""
        total = variance + self.variance
        log_normaliser = -0.5 * ((self.y - mean) ** 2 / total + np.log(total) + _LOG_2PI)
        gain = variance / total
        return TiltedMoments(log_normaliser, mean + gain * (self.y - mean), self.variance * gain)
