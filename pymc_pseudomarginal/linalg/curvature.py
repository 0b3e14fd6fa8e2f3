"""Weights W of the predictors: the likelihood's curvature, made positive semi-definite.

Any W gives an exact sampler, since q only proposes; P = Q + A'WA must have a factor.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from pymc_pseudomarginal.linalg.products import rows_times
from pymc_pseudomarginal.numerics.errors import NumericalFailure

# Larger components would cost more than the factor of P; their diagonal is lifted instead.
MAX_BLOCK = 64
# Pivots down to this part of a block's largest entry are rounding, as of softmax's zero eigenvalue.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Weights:
    """W (m, m) in compressed rows, positive semi-definite.

    Parameters
    ----------
    indptr, indices, data : arrays, shapes (m + 1,), (nnz,), (nnz,)
    diagonal : bool
        Whether W is diagonal, with every diagonal element stored.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    diagonal: bool

    def times(self, e: np.ndarray) -> np.ndarray:
        """W e of e (m,), shape (m,)."""
        if self.diagonal:
            return self.data * e
        return rows_times(self.indptr, self.indices, self.data, e)

    def quadratic_forms(self, E: np.ndarray) -> np.ndarray:
        """The forms e'W e of every row e of E (k, m), shape (k,)."""
        if self.diagonal:
            return (E * E) @ self.data
        m = E.shape[1]
        W = csr_array((self.data, self.indices, self.indptr), shape=(m, m))
        return np.einsum("ki,ki->k", E, (W @ E.T).T)


class CurvatureForm:
    """How a model's curvatures become weights; made once from the pattern of one of them.

    Parameters
    ----------
    curvature : (m,) array or (m, m) csr_array
        The negative Hessian at any point; its values are not read.
    """

    def __init__(self, curvature: np.ndarray | csr_array) -> None:
        self.diagonal = isinstance(curvature, np.ndarray)
        m = curvature.shape[0]
        self.size = m
        if self.diagonal:
            self.indptr = np.arange(m + 1, dtype=np.int32)
            self.indices = np.arange(m, dtype=np.int32)
        else:
            self._lay_out_blocks(curvature)

    def weights(self, curvature: np.ndarray | csr_array) -> Weights:
        """The positive semi-definite part of `curvature`.

        Negative eigenvalues of each connected component become zero; in a component of more
        than `MAX_BLOCK` predictors the diagonal is lifted until it dominates.

        Raises
        ------
        NumericalFailure
            An entry is not finite.
        """
        raw = curvature if isinstance(curvature, np.ndarray) else curvature.data
        if not np.isfinite(raw.sum()):
            raise NumericalFailure("The curvature of log p(y|eta) is not finite.")
        if self.diagonal:
            return self.of_diagonal(np.maximum(raw, 0.0))
        return Weights(self.indptr, self.indices, self._project(raw), False)

    def of_diagonal(self, diagonal: np.ndarray) -> Weights:
        """Weights of a diagonal W, whose elements (m,) are at least zero."""
        if self.diagonal:
            return Weights(self.indptr, self.indices, diagonal, True)
        data = np.zeros(self.indices.shape[0])
        data[self.diagonal_at] = diagonal
        return Weights(self.indptr, self.indices, data, False)

    def diagonal_of(self, curvature: np.ndarray | csr_array) -> np.ndarray:
        """The diagonal of a curvature as it was given, shape (m,)."""
        if isinstance(curvature, np.ndarray):
            return curvature
        return np.append(curvature.data, 0.0)[self._raw_diagonal_at]

    def _lay_out_blocks(self, pattern: csr_array) -> None:
        """Where each block is read from in the given entries, and written to in W's."""
        m = self.size
        rows = np.repeat(np.arange(m), np.diff(pattern.indptr))
        ones = np.ones(pattern.nnz)
        whole = csr_array((ones, pattern.indices, pattern.indptr), shape=(m, m))
        n_components, label = connected_components(whole, directed=False)
        sizes = np.bincount(label, minlength=n_components)
        order = np.argsort(label, kind="stable")
        starts = np.concatenate(([0], np.cumsum(sizes)))
        members = {
            k: order[starts[:-1][sizes == k][:, None] + np.arange(k)]
            for k in np.unique(sizes)
            if k <= MAX_BLOCK
        }
        large = sizes[label[rows]] > MAX_BLOCK
        # W's pattern: full blocks, and the given pattern where components are large.
        block_rows = [np.repeat(c, c.shape[1], axis=1).ravel() for c in members.values()]
        block_columns = [np.tile(c, (1, c.shape[1])).ravel() for c in members.values()]
        big = np.flatnonzero(sizes[label] > MAX_BLOCK)
        all_rows = np.concatenate([*block_rows, rows[large], big]).astype(np.int64)
        all_columns = np.concatenate([*block_columns, pattern.indices[large], big]).astype(np.int64)
        keys = np.unique(all_rows * m + all_columns)
        self.indices = (keys % m).astype(np.int32)
        self.indptr = np.searchsorted(keys, np.arange(m + 1) * m).astype(np.int32)
        self.diagonal_at = np.searchsorted(keys, np.arange(m) * (m + 1))
        raw_keys = rows.astype(np.int64) * m + pattern.indices
        self._raw_diagonal_at = _positions(np.arange(m) * (m + 1), raw_keys)
        self._blocks = []
        for c in members.values():
            block_keys = c[:, :, None] * m + c[:, None, :]
            self._blocks.append(
                (_positions(block_keys, raw_keys), np.searchsorted(keys, block_keys))
            )
        self._large_from = np.flatnonzero(large)
        self._large_to = np.searchsorted(keys, raw_keys[large])
        self._large_rows = big

    def _project(self, raw: np.ndarray) -> np.ndarray:
        """W's entries, from the given ones."""
        padded = np.append(raw, 0.0)
        data = np.zeros(self.indices.shape[0])
        for source, target in self._blocks:
            data[target] = positive_part(padded[source])
        if self._large_rows.size:
            data[self._large_to] = raw[self._large_from]
            _dominate(self.indptr, self.indices, data, self._large_rows, self.diagonal_at)
        return data


