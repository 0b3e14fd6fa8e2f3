"""A(theta) of eta = A x + b: which graphs give its values, and how they are put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array, vstack

from pymc_pseudomarginal.reading.colouring import colour_columns
from pymc_pseudomarginal.reading.compiling import Compiler
from pymc_pseudomarginal.reading.dense_blocks import DenseBlock, find_dense_block
from pymc_pseudomarginal.reading.graphs import rebuild
from pymc_pseudomarginal.reading.layout import Layout
from pymc_pseudomarginal.reading.linear_maps import (
    Entries,
    VaryingMatrix,
    freeze,
    products_graph,
    stored,
)
from pymc_pseudomarginal.reading.patterns import propagate
from pymc_pseudomarginal.reading.sparse_values import SparseValues
from pymc_pseudomarginal.reading.structure import Structure

_FULL = 0.25
"""Share of entries from which a matrix is kept as a dense array."""


class PredictorMatrix:
    """A as a function of theta.

    Parameters
    ----------
    structure : Structure
    x, theta : Layout
    eta : TensorVariable, shape (m,)
        The predictors as a graph of theta and x.
    """

    def __init__(self, structure: Structure, x: Layout, theta: Layout, eta: TensorVariable):
        self.structure, self.x, self.theta, self.eta = structure, x, theta, eta

    @cached_property
    def graphs(self) -> list[TensorVariable]:
        """Graphs of theta whose values `assembled` needs."""
        graphs = []
        if self._entries.varying.size:
            graphs.append(products_graph(self.eta, self.x.vector, self._entries.seeds))
        if self._block is not None:
            graphs.append(self._block.graph)
        return graphs

    def assembled(self, values: Iterator[np.ndarray]) -> csr_array | np.ndarray:
        """A (m, n), from the values of the graphs."""
        if not self.graphs:
            return self._constant
        products = next(values) if self._entries.varying.size else None
        entries = self._entries.values(products)
        if self._block is None:
            return self._form(entries)
        block = next(values)
        columns = self.x.slices[self._block.member]
        if block.shape[1] == self.x.size:
            return block
        matrix = self._form(entries)
        matrix[:, columns] = block
        return matrix

    @property
    def triangle(self) -> slice | None:
        """The columns in which A is a lower triangular matrix, if there are such."""
        if self._block is None or not self._block.lower:
            return None
        return self.x.slices[self._block.member]

    @cached_property
    def _constant(self) -> csr_array | np.ndarray:
        return self._form(self._entries.fixed)

    @cached_property
    def _places(self) -> Sequence[TensorVariable]:
        terms = self.structure.terms
        return list(terms.places) if terms is not None else []

    @cached_property
    def _shape(self) -> tuple[int, int]:
        affinity = self.structure.membership.affinity
        return sum(affinity.size(p) for p in self._places), self.x.size

    @cached_property
    def _block(self) -> DenseBlock | None:
        """Of the largest member that has one, where all predictors are one variable."""
        full = self._whole_patterns[0].nnz >= _FULL * self._shape[0] * self._shape[1]
        if len(self._places) != 1 or not full:
            return None
        affinity = self.structure.membership.affinity
        for member in sorted(self.x.variables, key=lambda v: -affinity.size(v)):
            found = find_dense_block(self._places[0], member, affinity)
            if found is not None:
                (graph,) = rebuild([found.graph.astype("float64")], self.theta.replacements)
                # What does not depend on theta is better kept than computed.
                if self.theta.vector in set(ancestors([graph])):
                    return DenseBlock(member, graph, found.lower)
        return None

    @cached_property
    def _whole_patterns(self) -> tuple[csr_array, csr_array]:
        """Of all entries, and of those that may change with theta."""
        affinity = self.structure.membership.affinity
        found = propagate(affinity, self.x.seeds, affinity.is_affine, with_slopes=True)
        return self._stacked(found.of), self._stacked(found.varying)

    def _stacked(self, patterns) -> csr_array:
        """The patterns of all predictors."""
        affinity, n = self.structure.membership.affinity, self.x.size
        nothing = [csr_array((affinity.size(p), n), dtype=bool) for p in self._places]
        own = [patterns.get(p, none) for p, none in zip(self._places, nothing, strict=True)]
        return csr_array(vstack([*own, csr_array((0, n), dtype=bool)], format="csr"))

    def _outside_of_block(self, pattern: csr_array) -> csr_array:
        if self._block is None:
            return pattern
        rows, columns = pattern.tocoo().coords
        block = self.x.slices[self._block.member]
        kept = (columns < block.start) | (columns >= block.stop)
        ones = np.ones(np.count_nonzero(kept), dtype=bool)
        return csr_array((ones, (rows[kept], columns[kept])), shape=pattern.shape)

    @cached_property
    def _entries(self) -> VaryingMatrix:
        """All entries outside of the block."""
        pattern, varying = (self._outside_of_block(p) for p in self._whole_patterns)
        colours, count = colour_columns(pattern)
        entries = pattern.tocoo()
        seeds = np.zeros((count, self.x.size))
        rows, columns = entries.coords
        # Columns of the block have a colour too, and must not enter.
        seeds[colours[columns], columns] = 1.0
        varies = stored(varying, rows, columns)
        return frozen_entries(
            self.eta,
            self.x.vector,
            Entries(rows, columns, colours[columns], rows, seeds, varies),
            self.structure,
            self.theta,
        )

    @cached_property
    def _form(self):
        rows, columns = self._entries.rows, self._entries.columns
        if self._block is None and rows.size < _FULL * self._shape[0] * self._shape[1]:
            return SparseValues(csr_array, rows, columns, self._shape)

        def dense(values: np.ndarray) -> np.ndarray:
            matrix = np.zeros(self._shape)
            matrix[rows, columns] = values
            return matrix

        return dense


def frozen_entries(
    graph: TensorVariable,
    x: TensorVariable,
    entries: Entries,
    structure: Structure,
    theta: Layout,
) -> VaryingMatrix:
    """The entries of a matrix, those that do not vary with theta computed once.

    Parameters
    ----------
    graph : TensorVariable, shape (m,)
        Affine in x, of theta.
    x : TensorVariable, shape (n,)
    entries : Entries
    structure : Structure
    theta : Layout
    """
    products = Compiler(interpreted=True)([theta.vector], products_graph(graph, x, entries.seeds))
    return freeze(entries, np.asarray(products(theta.stack(structure.space.trials[0]))))
