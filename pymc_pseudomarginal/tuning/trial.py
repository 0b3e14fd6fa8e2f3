"""Proposals of theta tried out: acceptance, how far they lead, and what they find on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.kernels.proposals import ThetaProposals
from pymc_pseudomarginal.kernels.rotation import rotate
from pymc_pseudomarginal.kernels.state import State, acceptance_probability, proposed_state
from pymc_pseudomarginal.kernels.target import Target
from pymc_pseudomarginal.tuning.pilot import Pilot

_CHAINS = 4
_FARTHEST = 4.0


@dataclass(frozen=True)
class Trial:
    """Acceptance of a proposal from draws of the target, and how far it leads.

    Attributes
    ----------
    acceptance : float
    progress : float
        Mean accepted squared jump over that of an independent draw: one minus the lag-one
        autocorrelation, roughly.
    states : list of State
        Where its chains were.
    evaluations : int
    """

    acceptance: float
    progress: float
    states: list[State]
    evaluations: int


NEVER = Trial(math.nan, 0.0, [], 0)


def try_proposals(
    proposals: ThetaProposals,
    target: Target,
    rng: np.random.Generator,
    pilot: Pilot,
    unit: np.ndarray,
    steps: int,
) -> Trial:
    """Run chains of the exact kernel on from states of a pilot.

    Parameters
    ----------
    proposals : ThetaProposals
    target : Target
    rng : numpy.random.Generator
    pilot : Pilot
    unit : array, shape (d, d)
        Cholesky factor of the posterior covariance of theta, as far as it is known.
    steps : int
        Of each chain.
    """
    inverse = np.linalg.inv(unit)
    acceptances, progress, seen = [], [], []
    for i in rng.choice(len(pilot.states), size=_CHAINS, replace=False):
        state = pilot.states[i]
        for _ in range(steps):
            theta, log_ratio = proposals(rng, state.theta)
            coin = rng.uniform()
            new = proposed_state(target, theta, state.u)
            level = new.log_level if new is not None else -math.inf
            probability = acceptance_probability(level - state.log_level + log_ratio)
            jump = inverse @ (theta - state.theta)
            acceptances.append(probability)
            progress.append(probability * min(float(jump @ jump) / (2 * len(jump)), _FARTHEST))
            if new is not None and coin < probability:
                state = new
            state, _ = rotate(rng, state, pilot.kicks)
            seen.append(state)
    return Trial(float(np.mean(acceptances)), float(np.mean(progress)), seen, _CHAINS * steps)
