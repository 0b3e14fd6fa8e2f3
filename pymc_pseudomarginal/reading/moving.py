"""Ops whose results are elements of their inputs, in other places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pytensor.graph.basic import Apply

from pymc_pseudomarginal.reading.graphs import op_name
from pymc_pseudomarginal.reading.interpreter import perform

_SUBTENSORS = frozenset({"Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1"})
MOVING_OPS = (
    frozenset({"DimShuffle", "Reshape", "JoinDims", "SplitDims", "Alloc", "SpecifyShape"})
    | frozenset({"ViewOp", "OutputGuard", "DeepCopyOp", "TensorFromScalar", "ScalarFromTensor"})
    | frozenset({"Join", "Split", "MakeVector", "ExtractDiag", "AllocDiag", "MatrixTranspose"})
    | frozenset({"Transpose", "Repeat", "CpuContiguous", "Unbroadcast", "TypeCastingOp"})
    | _SUBTENSORS
)
"""By the names of their classes."""

SETTING_OPS = frozenset({"IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1"})
"""Ops that set some elements of one input to those of another, or add them."""


def only_moves(node: Apply) -> bool:
    """Whether all elements of a node's results are elements of its inputs."""
    name = op_name(node)
    return name in MOVING_OPS or (name in SETTING_OPS and node.op.set_instead_of_inc)


def content_inputs(node: Apply) -> set[int]:
    """The inputs of a node that only moves or adds whose elements are moved.

    The others are indices, shapes, axes and counts.
    """
    name = op_name(node)
    if name in SETTING_OPS:
        return {0, 1}
    if name == "Join":
        return {k for k, i in enumerate(node.inputs) if i.ndim}
    return set(range(len(node.inputs))) if name == "MakeVector" else {0}


def moved(node: Apply, contents: Sequence, arguments: Sequence) -> list[np.ndarray]:
    """Run a node on other contents of its inputs.

    Parameters
    ----------
    node : Apply
        One that only moves, or adds.
    contents : sequence of array
        What stands in the places of the inputs' elements, or one number for all of them.
        Indices and shapes stay what they are.
    arguments : sequence
        The values of the inputs, of which the shapes and the indices are taken.
    """
    inputs = list(arguments)
    for k in content_inputs(node):
        inputs[k] = np.array(np.broadcast_to(contents[k], np.shape(arguments[k])), dtype=float)
    return [np.asarray(result) for result in perform(node, inputs)]
