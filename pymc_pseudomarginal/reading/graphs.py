"""Surgery on PyTensor graphs, the same on PyTensor 2.38 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add, mul, sub

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.abstract import MeasurableOp
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import below_layout, same_layout, scalar_op_name

CHECKS = frozenset({"CheckAndRaise", "Assert", "CheckParameterValue"})
"""Ops that hand on their first input, or raise."""

SHAPES = frozenset({"Shape", "Shape_i"})
"""Ops whose result depends on the shape of their input alone."""

SOFTMAX = frozenset({"Softmax", "LogSoftmax", "LogSumExp"})
"""Ops that couple all elements along some axes."""

_KEPT = SOFTMAX | {"AllocDiag", "XLogY", "XLog1PY"}
"""Ops made of a graph that have rules of their own here, or a gradient that is better."""

DISCRETE = ("bool", "int", "uint")
"""How the dtypes of comparisons, indices and counts begin."""

_LONGEST_PRODUCT = 20

_STEPS = ("Floor", "Ceil", "RoundHalfToEven", "RoundHalfAwayFromZero", "Sign", "Sgn", "Trunc")
_JUMPS = frozenset(f"Elemwise:{name}" for name in (*_STEPS, "IntDiv", "Mod"))
_KINKS = frozenset(
    {"Max", "Min", "SortOp", "Elemwise:Abs", "Elemwise:Clip", "Elemwise:Maximum"}
    | {"Elemwise:Minimum", "Elemwise:ScalarMaximum", "Elemwise:ScalarMinimum"}
)


def op_name(node: Apply) -> str:
    """Class name of a node's Op; "Elemwise:Add" for elementwise ones."""
    if isinstance(node.op, Elemwise):
        return f"Elemwise:{type(node.op.scalar_op).__name__}"
    return type(node.op).__name__


def core_name(node: Apply) -> str:
    """Class name of a node's Op, that of its core where it is applied batch by batch."""
    return type(getattr(node.op, "core_op", node.op)).__name__


def is_random(variable: Variable) -> bool:
    """Whether a variable is drawn: a distribution of PyTensor or PyMC, composed ones included."""
    return variable.owner is not None and isinstance(variable.owner.op, MeasurableOp)


def is_discrete(variable: Variable) -> bool:
    """Whether a variable holds comparisons, indices or counts."""
    return str(getattr(variable.type, "dtype", "")).startswith(DISCRETE)


def jumps(node: Apply) -> bool:
    """Whether a node's result moves in steps, by its Op or because it is a comparison."""
    return op_name(node) in _JUMPS or any(is_discrete(output) for output in node.outputs)


def bends(node: Apply) -> bool:
    """Whether a node may look affine between two points and not be so further on."""
    return op_name(node) in _KINKS or jumps(node)


def nodes_above(outputs: Iterable[Variable]) -> list[Apply]:
    """All nodes above some variables, in an order in which they can be evaluated."""
    return list(io_toposort([], [v for v in outputs if v.owner is not None]))


def rebuild(
    graphs: Sequence[TensorVariable], replacements: Mapping[Variable, Variable]
) -> list[TensorVariable]:
    """The graphs with some variables replaced.

    Unlike `graph_replace` it takes variables that lie above each other: the lowest one that
    is met from below counts. Static shapes are inferred anew.
    """
    new = dict(replacements)
    order: list[Apply] = []
    seen: set[Apply] = set()
    stack = [(g.owner, False) for g in graphs if g.owner is not None and g not in new]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(i.owner, False) for i in node.inputs if i.owner is not None and i not in new]
    for node in order:
        inputs = [new.get(i, i) for i in node.inputs]
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            clone = node.clone_with_new_inputs(inputs, strict=False)
            for old, output in zip(node.outputs, clone.outputs, strict=True):
                new.setdefault(old, output)
    return [new.get(g, g) for g in graphs]


def in_place_of(variable: TensorVariable, graph: TensorVariable) -> TensorVariable:
    """`graph` with the dtype and the static shape of the variable that it shall replace."""
    return variable.type.filter_variable(graph.astype(variable.dtype), allow_convert=True)


def simplified(graphs: Sequence[TensorVariable]) -> list[TensorVariable]:
    """Copies of the graphs in a plainer form.

    Checks of parameters go: they raise where a graph is tried out at odd points. Ops that are
    made of a graph are written out, so that nothing bends unseen in them. The logarithm of an
    exponential is its argument. Equal parts are merged: ``b + u[i]`` written twice is one
    predictor. Inputs, constants and shared variables stay what they are.
    """
    inner = [g for g in graphs if g.owner is not None]
    if not inner:
        return list(graphs)
    graph = FunctionGraph(outputs=inner, clone=True, copy_inputs=False, copy_orphans=False)
    while sum(_simplify(graph, node) for node in list(graph.toposort())):
        pass  # what was written out may hold more of the kind
    MergeOptimizer().rewrite(graph)
    copies = iter(list(graph.outputs))
    return [g if g.owner is None else next(copies) for g in graphs]


