"""The pattern of P = Q + A'WA and of its factor L: all that does not depend on theta."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import spilu

from pymc_pseudomarginal.linalg.curvature import CurvatureForm
from pymc_pseudomarginal.linalg.latent import GaussianPrior


@dataclass(frozen=True)
class Symbolic:
    """Where every product goes in P, and every element of P in L.

    P is held by the upper triangle of its columns in an order of little fill; L is unit lower
    triangular, by columns below the diagonal, P = L D L' in that order.

    Parameters
    ----------
    order : (n,) array
        The element of x at each place.
    indptr, indices : arrays, shapes (n + 1,), (nnz(P),)
        Columns of the upper triangle; the diagonal is the last entry of each.
    prior_at : (nnz(Q),) array
        Where each entry of Q is added; -1 for those of the other triangle.
    gram_at : array
        Where each product a_ij w_il a_lk is added, in the order of the loops; or -1.
    L_indptr, L_indices : arrays, shapes (n + 1,), (nnz(L),)
    row_indptr, row_indices : arrays, shapes (n + 1,), (nnz(L),)
        The same entries by rows.
    """

    order: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    prior_at: np.ndarray
    gram_at: np.ndarray
    L_indptr: np.ndarray
    L_indices: np.ndarray
    row_indptr: np.ndarray
    row_indices: np.ndarray

    @property
    def operations(self) -> float:
        """Multiplications of the numeric factorisation."""
        columns = np.diff(self.L_indptr).astype(float)
        return 0.5 * float(np.sum(columns * (columns + 3.0)))


def symbolic(prior: GaussianPrior, matrix: csr_array, curvature: CurvatureForm) -> Symbolic:
    """The analysis of P from the patterns of Q, A and W."""
    Q = prior.precision
    n, m = Q.shape[0], matrix.shape[0]
    A = _ones(csr_array, matrix, (m, n))
    W = csr_array((np.ones(len(curvature.indices)), curvature.indices, curvature.indptr), (m, m))
    whole = csc_array(_ones(csc_array, Q, (n, n)) + A.T @ (W @ A) + diags_array(np.ones(n)))
    order = fill_reducing_order(whole)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    columns = np.repeat(np.arange(n), np.diff(whole.indptr))
    rows, columns = place[whole.indices], place[columns]
    upper = rows <= columns
    keys = np.unique(columns[upper] * n + rows[upper])
    indices = (keys % n).astype(np.uint32)
    indptr = np.searchsorted(keys, np.arange(n + 1) * n)
    prior_columns = np.repeat(np.arange(n), np.diff(Q.indptr))
    prior_at = _find(keys, n, place[Q.indices], place[prior_columns])
    gram_at = _gram_positions(
        matrix.indptr, matrix.indices, curvature.indptr, curvature.indices, place, keys
    )
    L_indptr, L_indices = _pattern_of_L(indptr, indices)
    row_indptr, row_indices = _by_rows(L_indptr, L_indices)
    return Symbolic(
        order, indptr, indices, prior_at, gram_at, L_indptr, L_indices, row_indptr, row_indices
    )


def gram_products(matrix: csr_array, curvature: CurvatureForm) -> float:
    """How many products a_ij w_il a_lk make A'WA."""
    sizes = np.diff(matrix.indptr).astype(float)
    rows = np.repeat(np.arange(curvature.size), np.diff(curvature.indptr))
    return float(sizes[rows] @ sizes[curvature.indices])


def fill_reducing_order(pattern: csc_array) -> np.ndarray:
    """A minimum degree order of a symmetric pattern (n, n), shape (n,).

    SuperLU's; to have it, an incomplete factorisation is made that drops whatever it can.

    Parameters
    ----------
    pattern : (n, n) csc_array
        Values at least zero.

    References
    ----------
    Liu (1985), Modification of the minimum-degree algorithm by multiple elimination.
    """
    # Values that make any pattern positive definite, so that no pivot is zero.
    dominant = csc_array(pattern + diags_array(np.asarray(pattern.sum(axis=1)).ravel() + 1.0))
    incomplete = spilu(
        dominant,
        drop_tol=1e9,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(incomplete.perm_c).astype(np.int64)


def _ones(kind, matrix, shape):
    """The pattern of a matrix, with ones."""
    return kind((np.ones(len(matrix.indices)), matrix.indices, matrix.indptr), shape=shape)


def _find(keys: np.ndarray, n: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Where entries of the upper triangle stand; -1 for the others."""
    found = np.searchsorted(keys, columns * n + rows)
    return np.where(rows <= columns, found, -1).astype(np.int32)


@njit(cache=True)
def _gram_positions(indptr, indices, w_indptr, w_indices, place, keys):
    n = place.shape[0]
    count = 0
    for i in range(w_indptr.shape[0] - 1):
        for e in range(w_indptr[i], w_indptr[i + 1]):
            other = w_indices[e]
            count += (indptr[i + 1] - indptr[i]) * (indptr[other + 1] - indptr[other])
    out = np.empty(count, np.int32)
    t = 0
    for i in range(w_indptr.shape[0] - 1):
        for e in range(w_indptr[i], w_indptr[i + 1]):
            other = w_indices[e]
            for p in range(indptr[i], indptr[i + 1]):
                for q in range(indptr[other], indptr[other + 1]):
                    row, column = place[indices[p]], place[indices[q]]
                    out[t] = -1
                    if row <= column:
                        out[t] = np.searchsorted(keys, column * n + row)
                    t += 1
    return out


@njit(cache=True)
def _pattern_of_L(indptr, indices):
    """Columns of L below the diagonal: row k holds all on the way from its entries to the root."""
    n = indptr.shape[0] - 1
    parent = np.full(n, -1, np.int64)
    seen = np.full(n, -1, np.int64)
    L_indptr = np.zeros(n + 1, np.int64)
    for k in range(n):
        seen[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            while seen[i] != k:
                if parent[i] == -1:
                    parent[i] = k
                L_indptr[i + 1] += 1
                seen[i] = k
                i = parent[i]
    for j in range(n):
        L_indptr[j + 1] += L_indptr[j]
    L_indices = np.empty(L_indptr[n], np.uint32)
    free = L_indptr[:-1].copy()
    seen[:] = -1
    for k in range(n):
        seen[k] = k
        for p in range(indptr[k], indptr[k + 1]):
            i = indices[p]
            while seen[i] != k:
                L_indices[free[i]] = k
                free[i] += 1
                seen[i] = k
                i = parent[i]
    return L_indptr, L_indices


@njit(cache=True)
def _by_rows(L_indptr, L_indices):
    """The columns of each row of L, ascending."""
    n = L_indptr.shape[0] - 1
    row_indptr = np.zeros(n + 1, np.int64)
    for i in L_indices:
        row_indptr[i + 1] += 1
    for k in range(n):
        row_indptr[k + 1] += row_indptr[k]
    row_indices = np.empty(L_indices.shape[0], np.uint32)
    free = row_indptr[:-1].copy()
    for j in range(n):
        for p in range(L_indptr[j], L_indptr[j + 1]):
            i = L_indices[p]
            row_indices[free[i]] = j
            free[i] += 1
    return row_indptr, row_indices
