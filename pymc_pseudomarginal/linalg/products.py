"""Products with sparse matrices given by their arrays, without SciPy's checks.

A product of a small sparse matrix takes a microsecond; SciPy takes several to find out which
loop to call.
"""

import numpy as np
from numba import njit
from scipy.sparse import csr_array


def times(matrix: csr_array | np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x of a dense or CSR matrix A (m, n) and x (n,), shape (m,)."""
    if isinstance(matrix, np.ndarray):
        return matrix @ x
    return rows_times(matrix.indptr, matrix.indices, matrix.data, x)


def transpose_times(matrix: csr_array | np.ndarray, g: np.ndarray) -> np.ndarray:
    """A'g of a dense or CSR matrix A (m, n) and g (m,), shape (n,)."""
    if isinstance(matrix, np.ndarray):
        return g @ matrix
    return _columns_times(matrix.indptr, matrix.indices, matrix.data, g, matrix.shape[1])


def times_each(matrix: csr_array | np.ndarray, X: np.ndarray) -> np.ndarray:
    """A x for every row x of X (k, n), shape (k, m)."""
    if isinstance(matrix, np.ndarray):
        return X @ matrix.T
    return np.ascontiguousarray((matrix @ X.T).T)


@njit(cache=True)
def rows_times(indptr, indices, data, x):
    """A x by the rows of A; of a symmetric matrix the columns do as well."""
    out = np.empty(indptr.shape[0] - 1)
    for i in range(out.shape[0]):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * x[indices[p]]
        out[i] = total
    return out


@njit(cache=True)
def _columns_times(indptr, indices, data, g, n):
    out = np.zeros(n)
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            out[indices[p]] += data[p] * g[i]
    return out
