"""Rules for single Ops: on which elements of an input does each element of an output depend?"""

from __future__ import annotations

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, Elemwise
from scipy.sparse import csr_array, issparse

from pymc_pseudomarginal.reading.affinity import Affinity
from pymc_pseudomarginal.reading.graphs import CHECKS, SHAPES, SOFTMAX, core_name, op_name
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.moving import MOVING_OPS, SETTING_OPS, content_inputs, moved
from pymc_pseudomarginal.reading.zeros import may_be_nonzero

_PRODUCTS = frozenset({"Dot", "BatchedDot", "Matmul"})
_ELEMENTWISE = frozenset({"XLogY", "XLog1PY"})
_ADDING = frozenset({"Elemwise:Add", "Elemwise:Sub", "Elemwise:Second"})
_MAX_ENTRIES = 3e7


class DenseDependence(Exception):
    """Too many elements depend on too many others."""


def dependence_on_input(
    node: Apply, k: int, o: int, affinity: Affinity
) -> np.ndarray | csr_array | None:
    """How output o of a node depends on input k.

    Returns
    -------
    array of int, shape (size of the output,)
        The element of the input that each element comes from, -1 where from another input; or
    csr_array of bool, shape (size of the output, size of the input)
        The elements on which each depends; or
    None
        There is no dependence on the values of this input.
    """
    op, name = node.op, type(node.op).__name__
    if name in SHAPES or (name in CHECKS and k > 0):
        return None
    arguments = [Interpreter.value_or_none(i, affinity.values) for i in node.inputs]
    x, y = arguments[k], affinity.values[node.outputs[o]]
    if isinstance(op, Elemwise) or name in _ELEMENTWISE:
        return _elementwise(node, k, arguments, y, affinity)
    if name in CHECKS:
        return np.arange(np.size(x))
    if name in MOVING_OPS | SETTING_OPS and not _index_is_data(node, affinity):
        return _everything(y, x, name)
    if name in MOVING_OPS:
        return _moved(node, k, o, arguments)
    if name in SETTING_OPS:
        return _set_or_added(node, k, arguments)
    if isinstance(op, CAReduce):
        return _reduced(x, y, op.axis)
    if name == "CumOp":
        return _cumulated(x, op.axis)
    if core_name(node) in _PRODUCTS:
        return _product(node, k, arguments, y, affinity)
    if name in SOFTMAX:
        return _along_axes(x, y, op.axis)
    if isinstance(op, Blockwise):
        return _blockwise(op, k, o, x, y)
    if "sparse" in type(op).__module__:
        return _sparse_product(node, k, arguments, y, affinity)
    return _everything(y, x, name)


def adds(node: Apply) -> bool:
    """Whether a node adds, picks or moves elements: linear in all its inputs together."""
    return op_name(node) in _ADDING | MOVING_OPS | SETTING_OPS | {"Elemwise:Switch"}


def slope_moves(node: Apply, k: int, affinity: Affinity) -> bool:
    """Whether the derivative of a node in input k may change with theta.

    Meant for inputs in which the node is linear, or a square of: what multiplies them counts,
    what is added does not.
    """
    name = op_name(node)
    if name in _ADDING:
        return False
    if name == "Elemwise:Switch":
        return affinity.moves(node.inputs[0])
    adds = content_inputs(node) if name in MOVING_OPS | SETTING_OPS else {k}
    return any(affinity.moves(i) for j, i in enumerate(node.inputs) if j not in adds)


def _elementwise(node: Apply, k: int, arguments: list, y, affinity: Affinity) -> np.ndarray:
    """Every element comes from its own; not where data hide it."""
    x, name = arguments[k], op_name(node)
    places = np.broadcast_to(np.arange(np.size(x)).reshape(np.shape(x)), np.shape(y))
    if name == "Elemwise:Switch" and k > 0 and affinity.is_fixed(node.inputs[0]):
        places = np.where(np.asarray(arguments[0], dtype=bool) == (k == 1), places, -1)
    if name == "Elemwise:Mul":
        for j, other in enumerate(node.inputs):
            if j != k and affinity.is_fixed(other):
                places = np.where(np.asarray(arguments[j]) != 0, places, -1)
    return places.ravel()


