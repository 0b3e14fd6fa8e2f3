"""Draws of a log density that is cheap, by many walkers side by side.

They move along differences of two places of an archive, now and then by the whole difference:
from mode to mode. Reference: ter Braak and Vrugt (2008), Differential evolution Markov chain with
snooker updater and fewer chains.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_WALKERS, _THIN = 64, 4
# Lengths of steps, over what is best for a normal density, in powers of ten.
_LENGTHS = (-0.7, 0.1)
_WHOLE = 0.1
_FORGOTTEN = 1 / 3
# Random part of a step, in standard deviations, for an archive of few places.
_APART = 0.05


def walked(
    log_density: Callable[[np.ndarray], np.ndarray],
    points: np.ndarray,
    rng: np.random.Generator,
    steps: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Where walkers were, shape (m, d), and the log density there, shape (m,).

    Parameters
    ----------
    log_density : callable
        From (k, d) to (k,).
    points : array, shape (., d)
        They begin at some of these, which are the archive at first.
    rng : numpy.random.Generator
    steps : int
    """
    d = points.shape[1]
    archive, apart = points, _APART * points.std(axis=0)
    here = points[rng.integers(len(points), size=_WALKERS)]
    levels, kept, kept_levels = log_density(here), [], []
    for step in range(steps):
        lengths = 2.38 / math.sqrt(2 * d) * 10.0 ** rng.uniform(*_LENGTHS, size=(_WALKERS, 1))
        lengths = np.where(rng.uniform(size=(_WALKERS, 1)) < _WHOLE, 1.0, lengths)
        first, second = rng.integers(len(archive), size=(2, _WALKERS))
        jumps = lengths * (archive[first] - archive[second])
        there = here + jumps + apart * rng.standard_normal(here.shape)
        new_levels = log_density(there)
        moved = np.log(rng.uniform(size=_WALKERS)) < new_levels - levels
        here = np.where(moved[:, None], there, here)
        levels = np.where(moved, new_levels, levels)
        if step % _THIN == _THIN - 1:
            kept.append(here)
            kept_levels.append(levels)
            # Half of what was kept: beginnings are forgotten while the archive grows.
            archive = np.concatenate(kept[len(kept) // 2 :]) if len(kept) > 1 else archive
    first = int(_FORGOTTEN * len(kept))
    return np.concatenate(kept[first:]), np.concatenate(kept_levels[first:])
