"""Matrices that depend on theta, whose values come from products of the model's own graph.

A product with a seed, a sum of unit vectors that share no row, gives the entries of all its
columns at once. What cannot vary with theta, by structure, is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array

from pymc_pseudomarginal.reading.colouring import SymmetricColouring
from pymc_pseudomarginal.reading.graphs import rebuild


@dataclass(frozen=True)
class Entries:
    """Entries of a matrix and the products from which they are read.

    Attributes
    ----------
    rows, columns : array of int, shape (nnz,)
    colours : array of int, shape (nnz,)
        The seed whose product holds the entry.
    positions : array of int, shape (nnz,)
        The place in that product.
    seeds : array, shape (n_colours, n)
    varies : array of bool, shape (nnz,)
        Whether an entry may change with theta.
    """

    rows: np.ndarray
    columns: np.ndarray
    colours: np.ndarray
    positions: np.ndarray
    seeds: np.ndarray
    varies: np.ndarray

    @staticmethod
    def of(colouring: SymmetricColouring, varying: csr_array) -> Entries:
        """The entries of a symmetric matrix, given the pattern of those that may change."""
        rows, columns = colouring.rows, colouring.columns
        return Entries(
            rows,
            columns,
            colouring.colours,
            colouring.positions,
            colouring.seeds,
            stored(varying, rows, columns),
        )

    def take(self, keep: np.ndarray) -> Entries:
        """Some of the entries."""
        return Entries(
            self.rows[keep],
            self.columns[keep],
            self.colours[keep],
            self.positions[keep],
            self.seeds,
            self.varies[keep],
        )


def stored(pattern: csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Which entries, given by their rows and columns, a pattern has."""
    own = pattern.tocoo()
    width = pattern.shape[1]
    own_rows, own_columns = (c.astype(np.int64) for c in own.coords)
    return np.isin(rows.astype(np.int64) * width + columns, own_rows * width + own_columns)


@dataclass(frozen=True)
class VaryingMatrix:
    """A matrix with a fixed pattern, part of whose entries depend on theta.

    Attributes
    ----------
    rows, columns : array of int, shape (nnz,)
    fixed : array, shape (nnz,)
        The values of the entries; those that vary as they are at one theta.
    varying : array of int
        The entries that vary.
    colours, positions : array of int
        Where the varying ones are read, in products with `seeds`.
    seeds : array, shape (n_varying_colours, n)
    """

    rows: np.ndarray
    columns: np.ndarray
    fixed: np.ndarray
    varying: np.ndarray
    colours: np.ndarray
    positions: np.ndarray
    seeds: np.ndarray

    def values(self, products: np.ndarray | None) -> np.ndarray:
        """All entries, given the products of the seeds at some theta."""
        if products is None or not self.varying.size:
            return self.fixed
        values = self.fixed.copy()
        values[self.varying] = products[self.colours, self.positions]
        return values


def freeze(entries: Entries, products: np.ndarray) -> VaryingMatrix:
    """Keep the values of what does not vary; of that, drop what is zero.

    Parameters
    ----------
    entries : Entries
    products : array, shape (n_colours, m)
        All seeds' products at one theta.
    """
    values = products[entries.colours, entries.positions]
    present = entries.varies | (values != 0.0)
    entries = entries.take(present)
    varying = np.flatnonzero(entries.varies)
    used, colours = np.unique(entries.colours[varying], return_inverse=True)
    return VaryingMatrix(
        entries.rows,
        entries.columns,
        values[present],
        varying,
        colours,
        entries.positions[varying],
        entries.seeds[used],
    )


def products_graph(graph: TensorVariable, x: TensorVariable, seeds: np.ndarray) -> TensorVariable:
    """graph(seed) - graph(0) for every seed, in one graph; shape (n_seeds, m).

    The graph is affine in x. Where PyTensor cannot vectorise it, the seeds are put in one
    after the other.
    """
    if x not in set(ancestors([graph])):
        return pt.zeros((len(seeds), graph.shape[0]))
    try:
        products = vectorize_graph(graph, {x: pt.as_tensor_variable(seeds)})
    except Exception:  # whatever the vectorisation of some Op raises, a loop serves
        products = pt.stack([graph_at(graph, x, seed) for seed in seeds])
    return products - graph_at(graph, x, np.zeros(seeds.shape[1]))


def graph_at(graph: TensorVariable, x: TensorVariable, value: np.ndarray) -> TensorVariable:
    """The graph with a constant in the place of x."""
    return rebuild([graph], {x: pt.as_tensor_variable(value)})[0]