def _simplify(graph: FunctionGraph, node: Apply) -> bool:
    """Put something plainer in the place of a node; whether there was anything."""
    outputs = _plainer(node)
    for old, new in zip(node.outputs, outputs, strict=False):
        if new.type != old.type:
            new = old.type.filter_variable(new, allow_convert=True)
        graph.replace(old, new, import_missing=True)
    return bool(outputs)


def _plainer(node: Apply) -> list[TensorVariable]:
    """The outputs of a node in a plainer form; empty if it is plain."""
    op, name = node.op, op_name(node)
    if name in CHECKS:
        return [node.inputs[0]]
    if isinstance(op, OpFromGraph) and not isinstance(op, MeasurableOp) and name not in _KEPT:
        return _written_out(node)
    if name == "Prod":
        return _as_product(node)
    if name == "Shape" and is_random(node.inputs[0]):
        return _shape_of_draw(node.inputs[0])
    if name == "Elemwise:Log" and _contains_exponential(node.inputs[0]):
        return [_logarithm(node.inputs[0])]
    return []


def _written_out(node: Apply) -> list[TensorVariable]:
    inner = node.op.fgraph
    replacements = dict(zip(inner.inputs, node.inputs, strict=True))
    if hasattr(inner, "bind"):  # PyTensor 3 freezes the nodes inside
        return inner.bind(replacements)
    return rebuild(inner.outputs, replacements)


def _as_product(node: Apply) -> list[TensorVariable]:
    """A short product along axes, factor by factor: PyTensor's has no second derivative."""
    (x,) = node.inputs
    axes = range(x.ndim) if node.op.axis is None else node.op.axis
    lengths = [x.type.shape[axis] for axis in axes]
    if None in lengths or not 0 < np.prod(lengths) <= _LONGEST_PRODUCT:
        return []
    first = x.dimshuffle(*axes, *[axis for axis in range(x.ndim) if axis not in axes])
    factors = [first[index] for index in np.ndindex(*lengths)]
    return [reduce(mul, factors).astype(node.outputs[0].dtype)]


def _shape_of_draw(drawn: Variable) -> list[TensorVariable]:
    """The shape of a random variable from its parameters, where PyTensor knows it."""
    node = drawn.owner
    if not isinstance(node.op, RandomVariable):
        return []
    _, size, *parameters = node.inputs
    inferred = node.op._infer_shape(size, parameters)
    return [pt.stack([pt.as_tensor(length) for length in inferred]).astype("int64")]


def _logarithm(rate: Variable) -> TensorVariable:
    """The logarithm of a product of exponentials, taken apart."""
    base, layout = below_layout(rate)
    name = scalar_op_name(base)
    if name == "Exp":
        result = base.owner.inputs[0]
    elif name == "Mul":
        result = reduce(add, map(_logarithm, base.owner.inputs))
    elif name == "TrueDiv":
        result = reduce(sub, map(_logarithm, base.owner.inputs))
    else:  # PyTensor holds a constant such as 2.0 in single precision
        result = pt.log(base.astype("float64"))
    return same_layout(result, layout)


def _contains_exponential(rate: Variable) -> bool:
    """Whether a variable is an exponential, or a product with one."""
    base, _ = below_layout(rate)
    if scalar_op_name(base) in {"Mul", "TrueDiv"}:
        return any(map(_contains_exponential, base.owner.inputs))
    return scalar_op_name(base) == "Exp"


def summands(log_density: TensorVariable) -> list[TensorVariable]:
    """Arrays of terms whose sum is a log density.

    Sums are taken apart, and what multiplies a sum multiplies its terms.
    """
    if all(length == 1 for length in log_density.type.shape):
        return _summands_of_number(log_density)
    node = log_density.owner
    # A sum over all axes of a sum along some is one sum.
    if node is not None and op_name(node) == "Sum":
        return summands(node.inputs[0])
    return [log_density]


def _summands_of_number(number: TensorVariable) -> list[TensorVariable]:
    node = number.owner
    if node is None:
        return [number]
    name, inputs = op_name(node), node.inputs
    if name in {"ViewOp", "DimShuffle", "Elemwise:Identity", "Sum"}:
        return summands(inputs[0])
    if name == "Elemwise:Add":
        return [term for part in inputs for term in summands(part)]
    if name == "Elemwise:Sub":
        return summands(inputs[0]) + [-term for term in summands(inputs[1])]
    if name == "Elemwise:Neg":
        return [-term for term in summands(inputs[0])]
    if core_name(node) in {"Dot", "Matmul"}:  # of two vectors
        return [inputs[0].ravel() * inputs[1].ravel()]
    if name in {"Elemwise:Mul", "Elemwise:TrueDiv"}:
        return _multiplied(node)
    return [number]


def _multiplied(node: Apply) -> list[TensorVariable]:
    """The terms of the factor with most of them, each multiplied by the other factors."""
    inputs = list(node.inputs)
    choices = range(1 if op_name(node) == "Elemwise:TrueDiv" else len(inputs))
    apart = {k: summands(inputs[k]) for k in choices}
    k = max(choices, key=lambda k: (max(term.ndim for term in apart[k]), len(apart[k])))
    return [node.op(*inputs[:k], term, *inputs[k + 1 :]) for term in apart[k]]


def as_array(value) -> np.ndarray:
    """A value of an interpreted graph as a dense array; sparse matrices are written out."""
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)
