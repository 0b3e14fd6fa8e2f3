"""theta at fixed noise u, then u at fixed theta.

theta' is compared with theta at the same u, so that the noise of log w cancels, however large:
accepted with p(theta') w(theta', u) / (p(theta) w(theta, u)) times the ratio of proposal densities.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pymc_pseudomarginal.kernels.proposals import ThetaProposals
from pymc_pseudomarginal.kernels.rotation import rotate
from pymc_pseudomarginal.kernels.state import (
    Info,
    State,
    acceptance_probability,
    proposed_state,
)
from pymc_pseudomarginal.kernels.target import Target


def move_theta(
    proposals: ThetaProposals, target: Target, rng: np.random.Generator, state: State
) -> tuple[State, Info]:
    """One Metropolis-Hastings move of theta at the state's u."""
    theta, log_ratio = proposals(rng, state.theta)
    coin = rng.uniform()
    new = proposed_state(target, theta, state.u)
    if new is None:
        return state, Info(acceptance=0.0, failed=1, evaluations=1)
    probability = acceptance_probability(new.log_level - state.log_level + log_ratio)
    moved = coin < probability
    return (new if moved else state), Info(acceptance=probability, moved=moved, evaluations=1)


def sweep(
    proposals: ThetaProposals,
    target: Target,
    rng: np.random.Generator,
    state: State,
    moves: int,
    kicks: int,
    angle: float,
) -> tuple[State, Info]:
    """Some moves of theta, then one of u.

    Parameters
    ----------
    proposals : ThetaProposals
    target : Target
    rng : numpy.random.Generator
    state : State
    moves : int
        Number of moves of theta; 0 where there is no hyper-parameter.
    kicks : int
        Of the trajectory of u.
    angle : float
        Mean angle of the trajectory.
    """
    infos = []
    for _ in range(moves):
        state, info = move_theta(proposals, target, rng, state)
        infos.append(info)
    state, noise_acceptance = rotate(rng, state, kicks, angle)
    return state, replace(_summary(infos), noise_acceptance=noise_acceptance)


def _summary(infos: list[Info]) -> Info:
    if not infos:
        return Info()
    return Info(
        acceptance=sum(info.acceptance for info in infos) / len(infos),
        moved=any(info.moved for info in infos),
        failed=sum(info.failed for info in infos),
        evaluations=len(infos),
    )
