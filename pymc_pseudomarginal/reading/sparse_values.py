"""Sparse matrices of one pattern, made again and again from new values."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array


class SparseValues:
    """Values in the order of an entry list -> a sparse array, without sorting them again.

    Parameters
    ----------
    kind : type
        `csr_array` or `csc_array`.
    rows, columns : array of int, shape (nnz,)
    shape : tuple of int
    """

    def __init__(
        self,
        kind: type[csr_array] | type[csc_array],
        rows: np.ndarray,
        columns: np.ndarray,
        shape: tuple[int, int],
    ):
        order = kind((np.arange(1, rows.size + 1), (rows, columns)), shape=shape)
        order.sort_indices()
        self._kind, self._shape = kind, shape
        self._order = order.data - 1
        self._indices, self._indptr = order.indices, order.indptr

    def __call__(self, values: np.ndarray) -> csr_array | csc_array:
        """The matrix with these values (nnz,)."""
        parts = (values[self._order], self._indices, self._indptr)
        matrix = self._kind(parts, shape=self._shape, copy=False)
        matrix.has_sorted_indices = True
        return matrix
