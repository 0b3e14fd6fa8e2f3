"""Several variables in one vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array

from pymc_pseudomarginal.reading.graphs import in_place_of
from pymc_pseudomarginal.reading.patterns import Pattern


@dataclass(frozen=True)
class Layout:
    """Variables stacked in one vector.

    Attributes
    ----------
    vector : TensorVariable, shape (n,)
        The input that holds them all.
    variables : list of TensorVariable
    shapes : list of tuple of int
    """

    vector: TensorVariable
    variables: list[TensorVariable]
    shapes: list[tuple[int, ...]]

    @staticmethod
    def of(name: str, variables: Sequence[TensorVariable], point: Mapping) -> Layout:
        """Stack variables of the shapes that their values at a point have."""
        shapes = [np.shape(point[v.name]) for v in variables]
        size = sum(int(np.prod(shape)) for shape in shapes)
        return Layout(pt.vector(name, shape=(size,), dtype="float64"), list(variables), shapes)

    @property
    def size(self) -> int:
        """n, the number of elements."""
        return int(self.vector.type.shape[0])

    @cached_property
    def slices(self) -> dict[TensorVariable, slice]:
        """Where each variable stands."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        starts = [0, *ends[:-1]]
        return {
            v: slice(int(a), int(b)) for v, a, b in zip(self.variables, starts, ends, strict=True)
        }

    @cached_property
    def replacements(self) -> dict[Variable, Variable]:
        """Every variable as a part of the vector."""
        return {
            v: in_place_of(v, self.vector[self.slices[v]].reshape(shape))
            for v, shape in zip(self.variables, self.shapes, strict=True)
        }

    @cached_property
    def seeds(self) -> dict[Variable, Pattern]:
        """On which element of the vector each element of each variable depends."""
        result: dict[Variable, Pattern] = {}
        for v, place in self.slices.items():
            columns = np.arange(place.start, place.stop)
            rows = np.arange(columns.size)
            shape = (columns.size, self.size)
            result[v] = csr_array((np.ones(columns.size, dtype=bool), (rows, columns)), shape=shape)
        return result

    def stack(self, point: Mapping) -> np.ndarray:
        """The vector of a point."""
        parts = [np.ravel(np.asarray(point[v.name], dtype=float)) for v in self.variables]
        return np.concatenate(parts) if parts else np.zeros(0)

    def unstack(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Values by the names of the variables, as copies."""
        return {
            str(v.name): np.array(vector[self.slices[v]].reshape(shape), dtype=v.dtype)
            for v, shape in zip(self.variables, self.shapes, strict=True)
        }
