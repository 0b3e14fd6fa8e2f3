"""The Gaussian prior f ~ N(m, K) with a dense covariance.

The approximations and the samplers see a prior only through the few methods of
`DensePrior` and `DenseFactor`, so another structure (sparse precision, low-rank
basis) can stand in their place without a change elsewhere.

No method forms K^-1: with W the diagonal of the sites' precisions and
B = I + W^1/2 K W^1/2, every quantity follows from the Cholesky factor of B, whose
eigenvalues are bounded below by one (Rasmussen & Williams 2006, section 3.4.3).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from pymc_pseudomarginal.numerics.errors import NotPositiveDefinite
from pymc_pseudomarginal.numerics.triangles import (
    gram_of_lower,
    invert_lower,
    lower_triangle,
    scaled_identity_plus,
    symmetric_combination,
)

# Below this value of W_i K_ii the difference 1 - (B^-1)_ii has lost too many digits.
_TINY_SITE = 1e-7
# So many vectors, if they are so long, are faster one by one than BLAS takes them as a matrix.
_FEW_ROWS, _LONG = 2, 128
# Up to this n a product with all of L, zeros included, is faster than with its triangle.
_IN_CACHE = 256
_LOG_2PI = float(np.log(2.0 * np.pi))


def _cholesky(lower: np.ndarray, what: str) -> np.ndarray:
    """Lower Cholesky factor in the place of a lower triangle in Fortran order."""
    factor, info = lapack.dpotrf(lower, lower=1, clean=0, overwrite_a=1)
    # potrf lets NaN and infinity through; they show on the diagonal.
    if info != 0 or not math.isfinite(np.add.reduce(factor.diagonal())):
        raise NotPositiveDefinite(f"{what} is not positive definite (leading minor {info}).")
    return factor


class DensePrior:
    """f ~ N(m, K) with K a dense matrix.

    Parameters
    ----------
    mean : array, shape (n,)
    covariance : array, shape (n, n)
        Symmetric and positive definite. Not copied, not modified.
    """

    def __init__(self, mean: np.ndarray, covariance: np.ndarray):
        self.mean = mean
        # K is symmetric, so that the transpose of a C-ordered K is K itself in the
        # Fortran order that LAPACK takes without a copy.
        self.covariance = covariance.T if covariance.flags.c_contiguous else covariance
        self.cubic_operations = 0
        """Matrix factorisations and inversions done so far with this prior."""

    @property
    def size(self) -> int:
        """n, the number of latent values."""
        return self.mean.shape[0]

    @cached_property
    def variances(self) -> np.ndarray:
        """diag(K), shape (n,)."""
        return np.diagonal(self.covariance).copy()

    @cached_property
    def cholesky(self) -> np.ndarray:
        """Lower L with K = L Lᵀ, shape (n, n); computed at the first use."""
        self.cubic_operations += 1
        return _cholesky(lower_triangle(self.covariance), "The prior covariance")

    @property
    def root(self) -> np.ndarray:
        """A square matrix A with K = A Aᵀ and f = m + A z for a standard normal z."""
        return self.cholesky

    def log_density(self, f: np.ndarray) -> float:
        """Log N(f|m, K), for f of shape (n,)."""
        z = self.whiten(f)
        return -0.5 * (float(z @ z) + self.size * _LOG_2PI) - self._log_abs_determinant()

    def _log_abs_determinant(self) -> float:
        """Of the root A."""
        return float(np.log(np.diagonal(self.cholesky)).sum())

    def factorise(self) -> None:
        """Compute the square root of K now; raises NotPositiveDefinite where there is none."""
        _ = self.cholesky

    def multiply(self, v: np.ndarray) -> np.ndarray:
        """K v for v of shape (n,)."""
        return blas.dsymv(1.0, self.covariance, v, lower=1)

    def colour(self, z: np.ndarray) -> np.ndarray:
        """L z for every row: shape (N, n) to (N, n), or (n,) to (n,)."""
        return _triangular_product(self.cholesky, z, transpose=False)

    def colour_transposed(self, v: np.ndarray) -> np.ndarray:
        """Lᵀ v for every row: shape (N, n) to (N, n), or (n,) to (n,)."""
        return _triangular_product(self.cholesky, v, transpose=True)

    def whiten(self, f: np.ndarray) -> np.ndarray:
        """L^-1 (f - m), the standard normal coordinates of f, shape (n,)."""
        z, _ = lapack.dtrtrs(self.cholesky, f - self.mean, lower=1)
        return z

    def condition(self, precision: np.ndarray) -> DenseFactor:
        """The Gaussian N(m, K) times sites exp(-W f²/2), in factorised form."""
        return DenseFactor(self, precision)


class RootedPrior(DensePrior):
    """f = m + A z with z standard normal, A any square matrix of full rank, K = A Aᵀ.

    For latents that a model writes through a root of its own: z is then what the
    model stores, and A takes the place of the Cholesky factor in every method.

    Parameters
    ----------
    mean : array, shape (n,)
    root : array, shape (n, n)
        A. Not modified.
    """

    def __init__(self, mean: np.ndarray, root: np.ndarray):
        super().__init__(mean, root @ root.T)
        self._root = root

    @property
    def root(self):
        """A."""
        return self._root

    def _log_abs_determinant(self):
        lu, _ = self._lu
        return float(np.log(np.abs(np.diagonal(lu))).sum())

    @cached_property
    def _lu(self):
        self.cubic_operations += 1
        lu, pivots, info = lapack.dgetrf(self.root)
        diagonal = np.abs(np.diagonal(lu))
        if info != 0 or not diagonal.min() > np.finfo(float).eps * diagonal.max():
            raise NotPositiveDefinite("The root of the prior covariance is singular.")
        return lu, pivots

    def factorise(self):
        """Compute the triangular factors of A now."""
        _ = self._lu

    def colour(self, z):
        """A z for every row: shape (N, n) to (N, n), or (n,) to (n,)."""
        return z @ self.root.T

    def colour_transposed(self, v):
        """Aᵀ v for every row: shape (N, n) to (N, n), or (n,) to (n,)."""
        return v @ self.root

    def whiten(self, f):
        """A^-1 (f - m), shape (n,)."""
        lu, pivots = self._lu
        z, _ = lapack.dgetrs(lu, pivots, f - self.mean)
        return z


class InverseFactor(NamedTuple):
    """The lower triangle of B^-1, shape (n, n), diag(Sigma) and diag(B^-1), each of shape (n,)."""

    lower: np.ndarray
    variances: np.ndarray
    diagonal: np.ndarray


class DenseFactor:
    """Cholesky factor of B = I + W^1/2 K W^1/2 and what follows from it.

    Parameters
    ----------
    prior : DensePrior
    precision : array, shape (n,)
        W, the sites' precisions, non-negative.
    """

    def __init__(self, prior: DensePrior, precision: np.ndarray):
        self.prior = prior
        self.precision = precision
        self._root = np.sqrt(precision)
        prior.cubic_operations += 1
        self.cholesky = _cholesky(
            scaled_identity_plus(prior.covariance, self._root), "I + W^1/2 K W^1/2"
        )
        self.log_determinant = 2.0 * float(np.add.reduce(np.log(self.cholesky.diagonal())))

    def solve(self, v: np.ndarray) -> np.ndarray:
        """R v = W^1/2 B^-1 W^1/2 v = (K + W^-1)^-1 v for every row of v.

        Shape (N, n) to (N, n), or (n,) to (n,).
        """
        return self._root * self.solve_unscaled(self._root * v)

    def solve_unscaled(self, v: np.ndarray) -> np.ndarray:
        """B^-1 v for every row: shape (N, n) to (N, n), or (n,) to (n,)."""
        if v.ndim == 1:
            half, _ = lapack.dtrtrs(self.cholesky, v, lower=1)
            return lapack.dtrtrs(self.cholesky, half, lower=1, trans=1, overwrite_b=1)[0]
        if _better_one_by_one(v):
            return np.array([self.solve_unscaled(row) for row in v])
        x, _ = lapack.dpotrs(self.cholesky, v.T, lower=1)
        return x.T

    @property
    def root_precision(self) -> np.ndarray:
        """W^1/2, shape (n,)."""
        return self._root

    def marginal_variances(self) -> np.ndarray:
        """diag(Sigma) with Sigma = (K^-1 + W)^-1, shape (n,)."""
        return self.marginals()[0]

    def marginals(self, *, consume: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """diag(Sigma) and diag(B^-1), each of shape (n,).

        (B^-1)_ii is the sum of squares of column i of the inverse factor, and Sigma_ii =
        (1 - (B^-1)_ii) / W_i. That difference cancels where W_i is tiny; there Sigma_ii =
        K_ii - |L^-1 W^1/2 k_i|² is used instead.

        Parameters
        ----------
        consume : bool
            Invert the factor in its own place, for the sake of memory. It cannot be used any
            more; the log determinant stays.
        """
        prior, W = self.prior, self.precision
        if not W.any():  # B = I, where EP starts from nothing
            return prior.variances.copy(), np.ones(prior.size)
        prior.cubic_operations += 1
        tiny, at_tiny = self._tiny_sites()
        inverse = invert_lower(self.cholesky if consume else self.cholesky.copy(order="F"))
        if consume:
            del self.cholesky
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
        return self._variances(diagonal, tiny, at_tiny), diagonal

    def _tiny_sites(self) -> tuple[np.ndarray, np.ndarray]:
        """Which sites have next to no weight, shape (n,), and Sigma_ii at those."""
        tiny = self.precision * self.prior.variances < _TINY_SITE
        return tiny, self._variances_at(tiny) if tiny.any() else np.empty(0)

    def _variances(self, diagonal, tiny, at_tiny) -> np.ndarray:
        variances = (1.0 - diagonal) / np.where(tiny, 1.0, self.precision)
        variances[tiny] = at_tiny
        return variances

    def _variances_at(self, chosen: np.ndarray) -> np.ndarray:
        """Sigma_ii = K_ii - |L^-1 W^1/2 k_i|² for the chosen i, as many as are True."""
        scaled = np.asfortranarray(self._root[:, None] * self.prior.covariance[:, chosen])
        half, _ = lapack.dtrtrs(self.cholesky, scaled, lower=1, overwrite_b=1)
        return self.prior.variances[chosen] - np.einsum("ij,ij->j", half, half)

    def site_covariance_inverse(self) -> np.ndarray:
        """R = W^1/2 B^-1 W^1/2 as a full symmetric matrix, shape (n, n)."""
        zero = np.zeros(self.prior.size)
        return symmetric_combination(self.invert().lower, self._root, 1.0, zero, zero)

    def invert(self) -> InverseFactor:
        """B^-1 and what `marginals` gives, by one inversion."""
        self.prior.cubic_operations += 1
        tiny, at_tiny = self._tiny_sites()
        inverse = gram_of_lower(invert_lower(self.cholesky.copy(order="F")))
        diagonal = np.diagonal(inverse).copy()
        return InverseFactor(inverse, self._variances(diagonal, tiny, at_tiny), diagonal)


def _triangular_product(L: np.ndarray, v: np.ndarray, *, transpose: bool) -> np.ndarray:
    """L v, or Lᵀ v, for every row of v; L has zeros above its diagonal."""
    if v.ndim == 1:
        return blas.dtrmv(L, v, lower=1, trans=transpose)
    if v.shape[1] <= _IN_CACHE:
        return v @ (L if transpose else L.T)
    if _better_one_by_one(v):
        return np.array([blas.dtrmv(L, row, lower=1, trans=transpose) for row in v])
    return blas.dtrmm(1.0, L, v.T, lower=1, trans_a=transpose).T


def _better_one_by_one(v: np.ndarray) -> bool:
    return v.shape[0] <= _FEW_ROWS and v.shape[1] >= _LONG
