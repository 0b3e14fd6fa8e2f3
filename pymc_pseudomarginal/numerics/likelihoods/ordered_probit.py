"""The ordered probit likelihood: a Gaussian variable seen through the interval it falls in."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from pymc_pseudomarginal.numerics.likelihoods.base import TiltedMoments

_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)


class OrderedProbitLikelihood:
    """p(y_i|f_i) = Phi(upper_i - f_i) - Phi(lower_i - f_i).

    Parameters
    ----------
    lower, upper : array, shape (n,)
        The cut-points around the category observed, lower < upper; -inf below the
        first category and inf above the last.

    References
    ----------
    Chu & Ghahramani (2005), Gaussian processes for ordinal regression, JMLR 6.
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray):
        self.lower = np.asarray(lower, dtype=float)
        self.upper = np.asarray(upper, dtype=float)

    @classmethod
    def from_categories(cls, y: np.ndarray, cutpoints: np.ndarray) -> OrderedProbitLikelihood:
        """Categories 0..K-1, shape (n,), cut by K - 1 ascending points, (K-1,) or (n, K-1)."""
        ends = np.full((*cutpoints.shape[:-1], 1), np.inf)
        cuts = np.concatenate([-ends, cutpoints, ends], axis=-1)
        y = np.asarray(y)
        if cuts.ndim == 1:
            return cls(cuts[y], cuts[y + 1])
        rows = np.arange(len(y))
        return cls(cuts[rows, y], cuts[rows, y + 1])

    def log_density(self, f):
        """sum_i log p(y_i|f_i), for f of shape (..., n); shape (...)."""
        return log_interval_probability(self.lower - f, self.upper - f).sum(axis=-1)

    def derivatives(self, f):
        """Gradient (phi(a) - phi(b)) / Z and W, with a = lower - f and b = upper - f."""
        gradient, W, _ = _log_interval_derivatives(self.lower - f, self.upper - f)
        return gradient, W

    def third_derivative(self, f):
        """d³ log p(y_i|f_i) / df_i³."""
        return _log_interval_derivatives(self.lower - f, self.upper - f)[2]

    def tilted_moments(self, mean, variance):
        """In closed form: f plus standard normal noise is Gaussian with variance + 1."""
        scale = np.sqrt(1.0 + variance)
        a, b = (self.lower - mean) / scale, (self.upper - mean) / scale
        gradient, W, _ = _log_interval_derivatives(a, b)
        return TiltedMoments(
            log_interval_probability(a, b),
            mean + variance * gradient / scale,
            # variance - variance² W / (1 + variance), in a form that stays positive.
            variance * (1.0 + variance * (1.0 - W)) / (1.0 + variance),
        )


def log_interval_probability(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log(Phi(b) - Phi(a)) for a < b, without cancellation in the tails."""
    # By symmetry the interval is moved to the left, where log Phi keeps its digits.
    right = a > -b
    a, b = np.where(right, -b, a), np.where(right, -a, b)
    log_a, log_b = log_ndtr(a), log_ndtr(b)
    # Cut-points that coincide, or that overflow, leave nothing: log 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        result = log_b + np.log(-np.expm1(log_a - log_b))
    return np.where(a < b, result, -np.inf)


def _log_interval_derivatives(a, b):
    """First, negative second and third derivative of log(Phi(b - f) - Phi(a - f)) at f = 0."""
    log_z = log_interval_probability(a, b)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio_a = np.exp(-0.5 * a**2 - _LOG_ROOT_2PI - log_z)
        ratio_b = np.exp(-0.5 * b**2 - _LOG_ROOT_2PI - log_z)
    # At an infinite end every power of it times the density vanishes.
    a, b = np.where(np.isinf(a), 0.0, a), np.where(np.isinf(b), 0.0, b)
    first = ratio_a - ratio_b
    second = a * ratio_a - b * ratio_b
    third = (a**2 - 1.0) * ratio_a - (b**2 - 1.0) * ratio_b
    # Between 0 and 1 in exact arithmetic; far in a tail the difference cancels.
    W = np.clip(first**2 - second, 0.0, 1.0)
    return first, W, third - 3.0 * second * first + 2.0 * first**3
