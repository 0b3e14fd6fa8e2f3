"""A + s I computed without the n×n identity, as PyMC writes the jitter of a covariance."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.basic import Eye
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import constant_value, core_op, scalar_op_name


def without_identity(matrix: TensorVariable) -> TensorVariable:
    """The same graph with s added to the diagonal of A where it ends in A + s I.

    An identity of that size is an array more in memory and another pass over it.
    """
    if scalar_op_name(matrix) == "Add" and len(matrix.owner.inputs) == 2:
        first, second = matrix.owner.inputs
        for A, term in ((first, second), (second, first)):
            scale = _scale_of_identity(term)
            if scale is not None and A.type.broadcastable == (False, False):
                diagonal = pt.arange(A.shape[0])
                return pt.inc_subtensor(A[diagonal, diagonal], scale)
    return matrix


def _scale_of_identity(term: TensorVariable) -> TensorVariable | float | None:
    """The scale s where `term` is s I, else None."""
    if isinstance(core_op(term), Eye):
        return 1.0 if constant_value(term.owner.inputs[2]) == 0 else None
    if scalar_op_name(term) == "Mul" and len(term.owner.inputs) == 2:
        first, second = term.owner.inputs
        for scale, identity in ((first, second), (second, first)):
            if scale.type.broadcastable == (True, True) and _scale_of_identity(identity) == 1.0:
                return scale[0, 0]
    return None
