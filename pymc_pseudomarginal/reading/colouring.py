"""Colourings of sparse patterns, so that few products give all entries of a matrix.

Curtis, Powell & Reid (1974) for columns; Coleman & Moré (1984) for symmetric matrices, with
dense columns taken out first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from scipy.sparse import csr_array

_DENSE_FROM = 30
_DENSE_RATIO = 8.0
_SMALL = 20


@dataclass(frozen=True)
class SymmetricColouring:
    """Where the entries of a symmetric matrix are read from its products with seeds.

    Attributes
    ----------
    rows, columns : array of int, shape (nnz,)
    colours, positions : array of int, shape (nnz,)
        Entry e is element `positions[e]` of the product with seed `colours[e]`.
    seeds : array, shape (n_colours, n)
    """

    rows: np.ndarray
    columns: np.ndarray
    colours: np.ndarray
    positions: np.ndarray
    seeds: np.ndarray


def colour_columns(pattern: csr_array) -> tuple[np.ndarray, int]:
    """Colours of the columns, those of one colour sharing no row, and their number."""
    columns = pattern.tocsc()
    degrees = np.diff(columns.indptr)
    order = np.argsort(-degrees, kind="stable")
    rows = pattern.tocsr()
    colours = _greedy(
        order, columns.indptr, columns.indices, rows.indptr, rows.indices, pattern.shape[1]
    )
    return colours, int(colours.max(initial=-1)) + 1


def colour_symmetric(pattern: csr_array) -> SymmetricColouring:
    """A colouring for products of a symmetric matrix.

    Columns with many entries (a mean that all effects share) get colours of their own; an entry
    between such a column and another is read from its product. The rest is coloured so that
    columns of one colour share no row.
    """
    n = pattern.shape[0]
    pattern = pattern.tocsr()
    degrees = np.diff(pattern.indptr)
    dense = np.zeros(n, dtype=bool)
    if n > _SMALL:
        dense = degrees > max(_DENSE_FROM, _DENSE_RATIO * float(np.median(degrees)))
    colours = np.empty(n, dtype=np.int64)
    few, rest = np.flatnonzero(dense), np.flatnonzero(~dense)
    colours[few] = np.arange(few.size)
    inner = csr_array(pattern[rest][:, rest])
    inner_colours, count = colour_columns(inner)
    colours[rest] = few.size + inner_colours
    seeds = np.zeros((few.size + count, n))
    seeds[colours, np.arange(n)] = 1.0
    entries = pattern.tocoo()
    rows, columns = (np.asarray(c, dtype=np.int64) for c in entries.coords)
    swapped = dense[rows] & ~dense[columns]
    return SymmetricColouring(
        rows,
        columns,
        np.where(swapped, colours[rows], colours[columns]),
        np.where(swapped, columns, rows),
        seeds,
    )


@numba.njit(cache=True)
def _greedy(order, column_ptr, column_rows, row_ptr, row_columns, n):
    """The smallest colour that no column with a common row has."""
    colours = np.full(n, -1, dtype=np.int64)
    taken_by = np.full(n + 1, -1, dtype=np.int64)
    for column in order:
        for p in range(column_ptr[column], column_ptr[column + 1]):
            row = column_rows[p]
            for q in range(row_ptr[row], row_ptr[row + 1]):
                other = colours[row_columns[q]]
                if other >= 0:
                    taken_by[other] = column
        colour = 0
        while taken_by[colour] == column:
            colour += 1
        colours[column] = colour
    return colours
