"""P = Q + A'WA as a dense matrix, and its Cholesky factor by LAPACK."""

import numpy as np
from numba import njit
from scipy.linalg import blas, lapack
from scipy.sparse import csr_array

from pymc_pseudomarginal.linalg.curvature import Weights
from pymc_pseudomarginal.linalg.latent import GaussianPrior, Predictor
from pymc_pseudomarginal.numerics.errors import NotPositiveDefinite

# From this part of all products a_ij a_ik on, a full BLAS product is faster than a sparse loop.
_FULL_FROM = 0.1
_ROUNDING = 2.2e-16


class DenseForm:
    """Factors P in dense form; made once per model.

    Parameters
    ----------
    predictor : Predictor
        At any theta; only the pattern of its matrix is read.
    """

    def __init__(self, predictor: Predictor) -> None:
        A = predictor.matrix
        m, n = A.shape
        self._full = isinstance(A, np.ndarray)
        if not isinstance(A, np.ndarray):
            pairs = float(np.sum(np.diff(A.indptr).astype(float) ** 2))
            self._full = pairs > _FULL_FROM * m * n * n

    def factor(self, prior: GaussianPrior, predictor: Predictor, weights: Weights) -> "DenseFactor":
        """The factor of P.

        Raises
        ------
        NotPositiveDefinite
        """
        A = predictor.matrix
        P = _dense_precision(prior)
        if predictor.triangle is not None and weights.diagonal:
            assert isinstance(A, np.ndarray)
            _add_triangular_gram(P, A, weights, predictor.triangle)
        elif self._full:
            _add_full_gram(P, A if isinstance(A, np.ndarray) else A.toarray(), weights)
        else:
            assert isinstance(A, csr_array)
            _add_sparse_gram(
                A.indptr,
                A.indices,
                A.data,
                weights.indptr,
                weights.indices,
                weights.data,
                P.T,
            )
        given = P.diagonal().copy()
        # Non-zeros below the diagonal are never read.
        U, info = lapack.dpotrf(P, lower=0, clean=0, overwrite_a=1)
        pivots = U.diagonal()
        # A pivot that cancels to rounding is a zero of a singular matrix; NaN fails too.
        if info != 0 or not np.all(pivots * pivots > len(given) * _ROUNDING * given):
            raise NotPositiveDefinite("Q + A'WA has no Cholesky factor.")
        return DenseFactor(U, 2.0 * float(np.log(pivots).sum()))


class DenseFactor:
    """P = U'U, T = U^-1.

    Parameters
    ----------
    U : (n, n) array
        In Fortran order; only its upper triangle is read.
    log_determinant : float
        log|P|.
    """

    def __init__(self, U: np.ndarray, log_determinant: float) -> None:
        self._U = U
        self.log_determinant = log_determinant

    def solve(self, b: np.ndarray) -> np.ndarray:
        """P^-1 b of b (n,)."""
        return lapack.dpotrs(self._U, b, lower=0)[0]

    def colour(self, u: np.ndarray) -> np.ndarray:
        """T u of u (n,), or of every row of u (k, n)."""
        if u.ndim == 1:
            return blas.dtrsv(self._U, u, lower=0)
        return lapack.dtrtrs(self._U, u.T, lower=0)[0].T

    def colour_back(self, g: np.ndarray) -> np.ndarray:
        """T'g of g (n,)."""
        return blas.dtrsv(self._U, g, lower=0, trans=1)

    def whiten(self, x: np.ndarray) -> np.ndarray:
        """T^-1 x of x (n,)."""
        return blas.dtrmv(self._U, x, lower=0)

    def predictor_variances(self, predictor: Predictor) -> np.ndarray:
        """The diagonal of A P^-1 A', shape (m,)."""
        A = predictor.matrix
        if isinstance(A, np.ndarray):
            V = lapack.dtrtrs(self._U, A.T, lower=0, trans=1)[0]
            return np.einsum("ji,ji->i", V, V)
        inverse = lapack.dpotri(self._U, lower=0)[0]
        return _row_forms(A.indptr, A.indices, A.data, inverse.T)


def _dense_precision(prior: GaussianPrior) -> np.ndarray:
    """Q in Fortran order; right in its upper triangle."""
    n = prior.size
    P = np.zeros((n, n), order="F")
    Q = prior.precision
    _add_symmetric(Q.indptr, Q.indices, Q.data, P.T)
    if prior.rows is not None:
        P += prior.rows.T @ (prior.row_weights @ prior.rows)
    return P


def _add_full_gram(P: np.ndarray, A: np.ndarray, weights: Weights) -> None:
    """P += A'WA in its upper triangle."""
    if weights.diagonal:
        scaled = np.sqrt(weights.data)[:, None] * A
        blas.dsyrk(1.0, scaled.T, beta=1.0, c=P, lower=0, overwrite_c=1)
        return
    m = A.shape[0]
    W = csr_array((weights.data, weights.indices, weights.indptr), shape=(m, m))
    P += A.T @ (W @ A)


def _add_triangular_gram(P: np.ndarray, A: np.ndarray, weights: Weights, triangle: slice) -> None:
    """P += A'WA in its upper triangle, a third of the work where A is triangular."""
    scaled = np.sqrt(weights.data)[:, None] * A
    square = scaled[:, triangle]
    # In Fortran order the transpose is an upper triangle V, and V V' takes its place.
    P[triangle, triangle] += lapack.dlauum(square.T, lower=0, overwrite_c=1)[0]
    rest = np.delete(np.arange(A.shape[1]), triangle)
    if rest.size:
        others = scaled[:, rest]
        cross = scaled.T @ others
        P[:, rest] += cross
        P[rest, triangle] += cross[triangle].T


@njit(cache=True)
def _add_symmetric(indptr, indices, data, out):
    """Add a symmetric sparse matrix to `out`."""
    for j in range(indptr.shape[0] - 1):
        for p in range(indptr[j], indptr[j + 1]):
            out[j, indices[p]] += data[p]


@njit(cache=True)
def _add_sparse_gram(indptr, indices, data, w_indptr, w_indices, w_data, out):
    """Add the lower triangle of A'WA to `out`."""
    for i in range(indptr.shape[0] - 1):
        for e in range(w_indptr[i], w_indptr[i + 1]):
            w, other = w_data[e], w_indices[e]
            if w == 0.0:
                continue
            for p in range(indptr[i], indptr[i + 1]):
                j, scaled = indices[p], w * data[p]
                for q in range(indptr[other], indptr[other + 1]):
                    k = indices[q]
                    if k <= j:
                        out[j, k] += scaled * data[q]


@njit(cache=True)
def _row_forms(indptr, indices, data, S):
    """The forms a'S a for every row a of A, S symmetric and given by its lower triangle."""
    out = np.empty(indptr.shape[0] - 1)
    for i in range(out.shape[0]):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            for q in range(indptr[i], indptr[i + 1]):
                j, k = indices[p], indices[q]
                total += data[p] * data[q] * (S[j, k] if j >= k else S[k, j])
        out[i] = total
    return out