def _everything(y, x, name: str) -> csr_array:
    rows, columns = max(1, _size(y)), max(1, _size(x))
    if float(rows) * columns > _MAX_ENTRIES:
        raise DenseDependence(f"{name} from {columns} to {rows} elements")
    return csr_array(np.ones((rows, columns), dtype=bool))


def _size(value) -> int:
    return int(np.prod(value.shape)) if issparse(value) else int(np.size(value))


def _index_is_data(node: Apply, affinity: Affinity) -> bool:
    """Whether all indices, shapes and counts of a moving Op depend on nothing sampled."""
    contents = content_inputs(node)
    return all(affinity.is_fixed(i) for k, i in enumerate(node.inputs) if k not in contents)


def _moved(node: Apply, k: int, o: int, arguments: list) -> np.ndarray:
    """Run the Op on numbers that tell where each element came from."""
    contents: list = [0.0] * len(arguments)
    contents[k] = np.arange(1.0, np.size(arguments[k]) + 1.0).reshape(np.shape(arguments[k]))
    return moved(node, contents, arguments)[o].ravel().astype(np.int64) - 1


def _set_or_added(node: Apply, k: int, arguments: list) -> np.ndarray | csr_array:
    """X with some elements set to, or increased by, those of y."""
    x, y = arguments[:2]
    if node.op.set_instead_of_inc:
        return _moved(node, k, 0, arguments)
    if k == 0:
        return np.arange(np.size(x))
    # Where each element of y is added: one at a time keeps repeated indices apart.
    size = np.size(y)
    if float(size) * np.size(x) > _MAX_ENTRIES:
        raise DenseDependence(f"an increment of {size} elements")
    units = np.eye(size).reshape(size, *np.shape(y))
    rest = [0.0] * (len(arguments) - 2)
    columns = [moved(node, [0.0, unit, *rest], arguments)[0].ravel() != 0.0 for unit in units]
    return csr_array(np.stack(columns, axis=1))


def _entries(rows, columns, shape: tuple[int, int]) -> csr_array:
    return csr_array((np.ones(np.size(rows), dtype=bool), (rows, columns)), shape=shape)


def _reduced(x, y, axis) -> csr_array:
    axes = tuple(range(np.ndim(x))) if axis is None else tuple(a % np.ndim(x) for a in axis)
    kept = tuple(1 if a in axes else length for a, length in enumerate(np.shape(x)))
    lines = np.broadcast_to(np.arange(int(np.prod(kept))).reshape(kept), np.shape(x))
    return _entries(lines.ravel(), np.arange(np.size(x)), (max(1, np.size(y)), np.size(x)))


def _along_axes(x, y, axis) -> csr_array:
    """Every element depends on all that share its line along some axes."""
    ndim = np.ndim(x)
    axes = range(ndim) if axis is None else np.atleast_1d(axis) % ndim
    kept = tuple(1 if a in set(axes) else length for a, length in enumerate(np.shape(x)))
    lines = np.arange(int(np.prod(kept))).reshape(kept)
    inside = np.broadcast_to(lines, np.shape(x)).ravel()
    of_result = inside if np.shape(y) == np.shape(x) else lines.ravel()
    members = _entries(inside, np.arange(inside.size), (lines.size, inside.size))
    return csr_array(members[of_result])


def _cumulated(x, axis) -> csr_array:
    shape = (np.size(x),) if axis is None else np.shape(x)
    axis = 0 if axis is None else axis
    length = shape[axis]
    if np.size(x) * (length + 1) / 2 > _MAX_ENTRIES:
        raise DenseDependence(f"a cumulative sum of {length} elements")
    lines = np.moveaxis(np.arange(np.size(x)).reshape(shape), axis, -1).reshape(-1, length)
    later, earlier = np.tril_indices(length)
    size = np.size(x)
    return _entries(lines[:, later].ravel(), lines[:, earlier].ravel(), (size, size))


