"""One to three hyper-parameters: nodes outward from the modes until the density has fallen.

Nodes lie on a lattice in the eigenbasis of the highest mode. The highest node that was not yet
left is left first, so that a limit on their number leaves out the lowest.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.spatial import cKDTree

from pymc_pseudomarginal.kernels.grid_density import GridDensity
from pymc_pseudomarginal.tuning.modes import Mode

MOST_AXES = 2
"""Hyper-parameters up to which a lattice is affordable."""

# How far the log density falls before nodes end: below 1e-5 of the peak, or what is affordable.
_FALL = {1: 12.0, 2: 12.0, 3: 8.0}
# As far as it has to have fallen for a lattice that meets the limit to do.
_ENOUGH = 6.0
# Depth at which values level off, so that none disturbs the interpolation of others.
_DEEPEST = 25.0
_SPACING = {1: 0.5, 2: 1.0, 3: 1.25}
_MOST = {1: 90, 2: 160, 3: 350}
# As few nodes as this in the upper part mean that the lattice is too coarse.
_FEWEST = {1: 9, 2: 16, 3: 24}
_UPPER = 4.0
_FINE = {1: 257, 2: 65, 3: 33}
_REFINEMENTS = 3


@dataclass(frozen=True)
class Lattice:
    """Values of the log density at nodes centre + basis (index).

    Attributes
    ----------
    centre : array, shape (d,)
    basis : array, shape (d, d)
    indices : array, shape (m, d)
    values : array, shape (m,)
        Relative to the highest, no lower than -25.
    complete : bool
        Whether the density has fallen at all its borders, with nodes close enough.
    """

    centre: np.ndarray
    basis: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    complete: bool

    @classmethod
    def explored(cls, density: Callable[[np.ndarray], float], modes: Sequence[Mode]) -> Lattice:
        """From the modes, the highest first."""
        d = len(modes[0].theta)
        spacing, known = _SPACING[d], {(0,) * d: modes[0].level}
        for _ in range(_REFINEMENTS):
            nodes = _Nodes(density, modes, spacing, known)
            complete = nodes.spread(_MOST[d])
            upper = sum(value > nodes.best - _UPPER for value in nodes.known.values())
            if not complete:
                spacing, known = 2.0 * spacing, nodes.halved()
            elif upper < _FEWEST[d]:
                spacing, known = 0.5 * spacing, nodes.doubled()
            else:
                break
        indices = np.array(list(nodes.known), dtype=float)
        values = np.array(list(nodes.known.values()))
        values = np.maximum(values - values.max(), -_DEEPEST)
        return cls(modes[0].theta, nodes.basis, indices, values, complete and upper >= _FEWEST[d])

    def density(self, correction: Callable[[np.ndarray], np.ndarray] | None = None) -> GridDensity:
        """The interpolated density, times exp(correction(thetas)) if there is one."""
        d = self.indices.shape[1]
        near = self.indices[self.values > -_FALL[d] - 2.0]
        lower, upper = near.min(axis=0) - 1.0, near.max(axis=0) + 1.0
        axes = [np.linspace(lo, up, _FINE[d]) for lo, up in zip(lower, upper, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        logs = RBFInterpolator(self.indices, self.values, kernel="cubic", degree=2)(points)
        logs = np.minimum(logs, 2.0)
        # Where no node is close the interpolation is a guess, and the wide component's matter.
        logs[cKDTree(self.indices).query(points)[0] > 1.01] = -np.inf
        if correction is not None:
            logs = logs + correction(self.centre + points @ self.basis.T)
        masses = np.exp(logs - logs.max()).reshape([_FINE[d]] * d)
        for axis in range(d):
            border = [slice(None)] * d
            border[axis] = [0, -1]  # type: ignore[call-overload]
            masses[tuple(border)] = 0.0
        spacing = (upper - lower) / (_FINE[d] - 1)
        return GridDensity(self.centre, self.basis, lower, spacing, masses / masses.sum())


class _Nodes:
    """The nodes of one spacing while they spread."""

    def __init__(self, density, modes, spacing, known):
        self.density, self.centre = density, modes[0].theta
        self.basis = spacing * modes[0].factor
        self.known = dict(known)
        self.modes = modes
        self.best = max(max(self.known.values()), modes[0].level)

    def spread(self, most: int) -> bool:
        """Evaluate neighbours until none is high enough; False when there would be too many."""
        for mode in self.modes:
            place = np.linalg.solve(self.basis, mode.theta - self.centre)
            self._value(tuple(int(i) for i in np.round(place)))
        heap = [(-value, node) for node, value in self.known.items()]
        heapq.heapify(heap)
        fall = _FALL[len(self.centre)]
        while heap and -heap[0][0] > self.best - fall:
            if len(self.known) > most:
                return -heap[0][0] < self.best - _ENOUGH
            _, node = heapq.heappop(heap)
            for neighbour in _neighbours(node):
                if neighbour not in self.known:
                    heapq.heappush(heap, (-self._value(neighbour), neighbour))
        return True

    def halved(self) -> dict[tuple[int, ...], float]:
        """What is known, on the lattice of twice the spacing."""
        return {
            tuple(i // 2 for i in node): value
            for node, value in self.known.items()
            if not any(i % 2 for i in node)
        }

    def doubled(self) -> dict[tuple[int, ...], float]:
        """What is known, on the lattice of half the spacing."""
        return {tuple(2 * i for i in node): value for node, value in self.known.items()}

    def _value(self, node):
        if node not in self.known:
            self.known[node] = self.density(self.centre + self.basis @ np.array(node, float))
            if math.isfinite(self.known[node]):
                self.best = max(self.best, self.known[node])
        return self.known[node]


def _neighbours(node):
    for axis, step in product(range(len(node)), (1, -1)):
        yield tuple(i + step * (axis == j) for j, i in enumerate(node))
