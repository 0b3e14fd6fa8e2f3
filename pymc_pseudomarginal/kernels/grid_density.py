"""A density given by its values on a grid, for up to three hyper-parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np


@dataclass(frozen=True)
class GridDensity:
    """Multilinear interpolation of values at the nodes centre + basis (lower + spacing * index).

    The density is a mixture of products of triangles, one to a node, so that draws of it are exact
    and need no table of the conditionals. Values on the border are zero, and so is the density
    beyond.

    Attributes
    ----------
    centre : array, shape (d,)
    basis : array, shape (d, d)
    lower : array, shape (d,)
    spacing : array, shape (d,)
    masses : array, d axes
        Probability of each node's triangle; they add up to one.
    """

    centre: np.ndarray
    basis: np.ndarray
    lower: np.ndarray
    spacing: np.ndarray
    masses: np.ndarray

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws, shape (count, d)."""
        flat = np.searchsorted(self._cumulative, rng.uniform(size=count), side="right")
        nodes = np.stack(np.unravel_index(flat, self.masses.shape), axis=1)
        triangle = rng.uniform(size=(2, count, len(self.lower))).sum(axis=0) - 1.0
        return self.centre + (self.lower + self.spacing * (nodes + triangle)) @ self.basis.T

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """At every row, shape (m, d) to (m,); minus infinity beyond the grid."""
        place = (thetas - self.centre) @ self._inverse.T - self.lower
        place = place / self.spacing
        last = np.array(self.masses.shape) - 1
        inside = ((place >= 0) & (place <= last)).all(axis=1)
        place = np.where(inside[:, None], place, 0.0)
        cell = np.minimum(place.astype(int), last - 1)
        share = place - cell
        total = np.zeros(len(thetas))
        for corner in product((0, 1), repeat=len(last)):
            weight = np.where(corner, share, 1.0 - share).prod(axis=1)
            total += weight * self.masses[tuple((cell + corner).T)]
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(total) - self._log_volume, -np.inf)

    def autoregress(self, rng: np.random.Generator, theta: np.ndarray, rho: float) -> np.ndarray:
        """An independent draw, shape (d,), which is reversible too: triangles know no nearness."""
        return self.draw(rng, 1)[0]

    @cached_property
    def _cumulative(self) -> np.ndarray:
        cumulative = np.cumsum(self.masses)
        # The last nodes are on the border: no draw may fall to them by rounding.
        cumulative[cumulative >= cumulative[-1]] = 1.0
        return cumulative

    @cached_property
    def _inverse(self) -> np.ndarray:
        return np.linalg.inv(self.basis)

    @cached_property
    def _log_volume(self) -> float:
        return float(np.log(self.spacing).sum() + np.linalg.slogdet(self.basis)[1])
