"""P = Q + A'WA as a sparse matrix, and its factor L D L'."""

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from pymc_pseudomarginal.linalg.curvature import CurvatureForm, Weights
from pymc_pseudomarginal.linalg.latent import GaussianPrior, Predictor
from pymc_pseudomarginal.linalg.sparse_symbolic import Symbolic, symbolic
from pymc_pseudomarginal.numerics.errors import NotPositiveDefinite


class SparseForm:
    """Factors P = Q + A'WA without the prior's dense rows; made once per model.

    Parameters
    ----------
    prior : GaussianPrior
    predictor : Predictor
        Both at any theta; only patterns are read.
    curvature : CurvatureForm
    """

    def __init__(
        self, prior: GaussianPrior, predictor: Predictor, curvature: CurvatureForm
    ) -> None:
        assert isinstance(predictor.matrix, csr_array)
        self.symbolic = symbolic(prior, predictor.matrix, curvature)
        self._prior_indices = prior.precision.indices
        self._matrix_indices = predictor.matrix.indices

    def factor(
        self, prior: GaussianPrior, predictor: Predictor, weights: Weights
    ) -> "SparseFactor":
        """The factor of P without the rows of the prior.

        Raises
        ------
        NotPositiveDefinite
        ValueError
            A pattern is not the one that was analysed.
        """
        s, A, Q = self.symbolic, predictor.matrix, prior.precision
        assert isinstance(A, csr_array)
        _same(self._prior_indices, Q.indices, "precision")
        _same(self._matrix_indices, A.indices, "predictor's matrix")
        values = np.zeros(s.indices.shape[0])
        _add_prior(s.prior_at, Q.data, values)
        _add_gram(
            A.indptr,
            A.data,
            weights.indptr,
            weights.indices,
            weights.data,
            s.gram_at,
            values,
        )
        L, D, fine = _factorise(
            s.indptr, s.indices, values, s.L_indptr, s.L_indices, s.row_indptr, s.row_indices
        )
        if not fine:
            raise NotPositiveDefinite("Q + A'WA has no Cholesky factor.")
        return SparseFactor(s, L, D)


class SparseFactor:
    """P = L D L' in the order of `symbolic`, T = L^-T D^-1/2.

    Parameters
    ----------
    symbolic : Symbolic
    L : (nnz(L),) array
        Below the diagonal, which is one.
    D : (n,) array
    """

    def __init__(self, symbolic: Symbolic, L: np.ndarray, D: np.ndarray) -> None:
        self._order = symbolic.order
        self._L = (symbolic.L_indptr, symbolic.L_indices, L)
        self._D = D
        self._root = np.sqrt(D)
        self.log_determinant = float(np.log(D).sum())

    def solve(self, b: np.ndarray) -> np.ndarray:
        """P^-1 b of b (n,)."""
        return _solve(*self._L, self._D, self._order, b)

    def colour(self, u: np.ndarray) -> np.ndarray:
        """T u of u (n,), or of every row of u (k, n)."""
        if u.ndim == 1:
            return _colour(*self._L, self._root, self._order, u)
        return _colour_each(*self._L, self._root, self._order, u)

    def colour_back(self, g: np.ndarray) -> np.ndarray:
        """T'g of g (n,)."""
        return _colour_back(*self._L, self._root, self._order, g)

    def whiten(self, x: np.ndarray) -> np.ndarray:
        """T^-1 x of x (n,)."""
        return _whiten(*self._L, self._root, self._order, x)

    def predictor_variances(self, predictor: Predictor) -> np.ndarray:
        """The diagonal of A P^-1 A', shape (m,), by the entries of P^-1 on the pattern of L.

        References
        ----------
        Takahashi, Fagan & Chen (1973), Formation of a sparse bus impedance matrix.
        """
        A = predictor.matrix
        assert isinstance(A, csr_array)
        diagonal, below = _selected_inverse(*self._L, self._D)
        place = np.empty(self._order.shape[0], dtype=np.int64)
        place[self._order] = np.arange(place.shape[0])
        L_indptr, L_indices, _ = self._L
        return _row_forms(A.indptr, A.indices, A.data, place, L_indptr, L_indices, diagonal, below)


def _same(known: np.ndarray, given: np.ndarray, name: str) -> None:
    if given is not known and not np.array_equal(given, known):
        raise ValueError(f"The sparsity pattern of the {name} changed with theta.")


@njit(cache=True)
def _add_prior(prior_at, data, values):
    for p in range(prior_at.shape[0]):
        if prior_at[p] >= 0:
            values[prior_at[p]] += data[p]


@njit(cache=True)
def _add_gram(indptr, data, w_indptr, w_indices, w_data, gram_at, values):
    t = 0
    for i in range(w_indptr.shape[0] - 1):
        for e in range(w_indptr[i], w_indptr[i + 1]):
            other, w = w_indices[e], w_data[e]
            for p in range(indptr[i], indptr[i + 1]):
                scaled = w * data[p]
                for q in range(indptr[other], indptr[other + 1]):
                    if gram_at[t] >= 0:
                        values[gram_at[t]] += scaled * data[q]
                    t += 1