def _product(node: Apply, k: int, arguments: list, y, affinity: Affinity) -> csr_array:
    """Matrix products, batched or not; what is always zero in the other factor counts."""
    x, factor = np.asarray(arguments[k]), may_be_nonzero(node.inputs[1 - k], affinity)
    places = np.arange(x.size).reshape(x.shape)
    left, right = (places, factor) if k == 0 else (factor, places)
    # As matrices: a row on the left, a column on the right.
    left = left[None, :] if left.ndim == 1 else left
    right = right[:, None] if right.ndim == 1 else right
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = np.broadcast_to(left, (*batch, *left.shape[-2:])).reshape(-1, *left.shape[-2:])
    right = np.broadcast_to(right, (*batch, *right.shape[-2:])).reshape(-1, *right.shape[-2:])
    n_batch, n_rows, _ = left.shape
    n_columns = right.shape[-1]
    outputs = np.arange(n_batch * n_rows * n_columns).reshape(n_batch, n_rows, n_columns)
    mask = right if k == 0 else left
    if float(np.count_nonzero(mask)) * (n_rows if k == 0 else n_columns) > _MAX_ENTRIES:
        raise DenseDependence(f"a product with a {factor.shape} matrix")
    b, i, j = np.nonzero(mask)
    if k == 0:  # y[b, :, j] depends on x[b, :, i] where right[b, i, j]
        rows, columns = outputs[b, :, j], left[b, :, i]
    else:  # y[b, i, :] depends on x[b, j, :] where left[b, i, j]
        rows, columns = outputs[b, i, :], right[b, j, :]
    return _entries(rows.ravel(), columns.ravel(), (max(1, np.size(y)), x.size))


def _blockwise(op: Blockwise, k: int, o: int, x, y) -> csr_array:
    """Batch by batch, everything in the core depends on everything."""
    batch_in = np.shape(x)[: np.ndim(x) - len(op.inputs_sig[k])]
    batch_out = np.shape(y)[: np.ndim(y) - len(op.outputs_sig[o])]
    if len(batch_in) != len(batch_out):
        return _everything(y, x, type(op.core_op).__name__)
    core_in = np.size(x) // max(1, int(np.prod(batch_in)))
    core_out = np.size(y) // max(1, int(np.prod(batch_out)))
    if float(np.size(y)) * core_in > _MAX_ENTRIES:
        raise DenseDependence(f"{type(op.core_op).__name__} of {np.size(y)} x {core_in} elements")
    source = np.broadcast_to(np.arange(int(np.prod(batch_in))).reshape(batch_in), batch_out)
    columns = source.ravel().repeat(core_out)[:, None] * core_in + np.arange(core_in)
    rows = np.arange(np.size(y)).repeat(core_in)
    return _entries(rows, columns.ravel(), (np.size(y), np.size(x)))


def _sparse_product(node: Apply, k: int, arguments: list, y, affinity: Affinity) -> csr_array:
    """A dense x times a sparse matrix of data."""
    x = arguments[k]
    others = [j for j in range(len(arguments)) if j != k]
    if len(others) != 1 or issparse(x) or not issparse(arguments[others[0]]):
        return _everything(y, x, type(node.op).__name__)
    matrix = csr_array(arguments[others[0]])
    if (
        not affinity.is_fixed(node.inputs[others[0]])
        or np.ndim(x) != 2
        or np.shape(y)
        != ((matrix.shape[0], x.shape[1]) if k == 1 else (x.shape[0], matrix.shape[1]))
    ):
        return _everything(y, x, type(node.op).__name__)
    entries = matrix.tocoo()
    i, j = entries.coords
    places, outputs = (np.arange(_size(v)).reshape(v.shape) for v in (x, y))
    if k == 1:
        rows, columns = outputs[i, :], places[j, :]
    else:
        rows, columns = outputs[:, j], places[:, i]
    return _entries(rows.ravel(), columns.ravel(), (_size(y), _size(x)))
