"""The exponential of a matrix element by element, for covariances: most of their time goes into it.

PyTensor's is a call of the C library's exp for every number. NumPy's, or arithmetic alone in a loop
of Numba, works on vectors of numbers and is several times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np
import pytensor.tensor as pt
from numba import literal_unroll
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import graph_replace
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.dispatch import basic as numba_dispatch
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import scalar_op_name

# exp(x) = 2^k exp(r) with k the whole number nearest to x / log 2 and |r| <= log(2) / 2. Below the
# first bound the result is zero, above the second infinity, to which 2^k leads by itself.
_LOWEST, _HIGHEST = -746.0, 710.0
_PER_LOG_2 = 1.4426950408889634
# log 2 in two parts, of which the first has so few digits that k times it is exact (Cody & Waite).
_LOG_2_HIGH, _LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Adding and subtracting it rounds to a whole number.
_ROUNDER = 6755399441055744.0
# Taylor's series of exp(r) to r^13, beyond which nothing is left of 16 digits.
_FIRST, *_REST = (1.0 / factorial(k) for k in range(13, -1, -1))
_REST = tuple(_REST)


class VectorisedExp(Op):
    """exp(x) of every element of a matrix of doubles, accurate to one unit in the last place.

    It is a pass of its own: where PyTensor joins an exponential with what leads to it into one
    loop, rows and columns that are spread over the matrix keep compilers from using vectors.

    Parameters
    ----------
    inplace : bool
        Whether the result takes the place of x. PyTensor asks for it where x has served.
    """

    __props__ = ("inplace",)

    def __init__(self, inplace: bool = False):
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, x):
        """Of a matrix of doubles."""
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        """By NumPy."""
        with np.errstate(all="ignore"):
            output_storage[0][0] = np.exp(inputs[0], out=inputs[0] if self.inplace else None)


@numba_dispatch.register_funcify_default_op_cache_key(VectorisedExp)
def _compile_by_numba(op, node, **kwargs):
    inplace = op.inplace

    # Rounding must not be rearranged; a product and a sum may be made in one.
    @numba_dispatch.numba_njit(fastmath={"contract"})
    def exponential(x):
        x = np.ascontiguousarray(x)
        result = x if inplace else np.empty(x.shape)
        rows, columns = x.shape
        for row in range(rows):
            for column in range(columns):
                y = min(max(x[row, column], _LOWEST), _HIGHEST)
                k = (y * _PER_LOG_2 + _ROUNDER) - _ROUNDER
                r = (y - k * _LOG_2_HIGH) - k * _LOG_2_LOW
                p = _FIRST
                for c in literal_unroll(_REST):
                    p = p * r + c
                i = np.int64(k)
                half = i >> 1
                first = np.int64((half + 1023) << 52).view(np.float64)
                second = np.int64((i - half + 1023) << 52).view(np.float64)
                result[row, column] = p * first * second
        return result

    return exponential


vectorised_exp = VectorisedExp()


@node_rewriter([VectorisedExp])
def _in_the_place_of_its_input(fgraph, node):
    return None if node.op.inplace else [VectorisedExp(inplace=True)(*node.inputs)]


# Where the input is needed elsewhere PyTensor takes it back.
optdb.register(
    "pymc_pseudomarginal_exp_inplace",
    in2out(_in_the_place_of_its_input),
    "fast_run",
    "inplace",
    position=70.5,
)


def with_vectorised_exp(graphs: Sequence[TensorVariable]) -> list[TensorVariable]:
    """The same graphs with every elementwise exponential of a matrix in them replaced.

    The new Op has no gradient: it is for graphs that are to be compiled next.
    """
    replaced = {
        node: vectorised_exp(*node.owner.inputs)
        for node in ancestors(graphs)
        if scalar_op_name(node) == "Exp"
        and node.type.broadcastable == node.owner.inputs[0].type.broadcastable == (False, False)
        and node.type.dtype == node.owner.inputs[0].type.dtype == "float64"
    }
    return graph_replace(list(graphs), replaced, strict=False) if replaced else list(graphs)