def positive_part(blocks: np.ndarray) -> np.ndarray:
    """The nearest positive semi-definite matrices to symmetric blocks (c, k, k)."""
    k = blocks.shape[1]
    if k == 1:
        return np.maximum(blocks, 0.0)
    blocks = 0.5 * (blocks + blocks.transpose(0, 2, 1))
    bad = _indefinite(blocks)
    if bad.size:
        # Only what needs it: an eigendecomposition costs some microseconds a block.
        values, vectors = np.linalg.eigh(blocks[bad])
        vectors *= np.sqrt(np.maximum(values, 0.0))[:, None, :]
        blocks[bad] = vectors @ vectors.transpose(0, 2, 1)
    return blocks


def _positions(keys: np.ndarray, raw_keys: np.ndarray) -> np.ndarray:
    """Where each key stands among the given ones; behind their end if it does not."""
    order = np.argsort(raw_keys, kind="stable")
    at = np.searchsorted(raw_keys, keys, sorter=order)
    padded = np.append(order, raw_keys.size)
    found = padded[at]
    present = np.append(raw_keys, -1)[found] == keys
    return np.where(present, found, raw_keys.size)


@njit(cache=True)
def _indefinite(blocks):
    """Indices of the blocks that have a negative eigenvalue, by elimination."""
    count, k, _ = blocks.shape
    out = np.empty(count, np.int64)
    found = 0
    A = np.empty((k, k))
    for c in range(count):
        A[:] = blocks[c]
        tolerance = _ROUNDING * np.max(np.abs(A))
        fine = True
        for j in range(k):
            pivot = A[j, j]
            if pivot > tolerance:
                for i in range(j + 1, k):
                    ratio = A[i, j] / pivot
                    for h in range(j + 1, k):
                        A[i, h] -= ratio * A[j, h]
                continue
            fine = pivot >= -tolerance
            for i in range(j + 1, k):
                # Beside a zero on the diagonal, only zeros are semi-definite.
                if abs(A[i, j]) > tolerance:
                    fine = False
            if not fine:
                break
        if not fine:
            out[found] = c
            found += 1
    return out[:found]


@njit(cache=True)
def _dominate(indptr, indices, data, rows, diagonal_at):
    """Lift the diagonal of the given rows to the sum of the other entries (Gershgorin)."""
    for i in rows:
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] != i:
                total += abs(data[p])
        data[diagonal_at[i]] = max(data[diagonal_at[i]], total)
