"""One draw of a tuned chain."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pymc_pseudomarginal.kernels.fixed_noise import sweep
from pymc_pseudomarginal.kernels.independent import move_jointly
from pymc_pseudomarginal.kernels.proposals import ThetaProposals
from pymc_pseudomarginal.kernels.state import Info, State
from pymc_pseudomarginal.kernels.target import Target


class Settings(Protocol):
    """What a draw needs of what was tuned."""

    @property
    def proposals(self) -> ThetaProposals:
        """Of theta."""

    @property
    def joint_share(self) -> float:
        """Probability that a draw proposes theta and u together."""

    @property
    def moves(self) -> int:
        """Moves of theta at fixed noise in any other draw."""

    @property
    def kicks(self) -> int:
        """Of a trajectory of u."""

    @property
    def angle(self) -> float:
        """Mean angle of a trajectory of u."""


def draw(
    tuned: Settings, target: Target, rng: np.random.Generator, state: State
) -> tuple[State, Info]:
    """The next state of the chain: a joint move or, by a coin, a sweep at fixed noise.

    Parameters
    ----------
    tuned : Tuned
    target : Target
        As it was frozen at the end of tuning: `target.thawed(tuned.frozen)`.
    rng : numpy.random.Generator
    state : State
    """
    if tuned.joint_share and rng.uniform() < tuned.joint_share:
        return move_jointly(tuned.proposals.density, target, rng, state)
    return sweep(tuned.proposals, target, rng, state, tuned.moves, tuned.kicks, tuned.angle)
