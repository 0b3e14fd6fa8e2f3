"""Which intermediate values of a graph are affine in some variables.

By structure where the Ops are known, and by numbers: what bends on a random line is not affine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.reading.graphs import as_array
from pymc_pseudomarginal.reading.interpreter import Interpreter, Point
from pymc_pseudomarginal.reading.polynomials import degrees

# Three points of a line, at -1, 0 and 1.5: unequal distances, so that no symmetry hides a curve.
_STEPS = (-1.0, 0.0, 1.5)
_RELATIVE = 1e-8
_ROUNDING = 1e-11
_INPUT_ROUNDING = 1e-13


class Kind(IntEnum):
    """How a variable depends on the members of x."""

    CONSTANT = 0
    AFFINE = 1
    CURVED = 2


@dataclass(frozen=True)
class Affinity:
    """How all variables of an interpreted graph depend on x.

    Attributes
    ----------
    interpreter : Interpreter
    members : list of TensorVariable
        The variables that make up x.
    kinds : dict
        Variables that are not in it do not depend on x.
    values : dict
        The values of all variables at one point.
    """

    interpreter: Interpreter
    members: list[TensorVariable]
    kinds: dict[Variable, Kind]
    values: dict[Variable, Any]

    def kind(self, variable: Variable) -> Kind:
        """How a variable depends on x."""
        return self.kinds.get(variable, Kind.CONSTANT)

    def is_affine(self, variable: Variable) -> bool:
        """Whether a variable depends on x and is affine in it."""
        return self.kind(variable) is Kind.AFFINE

    def is_curved(self, variable: Variable) -> bool:
        """Whether a variable depends on x and is not affine in it."""
        return self.kind(variable) is Kind.CURVED

    def depends(self, variable: Variable) -> bool:
        """Whether a variable depends on x."""
        return self.kind(variable) is not Kind.CONSTANT

    def is_fixed(self, variable: Variable) -> bool:
        """Whether a variable depends on nothing that is sampled."""
        return not self.interpreter.sources_of(variable)

    def moves(self, variable: Variable) -> bool:
        """Whether a variable depends on theta: on something sampled that is not in x."""
        return not self.interpreter.sources_of(variable) <= set(self.members)

    def members_of(self, variable: Variable) -> set[Variable]:
        """The members of x above a variable."""
        return set(self.interpreter.sources_of(variable)) & set(self.members)

    def size(self, variable: Variable) -> int:
        """The number of elements of a variable."""
        return int(np.size(self.values[variable]))


def find_affine(
    interpreter: Interpreter,
    members: Sequence[TensorVariable],
    points: Sequence[Point],
    rng: np.random.Generator,
) -> Affinity:
    """Classify all variables of a graph.

    A variable depends on x if it stands below it; that it did not change on a few lines proves
    nothing. It is affine if its degree as a polynomial is one, if all its inputs that depend on
    x are affine, and if its values on random lines through x say so, at every point (theta).
    """
    lines = [_values_on_line(interpreter, members, point, rng) for point in points]
    values = lines[0][1]
    degree = degrees(interpreter.nodes, members, values)
    kinds: dict[Variable, Kind] = dict.fromkeys(members, Kind.AFFINE)
    for node in interpreter.nodes:
        outputs = [output for output in node.outputs if output in degree]
        if not outputs:
            continue
        floor = _rounding_of_inputs(node, kinds, values)
        curved = any(kinds.get(i) is Kind.CURVED for i in node.inputs)
        for output in outputs:
            straight = degree[output].max() <= 1.0 and not curved
            bent = not straight or _bends_on_lines(output, lines, floor)
            kinds[output] = Kind.CURVED if bent else Kind.AFFINE
    return Affinity(interpreter, list(members), kinds, values)


def _values_on_line(interpreter, members, point, rng):
    """Values of all variables at three points of a random line in x."""
    names = [v.name for v in members]
    start = {name: rng.standard_normal(np.shape(point[name])) for name in names}
    step = {name: rng.standard_normal(np.shape(point[name])) for name in names}
    return [
        interpreter({**point, **{name: start[name] + t * step[name] for name in names}})
        for t in _STEPS
    ]


def _rounding_of_inputs(node: Apply, kinds, values) -> float:
    """What rounding of a node's inputs may do to its result (sums that nearly cancel)."""
    largest = 0.0
    for i in node.inputs:
        if kinds.get(i) is Kind.AFFINE and i in values:
            value = as_array(values[i])
            terms = np.sqrt(value.size) if isinstance(node.op, CAReduce) else 1.0
            largest = max(largest, terms * np.abs(value).max(initial=0.0))
    return _INPUT_ROUNDING * largest if np.isfinite(largest) else 0.0


def _bends_on_lines(output, lines, floor: float) -> bool:
    if not hasattr(output.type, "dtype"):  # a slice, say: as it comes
        return False
    for line in lines:
        low, middle, high = (as_array(values[output]) for values in line)
        if low.shape != middle.shape or high.shape != middle.shape:
            return True
        if _same(low, middle) and _same(high, middle):
            continue
        if middle.dtype.kind != "f":
            return True
        with np.errstate(all="ignore"):
            bend = np.abs(1.5 * low - 2.5 * middle + high)
            scale = np.abs(low) + np.abs(middle) + np.abs(high)
            largest = np.max(scale[np.isfinite(scale)], initial=0.0)
            if not (bend <= floor + _RELATIVE * scale + _ROUNDING * largest).all():
                return True
    return False


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(np.array_equal(first, second, equal_nan=first.dtype.kind == "f"))
