"""Small questions about PyTensor graphs, the same on PyTensor 2.38 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from pytensor.compile.mode import Mode
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle, Elemwise

INTERPRETED = Mode(linker="py", optimizer=None)
"""For graphs that are evaluated once: nothing to compile."""


def core_op(variable: Variable):
    """The Op that made `variable`, taken out of its Blockwise; None for an input."""
    if variable.owner is None:
        return None
    op = variable.owner.op
    return getattr(op, "core_op", op)


def scalar_op_name(variable: Variable) -> str:
    """Class name of the scalar Op of an elementwise node ("Add"), else ""."""
    op = core_op(variable)
    return type(op.scalar_op).__name__ if isinstance(op, Elemwise) else ""


def skip_views(variable: Variable) -> Variable:
    """`variable` without the no-op nodes that `pm.Deterministic` puts around it."""
    while isinstance(core_op(variable), ViewOp):
        variable = variable.owner.inputs[0]
    return variable


def skip_views_and_axes(variable: Variable) -> Variable:
    """`variable` without views and inserted, dropped or permuted axes."""
    while isinstance(core_op(variable), ViewOp | DimShuffle):
        variable = variable.owner.inputs[0]
    return variable


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
