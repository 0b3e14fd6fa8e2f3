"""All intermediate values of some graphs, by interpretation: nothing is compiled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import INTERPRETED
from pymc_pseudomarginal.reading.graphs import SHAPES, is_random, nodes_above, op_name

Point = Mapping[str, np.ndarray]
"""Values by the names of value variables."""


class Interpreter:
    """Evaluates graphs node by node and keeps what no changed input reaches.

    Random variables are barriers: neither they nor what lies below them is evaluated; their
    inputs are in `sinks`.

    Parameters
    ----------
    outputs : sequence of TensorVariable
    inputs : sequence of TensorVariable
        The variables that points give values to.

    Attributes
    ----------
    nodes : list of Apply
        In the order of evaluation.
    sinks : set of Variable
        Inputs of random variables.
    clients : dict
        For every variable the nodes that use it.
    sources : dict
        For every variable the inputs on whose values it depends.
    """

    def __init__(self, outputs: Sequence[TensorVariable], inputs: Sequence[TensorVariable]):
        self.inputs = list(inputs)
        self.nodes: list[Apply] = []
        self.sinks: set[Variable] = set()
        drawn: set[Variable] = set()
        for node in nodes_above(outputs):
            if is_random(node.outputs[0]) or any(i in drawn for i in node.inputs):
                drawn.update(node.outputs)
                self.sinks.update(node.inputs)
            else:
                self.nodes.append(node)
        self.clients: dict[Variable, list[Apply]] = {}
        self.sources: dict[Variable, frozenset[Variable]] = {v: frozenset([v]) for v in inputs}
        for node in self.nodes:
            for i in dict.fromkeys(node.inputs):
                self.clients.setdefault(i, []).append(node)
            found = [] if op_name(node) in SHAPES else [self.sources_of(i) for i in node.inputs]
            union = frozenset[Variable]().union(*found)
            self.sources.update(dict.fromkeys(node.outputs, union))
        self._values: dict[Variable, Any] = {}
        self._performers: dict[Apply, _Performer] = {}

    def sources_of(self, variable: Variable) -> frozenset[Variable]:
        """The inputs on whose values a variable depends."""
        return self.sources.get(variable, frozenset())

    def __call__(self, point: Point) -> dict[Variable, Any]:
        """The values of all variables at a point."""
        values = self._values
        changed = set()
        for variable in self.inputs:
            new = np.asarray(point[variable.name], dtype=variable.dtype)
            old = values.get(variable)
            if old is None or old.shape != new.shape or not np.array_equal(old, new):
                changed.add(variable)
                values[variable] = new
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for node in self.nodes:
                output = node.outputs[0]
                if output in values and changed.isdisjoint(self.sources[output]):
                    continue
                results = self.perform(node, [self.value(i, values) for i in node.inputs])
                values.update(zip(node.outputs, results, strict=True))
        return dict(values)

    def perform(self, node: Apply, arguments: Sequence) -> list:
        """The outputs of one node for some values of its inputs."""
        if node not in self._performers:
            self._performers[node] = _Performer(node)
        return self._performers[node](arguments)

    @staticmethod
    def value(variable: Variable, values: Mapping[Variable, Any]):
        """The value of a variable: computed, constant or shared."""
        if variable in values:
            return values[variable]
        if isinstance(variable, Constant):
            return variable.data
        if isinstance(variable, SharedVariable):
            return variable.get_value(borrow=True)
        raise KeyError(variable)

    @staticmethod
    def value_or_none(variable: Variable, values: Mapping[Variable, Any]):
        """The value of a node's input; None for inputs that have none (no type, no data)."""
        try:
            return Interpreter.value(variable, values)
        except KeyError:
            return None


def perform(node: Apply, arguments: Sequence) -> list:
    """The outputs of one node for some values of its inputs."""
    return _Performer(node)(arguments)


class _Performer:
    """Runs one node in Python; Ops that cannot by themselves run as functions."""

    def __init__(self, node: Apply):
        self.node = node
        self.function: Any = None
        node.op.prepare_node(node, None, None, "py")

    def __call__(self, arguments: Sequence) -> list:
        if self.function is None:
            outputs: list[list] = [[None] for _ in self.node.outputs]
            try:
                self.node.op.perform(self.node, list(arguments), outputs)
            except (NotImplementedError, AttributeError, TypeError):
                self.function = self._as_function()
            else:
                return [output[0] for output in outputs]
        given = zip(arguments, self.node.inputs, strict=True)
        return self.function(*[a for a, i in given if not isinstance(i, Constant)])

    def _as_function(self):
        inputs = [i if isinstance(i, Constant) else i.type() for i in self.node.inputs]
        return pytensor.function(
            [i for i in inputs if not isinstance(i, Constant)],
            self.node.op.make_node(*inputs).outputs,
            mode=INTERPRETED,
            on_unused_input="ignore",
        )
