"""Small questions about PyTensor graphs, the same on PyTensor 2.38 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from pytensor.compile.mode import Mode
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable, equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.tensor import subtensor
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape

# PyTensor 2.38 has a class of its own for one index vector, PyTensor 3 does not.
INDEXING = tuple(
    getattr(subtensor, name)
    for name in ("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1")
    if hasattr(subtensor, name)
)
"""The Ops of `x[...]`."""

INTERPRETED = Mode(linker="py", optimizer=None)
"""For graphs that are evaluated once: nothing to compile."""


def core_op(variable: Variable):
    """The Op that made `variable`, taken out of its Blockwise; None for an input."""
    if variable.owner is None:
        return None
    op = variable.owner.op
    return getattr(op, "core_op", op)


def distribution_name(rv: Variable) -> str:
    """The name under which PyMC prints the distribution of a random variable."""
    op = rv.owner.op
    printed = getattr(op, "_print_name", None)
    return printed[0] if printed else type(op).__name__.removesuffix("RV")


def distribution_parameters(rv: Variable) -> list[Variable]:
    """The parameters of a random variable's distribution; of a composed one, its inputs."""
    op = rv.owner.op
    return op.dist_params(rv.owner) if isinstance(op, RandomVariable) else rv.owner.inputs


def scalar_op_name(variable: Variable) -> str:
    """Class name of the scalar Op of an elementwise node ("Add"), else ""."""
    op = core_op(variable)
    return type(op.scalar_op).__name__ if isinstance(op, Elemwise) else ""


def skip_views_and_axes(variable: Variable) -> Variable:
    """`variable` without the views of `pm.Deterministic` and without changes of its axes."""
    while isinstance(core_op(variable), ViewOp | DimShuffle):
        variable = variable.owner.inputs[0]
    return variable


def below_layout(variable: Variable) -> tuple[Variable, list[Apply]]:
    """`variable` before views, axes, shapes and indices were changed, and those nodes.

    An elementwise function commutes with all of them; see `same_layout`.
    """
    nodes = []
    while isinstance(core_op(variable), (ViewOp, DimShuffle, Reshape, *INDEXING)):
        nodes.append(variable.owner)
        variable = variable.owner.inputs[0]
    return variable, nodes


def same_layout(variable: Variable, nodes: list[Apply]) -> Variable:
    """`variable` with the changes of layout that `below_layout` took away from another."""
    for node in reversed(nodes):
        if not isinstance(node.op, ViewOp):
            variable = node.op.make_node(variable, *node.inputs[1:]).outputs[0]
    return variable


def same_computation(first: Variable, second: Variable) -> bool:
    """Whether two graphs compute the same from the same inputs, axes and views aside."""
    return equal_computations([skip_views_and_axes(first)], [skip_views_and_axes(second)])


def constant_value(variable: Variable) -> np.ndarray | None:
    """The value of a graph that is made of constants only, else None."""
    if any(v.owner is None and not isinstance(v, Constant) for v in ancestors([variable])):
        return None
    return np.asarray(variable.eval(mode=INTERPRETED))


def depends_on(variable: Variable, source: Variable) -> bool:
    """Whether `source` is among the ancestors of `variable` (itself included)."""
    return any(node is source for node in ancestors([variable]))


def client_map(outputs: Iterable[Variable]) -> dict[Variable, list[Apply]]:
    """For every variable above `outputs`, the nodes that consume it."""
    clients: dict[Variable, list[Apply]] = {}
    nodes = {v.owner for v in ancestors(list(outputs)) if v.owner is not None}
    for node in nodes:
        for source in set(node.inputs):
            clients.setdefault(source, []).append(node)
    return clients


def inputs_with_nan(variable: Variable) -> Iterator[str]:
    """Names (or shapes) of the data above `variable` that contain NaN or infinity."""
    for source in ancestors([variable]):
        if isinstance(source, Constant):
            value = source.data
        elif isinstance(source, SharedVariable):
            value = source.get_value(borrow=True)
        else:
            continue
        if isinstance(value, np.ma.MaskedArray):  # how pm.set_data stores NaN
            value = value.filled(np.nan)
        # A scalar infinity is an ordinary bound in a PyMC graph, not somebody's data.
        if isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind == "f":
            bad = int(np.sum(~np.isfinite(value)))
            if bad:
                name = source.name or "an unnamed array"
                yield f"{name} of shape {value.shape} ({bad} values)"
