"""q_theta(x) and the map from noise to x: x = mean + T u, T T' = P^-1."""

import numpy as np

from pymc_pseudomarginal.linalg.curvature import Weights
from pymc_pseudomarginal.linalg.factor import Factor
from pymc_pseudomarginal.linalg.latent import LatentAt
from pymc_pseudomarginal.linalg.products import times, times_each, transpose_times

_LOG_2PI = float(np.log(2.0 * np.pi))


class Conditional:
    """q(x) = N(mean, P^-1) at one theta, and its importance weights.

    With d = x - mean and e = A d, u'u = d'P d = d'Q d + e'W e, so that

        log w = log p(y|eta) + log p(mean|theta) + (linear - Q mean)'d + e'W e/2
                + n/2 log 2 pi - log|P|/2,

    which needs no product with Q and does not cancel where Q is large.

    Parameters
    ----------
    at : LatentAt
    mean : (n,) array
    weights : Weights
        W.
    factor : Factor
        Of P = Q + A'WA.
    iterations : int
        Factorisations that it took to find the mean and W.
    """

    def __init__(
        self, at: LatentAt, mean: np.ndarray, weights: Weights, factor: Factor, iterations: int = 0
    ) -> None:
        self.theta = at.theta
        self.log_prior = float(at.log_prior)
        self.mean = mean
        self.weights = weights
        self.factor = factor
        self.iterations = iterations
        self._matrix = at.predictor.matrix
        self._likelihood = at.likelihood
        self._eta = times(self._matrix, mean) + at.predictor.offset
        self._slope = at.prior.gradient(mean)
        log_normaliser = 0.5 * (self.size * _LOG_2PI - factor.log_determinant)
        log_prior = at.prior.constant + 0.5 * float(mean @ (at.prior.linear + self._slope))
        self._constant = log_prior + log_normaliser

    @property
    def size(self) -> int:
        """n, the number of elements of x."""
        return self.mean.shape[0]

    def latent(self, u: np.ndarray) -> np.ndarray:
        """The latent x = mean + T u of u (n,), or of every row of u (k, n)."""
        return self.mean + self.factor.colour(u)

    def noise(self, x: np.ndarray) -> np.ndarray:
        """The noise u = T^-1 (x - mean) of x (n,)."""
        return self.factor.whiten(x - self.mean)

    def log_weight(self, u: np.ndarray) -> float:
        """The log weight log p(y, x|theta) - log q(x) at x = latent(u), u (n,); never NaN."""
        with np.errstate(all="ignore"):
            d = self.factor.colour(u)
            e = times(self._matrix, d)
            log_likelihood = float(self._likelihood.log_density(self._eta + e))
            value = log_likelihood + self._rest(d, e, self.weights.times(e))
        return value if np.isfinite(value) else -np.inf

    def log_weight_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """log_weight(u) and its gradient in u (n,)."""
        with np.errstate(all="ignore"):
            d = self.factor.colour(u)
            e = times(self._matrix, d)
            at = self._likelihood.derivatives(self._eta + e)
            weighted = self.weights.times(e)
            value = float(at.value) + self._rest(d, e, weighted)
            pull = transpose_times(self._matrix, at.gradient + weighted)
            gradient = self.factor.colour_back(pull + self._slope)
        return (value if np.isfinite(value) else -np.inf), gradient

    def log_weights(self, u: np.ndarray) -> np.ndarray:
        """log_weight of every row of u (k, n), shape (k,)."""
        with np.errstate(all="ignore"):
            D = self.factor.colour(u)
            E = times_each(self._matrix, D)
            rest = self._constant + D @ self._slope + 0.5 * self.weights.quadratic_forms(E)
            values = np.asarray(self._likelihood.log_density(self._eta + E)) + rest
        return np.where(np.isfinite(values), values, -np.inf)

    def _rest(self, d: np.ndarray, e: np.ndarray, weighted: np.ndarray) -> float:
        """The log weight without the likelihood; `weighted` is W e."""
        return self._constant + float(self._slope @ d) + 0.5 * float(e @ weighted)
