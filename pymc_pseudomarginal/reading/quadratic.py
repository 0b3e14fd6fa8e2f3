"""Which log densities are quadratic in some variables.

By structure where the Ops are known, and by numbers: the third difference on a random line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.reading.interpreter import Interpreter, Point
from pymc_pseudomarginal.reading.polynomials import degrees

_LENGTHS = (0.5, 1.0, 2.0)
_STEPS = np.array([-3.0, -1.0, 1.0, 3.0])
_THIRD = np.array([-1.0, 3.0, -3.0, 1.0])  # third difference at these steps
_SECOND = np.array([1.0, -1.0, -1.0, 1.0])
_RELATIVE = 1e-8
_ROUNDING = 1e-11


class LogDensity:
    """A log density that can be evaluated at any point.

    Parameters
    ----------
    graph : TensorVariable
        Summed over its elements.
    inputs : sequence of TensorVariable
        All variables that points give values to.
    """

    def __init__(self, graph: TensorVariable, inputs: Sequence[TensorVariable]):
        self.graph = graph
        self.interpreter = Interpreter([graph], inputs)
        self.sources = self.interpreter.sources_of(graph)

    def __call__(self, point: Point) -> float:
        """The log density at a point."""
        return float(np.sum(Interpreter.value(self.graph, self.interpreter(point))))

    def is_quadratic(
        self, moving: Iterable[TensorVariable], points: Sequence[Point], rng: np.random.Generator
    ) -> bool:
        """Whether it is a polynomial of degree two in some variables."""
        return self._on_lines(moving, points, rng) is not None

    def is_concave(self, moving, points, rng) -> bool:
        """Whether it is such a polynomial and bends down on all lines."""
        bend = self._on_lines(moving, points, rng)
        return bend is not None and bend < 0.0

    def _on_lines(self, moving, points, rng) -> float | None:
        """The largest second difference on random lines, or None if a third is not zero."""
        moving = list(moving)
        if self._degree(moving, points[0]) > 2.0:
            return None  # whatever it looks like here
        largest = -np.inf
        for point in points:
            for length in _LENGTHS:
                values = self._line(moving, point, length, rng)
                if not np.isfinite(values).all():
                    return None
                spread = np.abs(values - values.mean()).max()
                if abs(_THIRD @ values) > _RELATIVE * spread + _ROUNDING * np.abs(values).max():
                    return None
                largest = max(largest, float(_SECOND @ values))
        return largest

    def _degree(self, moving, point: Point) -> float:
        found = degrees(self.interpreter.nodes, moving, self.interpreter(point))
        return float(np.max(found.get(self.graph, 0.0)))

    def _line(self, moving, point: Point, length: float, rng: np.random.Generator) -> np.ndarray:
        shapes = {str(v.name): np.shape(point[v.name]) for v in moving}
        start = {name: length * rng.standard_normal(shape) for name, shape in shapes.items()}
        step = {name: length * rng.standard_normal(shape) for name, shape in shapes.items()}
        return np.array(
            [self({**point, **{n: start[n] + t * step[n] for n in shapes}}) for t in _STEPS]
        )
