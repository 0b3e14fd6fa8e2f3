"""The latent at new points: its Gaussian given f, or given a Gaussian approximation of f."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.prior import DensePrior


@dataclass(frozen=True)
class NewPoints:
    """Prior moments of the latent at m new points, one by one, and with f.

    Attributes
    ----------
    mean : array, shape (m,)
        m(x*).
    cross : array, shape (m, n)
        k(x*, x_i).
    variance : array, shape (m,)
        k(x*, x*).
    """

    mean: np.ndarray
    cross: np.ndarray
    variance: np.ndarray

    def given_latent(self, prior: DensePrior, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moments of f* given draws of f.

        Parameters
        ----------
        prior : DensePrior
            N(m, K), of f.
        f : array, shape (S, n)
            Draws that share this prior.

        Returns
        -------
        mean : array, shape (S, m)
            m(x*) + kᵀ K^-1 (f - m).
        variance : array, shape (m,)
            k(x*, x*) - kᵀ K^-1 k.
        """
        half = self._solve(prior.cholesky, self.cross.T)
        whitened = self._solve(prior.cholesky, (f - prior.mean).T)
        return self.mean + whitened.T @ half, self._remaining(half)

    def given_approximation(self, q: Approximation) -> tuple[np.ndarray, np.ndarray]:
        """Moments of f*, each of shape (m,), where f has the distribution q = N(mu, Sigma).

        With a = K^-1 (mu - m) and R = W^1/2 B^-1 W^1/2 these are m(x*) + kᵀ a and
        k(x*, x*) - kᵀ R k, the same as kᵀ K^-1 mu and k** - kᵀ K^-1 k + kᵀ K^-1 Sigma K^-1 k
        of Filippone & Girolami (2014), section 2.1, without K^-1.
        """
        half = self._solve(q.factor.cholesky, q.factor.root_precision[:, None] * self.cross.T)
        return self.mean + self.cross @ q.dual, self._remaining(half)

    @staticmethod
    def _solve(cholesky, right):
        solution, _ = lapack.dtrtrs(cholesky, right, lower=1)
        return solution

    def _remaining(self, half):
        # Rounding can leave the variance at a data point a little below zero.
        return np.maximum(self.variance - np.einsum("ij,ij->j", half, half), 0.0)
