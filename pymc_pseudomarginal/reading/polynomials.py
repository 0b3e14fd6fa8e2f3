"""Which variables of a graph can be polynomials of some others, and of what degree: by structure.

Numbers alone are fooled where nobody looked: ``softplus(100 + x)`` is 100 + x to all digits near
x = 0, and a barrier far away is no barrier here. Degrees are upper bounds, infinite below any
function that is not a polynomial. Ops without a rule count as linear; numbers judge them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.elemwise import CAReduce, Elemwise

from pymc_pseudomarginal.reading.graphs import SHAPES, SOFTMAX, bends, core_name, op_name
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.moving import content_inputs, moved, only_moves

_SUMS = frozenset({"Add", "Sub", "Neg", "Identity", "Cast", "Conj", "Real"})
_PRODUCTS = frozenset({"Dot", "BatchedDot", "Matmul", "StructuredDot"})
_SOLVES = frozenset({"Solve", "SolveTriangular", "CholeskySolve", "SolveBanded"})
_CURVED = (
    SOFTMAX
    | {"Cholesky", "MatrixInverse", "MatrixPinv", "Expm", "XLogY", "XLog1PY"}
    | {"Det", "SLogDet", "Eigh", "Eig", "SVD", "QR"}
)

Degree = np.ndarray
"""Of every element of a variable, or one number for all of them."""

_ZERO = np.zeros(())
_INFINITE = np.array(np.inf)


def degrees(
    nodes: Iterable[Apply], variables: Iterable[Variable], values: Mapping[Variable, Any]
) -> dict[Variable, Degree]:
    """The degree of everything that depends on some variables.

    Parameters
    ----------
    nodes : iterable of Apply
        In topological order.
    variables : iterable of Variable
        Of degree one.
    values : mapping
        Of all variables that are neither constant nor shared, at one point.

    Returns
    -------
    dict
        Variables that are not in it do not depend on these.
    """
    found: dict[Variable, Degree] = dict.fromkeys(variables, np.ones(()))
    for node in nodes:
        if op_name(node) in SHAPES or not any(i in found for i in node.inputs):
            continue
        inner = [found.get(i, _ZERO) for i in node.inputs]
        for output, degree in zip(node.outputs, _degrees(node, inner, values), strict=True):
            if degree.any():
                found[output] = degree
    return found


def _degrees(node: Apply, inner: Sequence[Degree], values) -> list[Degree]:
    """The degrees of the outputs of a node."""
    arguments = [Interpreter.value_or_none(i, values) for i in node.inputs]
    if bends(node):
        degree = _INFINITE
    elif isinstance(node.op, Elemwise):
        degree = _elementwise(op_name(node).removeprefix("Elemwise:"), inner, arguments)
    elif only_moves(node):
        return _moved(node, inner, arguments)
    else:
        degree = _of_whole_arrays(node, [float(d.max(initial=0.0)) for d in inner])
    return [degree for _ in node.outputs]


def _elementwise(name: str, inner: Sequence[Degree], arguments: list) -> Degree:
    if name in _SUMS:
        return _largest(inner)
    if name == "Switch":
        return _INFINITE if inner[0].any() else _largest(inner[1:])
    if name == "Second":  # the shape of one, the values of the other
        return inner[1]
    if name == "Mul":
        return sum(inner, _ZERO)
    if name == "TrueDiv":
        return np.where(inner[1] > 0.0, np.inf, inner[0])
    if name == "Sqr":
        return 2.0 * inner[0]
    if name == "Pow" and not inner[1].any():
        exponents = np.unique(np.asarray(arguments[1], dtype=float))
        if exponents.size == 1 and exponents[0] in (1.0, 2.0):
            return exponents[0] * inner[0]
    return np.where(_largest(inner) > 0.0, np.inf, 0.0)


def _largest(inner: Sequence[Degree]) -> Degree:
    largest = inner[0]
    for other in inner[1:]:
        largest = np.maximum(largest, other)
    return largest


def _moved(node: Apply, inner: Sequence[Degree], arguments: list) -> list[Degree]:
    """Degrees go where the elements go."""
    contents = content_inputs(node)
    if any(degree.any() for k, degree in enumerate(inner) if k not in contents):
        return [_INFINITE for _ in node.outputs]
    if len(contents) == 1 and not inner[0].ndim:
        return [inner[0] for _ in node.outputs]
    return moved(node, inner, arguments)


def _of_whole_arrays(node: Apply, inner: Sequence[float]) -> Degree:
    core, name = core_name(node), op_name(node)
    if core in _PRODUCTS or name in _PRODUCTS:
        return np.asarray(sum(inner))
    if core in _SOLVES and inner[0]:
        return _INFINITE
    if core in _CURVED or name in _CURVED:
        return _INFINITE
    if isinstance(node.op, CAReduce) and name != "Sum":
        return _INFINITE
    if name == "CumOp" and node.op.mode != "add":
        return _INFINITE
    return np.asarray(max(inner))
