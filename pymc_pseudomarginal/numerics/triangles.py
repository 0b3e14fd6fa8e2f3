"""Passes over one triangle of a matrix, and the inverse of a triangular one.

Half of a symmetric matrix is enough for LAPACK. Matrices are in Fortran order; the
compiled loops see their transposes, whose rows are contiguous.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.linalg import blas, lapack

# Smaller triangles are left to LAPACK, whose dtrtri is slow on larger ones.
_LEAF = 64
# Side of the blocks in which a triangle is copied to the other.
_BLOCK = 32


def lower_triangle(matrix: np.ndarray) -> np.ndarray:
    """A copy of the lower triangle in Fortran order, zero above it, shape (n, n)."""
    lower = np.empty(matrix.shape, order="F")
    _copy_upper(matrix.T, lower.T)
    return lower


def scaled_identity_plus(matrix: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Lower triangle of I + D A D, D = diag(scale), for a symmetric A, shape (n, n).

    In Fortran order and zero above the diagonal, ready to be factorised in place.
    """
    lower = np.empty(matrix.shape, order="F")
    _scale_upper(matrix.T, scale, lower.T)
    return lower


def invert_lower(L: np.ndarray) -> np.ndarray:
    """L^-1 in the place of a lower triangular L in Fortran order, shape (n, n).

    By halves: with L = [[A, 0], [C, D]] the inverse is [[A^-1, 0], [-D^-1 C A^-1, D^-1]], so
    that most of the work is in products of matrices, the fastest part of BLAS.
    """
    n = L.shape[0]
    if n <= _LEAF:
        inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        return inverse
    half = n // 2
    # Blocks of L are no arrays that BLAS takes: each is copied, worked on, and put back.
    A = L[:half, :half] = invert_lower(L[:half, :half].copy(order="F"))
    C = blas.dtrmm(1.0, A, L[half:, :half].copy(order="F"), lower=1, side=1, overwrite_b=1)
    D = L[half:, half:] = invert_lower(L[half:, half:].copy(order="F"))
    L[half:, :half] = blas.dtrmm(-1.0, D, C, lower=1, overwrite_b=1)
    return L


def gram_of_lower(L: np.ndarray) -> np.ndarray:
    """Lᵀ L in the place of a lower triangular L in Fortran order: its lower triangle, (n, n)."""
    product, _ = lapack.dlauum(L, lower=1, overwrite_c=1)
    return product


def symmetric_combination(
    lower: np.ndarray, scale: np.ndarray, weight: float, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """The full matrix c D A D + u vᵀ + v uᵀ in one pass, shape (n, n).

    Parameters
    ----------
    lower : array, shape (n, n)
        A symmetric A, of which the lower triangle is read, in Fortran order.
    scale : array, shape (n,)
        The diagonal of D.
    weight : float
        c.
    left, right : array, shape (n,)
        u and v.
    """
    full = np.empty(lower.shape)
    _combine_upper(lower.T, scale, weight, left, right, full)
    return full


# Where a loop starts from i and not from zero, Numba checks every index for its sign, and the
# compiler makes no vectors of it; hence the slices, four times as fast.


@njit(cache=True)
def _copy_upper(matrix, out):
    for i in range(matrix.shape[0]):
        out[i, :i] = 0.0
        row, given = out[i, i:], matrix[i, i:]
        for k in range(row.shape[0]):
            row[k] = given[k]


@njit(cache=True)
def _scale_upper(matrix, scale, out):
    for i in range(matrix.shape[0]):
        out[i, :i] = 0.0
        row, given, others = out[i, i:], matrix[i, i:], scale[i:]
        for k in range(row.shape[0]):
            row[k] = given[k] * (scale[i] * others[k])
        row[0] += 1.0


@njit(cache=True)
def _combine_upper(matrix, scale, weight, left, right, out):
    n = matrix.shape[0]
    for i in range(n):
        row, given, others = out[i, i:], matrix[i, i:], scale[i:]
        u, v, c = left[i:], right[i:], weight * scale[i]
        for k in range(row.shape[0]):
            row[k] = c * given[k] * others[k] + (left[i] * v[k] + right[i] * u[k])
    # In blocks, so that the columns written stay in the cache.
    for first in range(0, n, _BLOCK):
        for second in range(first, n, _BLOCK):
            for i in range(first, min(first + _BLOCK, n)):
                for j in range(max(i + 1, second), min(second + _BLOCK, n)):
                    out[j, i] = out[i, j]