@njit(cache=True)
def _factorise(indptr, indices, values, L_indptr, L_indices, row_indptr, row_indices):
    """L and D row by row: row k of L solves with the rows above it (Davis 2006, section 4.7)."""
    n = indptr.shape[0] - 1
    L = np.empty(L_indices.shape[0])
    D = np.empty(n)
    y = np.zeros(n)
    free = L_indptr[:-1].copy()
    smallest = n * 2.2e-16
    for k in range(n):
        for p in range(indptr[k], indptr[k + 1]):
            y[indices[p]] = values[p]
        given = y[k]
        pivot = given
        y[k] = 0.0
        for r in range(row_indptr[k], row_indptr[k + 1]):
            j = row_indices[r]
            above = y[j]
            y[j] = 0.0
            end = free[j]
            for p in range(L_indptr[j], end):
                y[L_indices[p]] -= L[p] * above
            ratio = above / D[j]
            pivot -= ratio * above
            L[end] = ratio
            free[j] = end + 1
        # A pivot that cancels to rounding is a zero of a singular matrix; NaN fails too.
        if not (pivot > smallest * given) or pivot == np.inf:
            return L, D, False
        D[k] = pivot
    return L, D, True


@njit(cache=True)
def _forward(indptr, indices, L, y):
    for j in range(y.shape[0]):
        v = y[j]
        for p in range(indptr[j], indptr[j + 1]):
            y[indices[p]] -= L[p] * v


@njit(cache=True)
def _backward(indptr, indices, L, y):
    for j in range(y.shape[0] - 1, -1, -1):
        v = y[j]
        for p in range(indptr[j], indptr[j + 1]):
            v -= L[p] * y[indices[p]]
        y[j] = v


@njit(cache=True)
def _solve(indptr, indices, L, D, order, b):
    y = b[order]
    _forward(indptr, indices, L, y)
    y /= D
    _backward(indptr, indices, L, y)
    out = np.empty_like(y)
    out[order] = y
    return out


@njit(cache=True)
def _colour(indptr, indices, L, root, order, u):
    y = u / root
    _backward(indptr, indices, L, y)
    out = np.empty_like(y)
    out[order] = y
    return out


@njit(cache=True)
def _colour_each(indptr, indices, L, root, order, U):
    out = np.empty(U.shape)
    for k in range(U.shape[0]):
        out[k] = _colour(indptr, indices, L, root, order, U[k])
    return out


@njit(cache=True)
def _colour_back(indptr, indices, L, root, order, g):
    y = g[order]
    _forward(indptr, indices, L, y)
    return y / root


@njit(cache=True)
def _whiten(indptr, indices, L, root, order, x):
    y = x[order]
    out = np.empty_like(y)
    for j in range(y.shape[0]):
        v = y[j]
        for p in range(indptr[j], indptr[j + 1]):
            v += L[p] * y[indices[p]]
        out[j] = v * root[j]
    return out


@njit(cache=True)
def _selected_inverse(indptr, indices, L, D):
    """P^-1 on the diagonal and on the pattern of L, from the last column to the first."""
    n = D.shape[0]
    diagonal, below = np.empty(n), np.empty(L.shape[0])
    column, total = np.zeros(n), np.zeros(n)
    inside = np.zeros(n, np.bool_)
    for j in range(n - 1, -1, -1):
        start, end = indptr[j], indptr[j + 1]
        for p in range(start, end):
            inside[indices[p]], column[indices[p]], total[indices[p]] = True, L[p], 0.0
        for p in range(start, end):
            k = indices[p]
            total[k] += diagonal[k] * L[p]
            for q in range(indptr[k], indptr[k + 1]):
                i = indices[q]
                if inside[i]:
                    total[i] += below[q] * L[p]
                    total[k] += below[q] * column[i]
        variance = 1.0 / D[j]
        for p in range(start, end):
            below[p] = -total[indices[p]]
            variance += L[p] * total[indices[p]]
            inside[indices[p]] = False
        diagonal[j] = variance
    return diagonal, below


@njit(cache=True)
def _row_forms(indptr, indices, data, place, L_indptr, L_indices, diagonal, below):
    """The forms a'S a for every row a of A, S given on the diagonal and the pattern of L."""
    out = np.zeros(indptr.shape[0] - 1)
    for i in range(out.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            j = place[indices[p]]
            out[i] += data[p] * data[p] * diagonal[j]
            for q in range(indptr[i], p):
                k = place[indices[q]]
                low, high = min(j, k), max(j, k)
                start, end = L_indptr[low], L_indptr[low + 1]
                at = start + np.searchsorted(L_indices[start:end], high)
                out[i] += 2.0 * data[p] * data[q] * below[at]
    return out
