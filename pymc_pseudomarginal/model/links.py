"""Recognising link functions in the graphs of probabilities and rates.

Every function takes the parameter of a distribution and returns the linear predictor
eta inside it, in the layout of that parameter, or None.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import (
    INDEXING,
    below_layout,
    constant_value,
    core_op,
    same_layout,
    scalar_op_name,
)

# pm.math.invprobit takes the square root of two in single precision.
_SINGLE_PRECISION = 1e-6


def probit_argument(p: TensorVariable) -> TensorVariable | None:
    """Eta if p = Phi(eta), as `pm.math.invprobit` writes it: erfc(-eta / sqrt 2) / 2."""
    p, layout = below_layout(p)
    if scalar_op_name(p) != "Mul" or len(p.owner.inputs) != 2:
        return None
    half, erfc = sorted(p.owner.inputs, key=lambda v: constant_value(v) is None)
    if constant_value(half) != 0.5 or scalar_op_name(erfc) != "Erfc":
        return None
    inner, eta = erfc.owner.inputs[0], None
    if scalar_op_name(inner) == "TrueDiv" and scalar_op_name(inner.owner.inputs[0]) == "Neg":
        divisor = constant_value(inner.owner.inputs[1])
        if divisor is not None and np.allclose(divisor, np.sqrt(2.0), rtol=_SINGLE_PRECISION):
            eta = inner.owner.inputs[0].owner.inputs[0]
    return same_layout(-np.sqrt(2.0) * inner if eta is None else eta, layout)


def logit_argument(p: TensorVariable) -> TensorVariable | None:
    """Eta if p = 1 / (1 + exp(-eta)), as `logit_p=` and `pm.math.invlogit` write it."""
    p, layout = below_layout(p)
    if scalar_op_name(p) != "Sigmoid":
        return None
    return same_layout(p.owner.inputs[0], layout)


def log_argument(rate: TensorVariable) -> TensorVariable:
    """log(rate), taken apart where rate is a product of exponentials."""
    base, layout = below_layout(rate)
    operation = scalar_op_name(base)
    if operation == "Exp":
        result = base.owner.inputs[0]
    elif operation == "Mul":
        result = sum(log_argument(factor) for factor in base.owner.inputs)
    elif operation == "TrueDiv":
        numerator, denominator = base.owner.inputs
        result = log_argument(numerator) - log_argument(denominator)
    else:
        result = pt.log(base)
    return same_layout(result, layout)


class OrderedArguments(NamedTuple):
    """What an ordered distribution is made of.

    Attributes
    ----------
    eta : TensorVariable, shape (...)
    cutpoints : TensorVariable
        Its last axis holds the K - 1 cut-points; broadcasts against (..., K - 1).
    sigma : TensorVariable or None
        Scale of the probit; None for the logistic.
    """

    eta: TensorVariable
    cutpoints: TensorVariable
    sigma: TensorVariable | None


def ordered_arguments(p: TensorVariable) -> OrderedArguments | None:
    """The arguments of pm.OrderedLogistic or pm.OrderedProbit that made p, or None.

    The candidates are read off the graph and put into PyMC's own function: they are
    right if it gives back the same graph, on whatever version of PyMC.
    """
    p, layout = below_layout(p)
    if not all(isinstance(node.op, ViewOp) or _selects_rows(node) for node in layout):
        return None
    probit = scalar_op_name(p) == "Exp"
    above = list(ancestors([p]))
    sigmas = [_without_axes(v.owner.inputs[1]) for v in above if scalar_op_name(v) == "TrueDiv"]
    for node in above:
        if scalar_op_name(node) != "Sub" or node.ndim != p.ndim:
            continue
        left, right = node.owner.inputs
        eta, cutpoints = (left, right) if probit else (right, left)
        if not isinstance(core_op(eta), DimShuffle):
            continue
        eta = eta.owner.inputs[0]
        for cuts in (_without_axes(cutpoints), cutpoints):
            for sigma in sigmas if probit else [None]:
                if _makes(p, eta, cuts, sigma):
                    return OrderedArguments(
                        _rows(eta, eta.ndim, layout),
                        _rows(cuts, eta.ndim + 1, layout),
                        _rows(sigma, eta.ndim, layout),
                    )
    return None


def _makes(p, eta, cutpoints, sigma):
    try:
        if sigma is None:
            again = pm.OrderedLogistic.compute_p(eta, cutpoints)
        else:
            again = pm.OrderedProbit.compute_p(eta, cutpoints, sigma)
    except (ValueError, TypeError, IndexError):  # candidates whose shapes do not fit
        return False
    return equal_computations([p], [again])


def _selects_rows(node) -> bool:
    """Whether a node is x[index] with one index, as for the data that are not masked."""
    return isinstance(node.op, INDEXING) and len(node.inputs) == 2 and node.inputs[1].ndim == 1


def _rows(variable: Variable | None, ndim: int, layout) -> Variable | None:
    """The rows that `layout` selects; what has fewer axes than that is the same for all."""
    return variable if variable is None or variable.ndim < ndim else same_layout(variable, layout)


def _without_axes(variable: Variable) -> Variable:
    # Unlike `skip_views_and_axes` it keeps views: PyMC's function must find the same graph.
    while isinstance(core_op(variable), DimShuffle):
        variable = variable.owner.inputs[0]
    return variable
