"""Functions of graphs: interpreted while a model is read, compiled once it is sampled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytensor
from pymc.pytensorf import compile as compile_graph
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.exponential import vectorised_exp
from pymc_pseudomarginal.model.graph import INTERPRETED
from pymc_pseudomarginal.reading.graphs import in_place_of, op_name

Outputs: TypeAlias = TensorVariable | Sequence[TensorVariable] | Callable[[], TensorVariable]


def with_vectorised_exp(graphs: Sequence[TensorVariable]) -> list[TensorVariable]:
    """The graphs with every elementwise exponential of a matrix computed by the faster Op.

    It has no gradient: the graphs are to be compiled next. One exponential may stand above
    another, as in a process whose inputs are a process.
    """
    graph = FunctionGraph(outputs=list(graphs), clone=True, copy_inputs=False, copy_orphans=False)
    for node in list(graph.toposort()):
        if op_name(node) == "Elemwise:Exp" and _is_matrix(node.inputs[0]):
            (old,) = node.outputs
            graph.replace(old, in_place_of(old, vectorised_exp(*node.inputs)), import_missing=True)
    return list(graph.outputs)


def _is_matrix(variable: TensorVariable) -> bool:
    return variable.type.broadcastable == (False, False) and variable.dtype == "float64"


class Compiler:
    """Makes functions of graphs that are compiled at their first call.

    Parameters
    ----------
    interpreted : bool
        Interpret instead: nothing to wait for, slow to run.
    """

    def __init__(self, *, interpreted: bool = False):
        self.interpreted = interpreted

    def __call__(self, inputs: Sequence[TensorVariable], outputs: Outputs) -> LazyFunction:
        """A function of arrays; outputs may be a callable that writes the graph when needed."""
        return LazyFunction(list(inputs), outputs, interpreted=self.interpreted)


class LazyFunction:
    """A function of a graph."""

    def __init__(self, inputs: list[TensorVariable], outputs: Outputs, *, interpreted: bool):
        self._inputs, self._outputs = inputs, outputs
        self._interpreted = interpreted
        self._function: Any = None

    def __call__(self, *arguments: np.ndarray) -> Any:
        """The values of the outputs."""
        if self._interpreted:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return self.compile()(*arguments)
        return self.compile()(*arguments)

    def compile(self) -> Callable[..., Any]:
        """Compile now rather than at the first call."""
        if self._function is None:
            outputs = self._outputs() if callable(self._outputs) else self._outputs
            if self._interpreted:
                self._function = pytensor.function(
                    self._inputs, outputs, mode=INTERPRETED, on_unused_input="ignore"
                )
            else:
                with warnings.catch_warnings():
                    # Our own Ops run in Python where PyTensor compiles for Numba.
                    warnings.filterwarnings("ignore", "Numba will use object mode")
                    self._function = compile_graph(self._inputs, outputs, on_unused_input="ignore")
                self._function.trust_input = True
        return self._function
