"""Dense matrices that stand in the graph of a predictor: ``mu + dot(L, z)`` has L.

Where one variable meets all predictors through a matrix that depends on theta, as the whitened
values of a Gaussian process do, that matrix is taken as it is; products with n unit vectors
would cost more than its factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.reading.affinity import Affinity
from pymc_pseudomarginal.reading.graphs import CHECKS, op_name
from pymc_pseudomarginal.reading.interpreter import Interpreter

_COPIES = frozenset({"ViewOp", "SpecifyShape", "Reshape", "OutputGuard", "DeepCopyOp"}) | CHECKS
_SELECTIONS = frozenset({"AdvancedSubtensor", "AdvancedSubtensor1"})
_PRODUCTS = frozenset({"Dot", "Matmul"})
_SCALINGS = frozenset({"Elemwise:Mul", "Elemwise:TrueDiv", "Elemwise:Neg"})


@dataclass(frozen=True)
class DenseBlock:
    """The matrix by which one member of x enters a predictor.

    Attributes
    ----------
    member : TensorVariable
    graph : TensorVariable, shape (m, size of the member)
    lower : bool
        Whether it is a Cholesky factor, perhaps times a number.
    """

    member: TensorVariable
    graph: TensorVariable
    lower: bool


def find_dense_block(
    predictor: TensorVariable, member: TensorVariable, affinity: Affinity
) -> DenseBlock | None:
    """The matrix M of ``predictor = M member + ...``, if it stands in the graph."""
    return _Search(member, affinity).below(predictor)


class _Search:
    """Walks from a predictor up to one member of x, along a single path."""

    def __init__(self, member: TensorVariable, affinity: Affinity):
        self.member, self.affinity = member, affinity

    def below(self, variable: TensorVariable) -> DenseBlock | None:
        """The matrix by which the member enters a variable."""
        node = variable.owner
        if node is None:
            return None
        name = op_name(node)
        if _core_name(node) in _PRODUCTS:
            return self._product(node)
        if name in _SELECTIONS:
            return self._selected(node)
        dependent = [i for i in node.inputs if self._reaches(i)]
        if len(dependent) != 1 or self.affinity.size(dependent[0]) != self.affinity.size(variable):
            return None
        (inner,) = dependent
        if name == "Elemwise:Add" or (name == "Elemwise:Sub" and inner is node.inputs[0]):
            return self.below(inner)
        if name in _COPIES or self._keeps_order(node):
            return self.below(inner)
        if name in _SCALINGS:
            return self._scaled(node, inner)
        return None

    def _reaches(self, variable) -> bool:
        return self.member in self.affinity.interpreter.sources_of(variable)

    def _keeps_order(self, node: Apply) -> bool:
        """Axes of length one come and go; the others stay in their order."""
        if not isinstance(node.op, DimShuffle):
            return False
        kept = [axis for axis in node.op.new_order if axis != "x"]
        return kept == sorted(kept)

    def _product(self, node: Apply) -> DenseBlock | None:
        matrix, vector = node.inputs
        if self._reaches(matrix) or matrix.ndim != 2 or not self._is_member(vector):
            return None
        columns = np.shape(Interpreter.value(matrix, self.affinity.values))[1]
        if self.affinity.size(vector) != columns:
            return None  # several columns of the member, or an outer product
        return DenseBlock(self.member, matrix, _is_cholesky(matrix))

    def _selected(self, node: Apply) -> DenseBlock | None:
        """Elements of a vector by one vector of indices."""
        inner, *indices = node.inputs
        if inner.ndim != 1 or len(indices) != 1 or indices[0].ndim != 1:
            return None
        found = self.below(inner)
        if found is None or not self.affinity.is_fixed(indices[0]):
            return None
        return DenseBlock(self.member, found.graph[indices[0]], lower=False)

    def _is_member(self, variable) -> bool:
        """Whether a variable is the member itself, or a column of it."""
        while variable is not self.member:
            node = variable.owner
            if node is None or not (op_name(node) in _COPIES or self._keeps_order(node)):
                return False
            variable = node.inputs[0]
        return True

    def _scaled(self, node: Apply, inner) -> DenseBlock | None:
        """Multiplied, divided by numbers, or negated."""
        found = self.below(inner)
        others = [i for i in node.inputs if i is not inner]
        values = [Interpreter.value(i, self.affinity.values) for i in others]
        if found is None or any(np.size(value) != 1 for value in values):
            return None
        numbers = iter([pt.reshape(i, ()) for i in others])
        factors = [found.graph if i is inner else next(numbers) for i in node.inputs]
        return DenseBlock(self.member, node.op(*factors), found.lower)


def _is_cholesky(matrix: TensorVariable) -> bool:
    while matrix.owner is not None and op_name(matrix.owner) in _COPIES:
        matrix = matrix.owner.inputs[0]
    if matrix.owner is None or _core_name(matrix.owner) != "Cholesky":
        return False
    return getattr(matrix.owner.op, "core_op", matrix.owner.op).lower


def _core_name(node: Apply) -> str:
    return type(getattr(node.op, "core_op", node.op)).__name__
