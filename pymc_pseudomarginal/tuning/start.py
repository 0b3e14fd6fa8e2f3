"""Where chains start: over-dispersed, so that agreement of chains means something."""

from __future__ import annotations

import math

import numpy as np

from pymc_pseudomarginal.kernels.draw import draw
from pymc_pseudomarginal.kernels.rotation import rotate
from pymc_pseudomarginal.kernels.state import State, proposed_state
from pymc_pseudomarginal.kernels.target import Target
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation
from pymc_pseudomarginal.tuning.tuned import Tuned

_TRIES = 200
_TURNS = 5


def initial_state(tuned: Tuned, target: Target, rng: np.random.Generator) -> State:
    """A start from the wide component of g, with u ~ N(0, I) moved and a few draws forgotten.

    Parameters
    ----------
    tuned : Tuned
    target : Target
        `target.thawed(tuned.frozen)`.
    rng : numpy.random.Generator

    Raises
    ------
    NoFiniteApproximation
        When no draw has a finite density.
    """
    state = _finite_state(tuned, target, rng)
    for _ in range(_TURNS):
        state, _ = rotate(rng, state, 2 * tuned.kicks, tuned.angle)
    for _ in range(tuned.settle):
        state, _ = draw(tuned, target, rng, state)
    return state


def _finite_state(tuned: Tuned, target: Target, rng: np.random.Generator) -> State:
    wide = tuned.proposals.density.wide
    for _ in range(_TRIES):
        u = rng.standard_normal(target.size)
        state = proposed_state(target, wide.draw(rng, 1)[0], u)
        if state is not None and math.isfinite(state.log_level):
            return state
    raise NoFiniteApproximation(
        f"none of {_TRIES} starting points of a chain has a finite posterior density"
    )
