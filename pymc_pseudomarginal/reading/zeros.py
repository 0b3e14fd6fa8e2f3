"""Elements that are zero whatever theta is: the rest of a triangle, what is off a diagonal.

That they are zero at a few thetas proves nothing: ``exp(-d**2 / scale)`` is where scale is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from pytensor.graph.basic import Apply, Variable

from pymc_pseudomarginal.reading.affinity import Affinity
from pymc_pseudomarginal.reading.graphs import as_array, core_name, op_name
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.moving import content_inputs, moved, only_moves

_MULTIPLES = frozenset({"Neg", "Identity", "Cast", "Sqr", "Sqrt", "Abs"})


def may_be_nonzero(variable: Variable, affinity: Affinity) -> np.ndarray:
    """Which elements of a variable can be other than zero at some theta; its shape."""
    value = as_array(Interpreter.value(variable, affinity.values))
    if affinity.is_fixed(variable):
        return value != 0
    if variable.owner is not None:
        mask = _of_result(variable.owner, variable.owner.outputs.index(variable), affinity)
        if mask is not None:
            return np.array(np.broadcast_to(mask, value.shape))
    return np.ones(value.shape, dtype=bool)


def _of_result(node: Apply, o: int, affinity: Affinity) -> np.ndarray | None:
    """The mask of one output of a node, None where nothing is known."""
    name = op_name(node)
    if name.startswith("Elemwise:"):
        return _elementwise(name.removeprefix("Elemwise:"), node, affinity)
    if only_moves(node):
        contents = content_inputs(node)
        if not all(affinity.is_fixed(i) for k, i in enumerate(node.inputs) if k not in contents):
            return None
        arguments = [Interpreter.value_or_none(i, affinity.values) for i in node.inputs]
        masks = [
            may_be_nonzero(i, affinity) if k in contents else None
            for k, i in enumerate(node.inputs)
        ]
        return moved(node, masks, arguments)[o] != 0.0
    if core_name(node) == "Cholesky":
        shape = np.shape(Interpreter.value(node.outputs[0], affinity.values))
        triangle = np.tril(np.ones(shape[-2:], dtype=bool))
        return triangle if getattr(node.op, "core_op", node.op).lower else triangle.T
    return None


def _elementwise(name: str, node: Apply, affinity: Affinity) -> np.ndarray | None:
    if name == "Switch" and affinity.is_fixed(node.inputs[0]):
        condition = Interpreter.value(node.inputs[0], affinity.values)
        return np.where(condition, *_masks(node.inputs[1:], affinity))
    if name in {"Add", "Sub", "Mul"}:
        join = np.logical_and if name == "Mul" else np.logical_or
        return reduce(join, _masks(node.inputs, affinity))
    if name in _MULTIPLES or name == "TrueDiv":  # a zero divided stays zero
        return may_be_nonzero(node.inputs[0], affinity)
    return None


def _masks(variables: Sequence[Variable], affinity: Affinity) -> list[np.ndarray]:
    return [may_be_nonzero(v, affinity) for v in variables]
