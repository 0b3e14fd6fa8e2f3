"""theta and u together, independent of where the chain is.

theta' ~ g and u' ~ N(0, I) make (theta', x') a draw of g q; it is accepted by the ratio of
p(theta) w(theta, u) / g(theta).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pymc_pseudomarginal.kernels.proposals import CoveringDensity
from pymc_pseudomarginal.kernels.state import (
    Info,
    State,
    acceptance_probability,
    finite_or_nothing,
    proposed_state,
)
from pymc_pseudomarginal.kernels.target import Target


def move_jointly(
    density: CoveringDensity, target: Target, rng: np.random.Generator, state: State
) -> tuple[State, Info]:
    """One Metropolis-Hastings move of theta and u."""
    d = len(state.theta)
    theta = density.draw(rng, 1)[0] if d else state.theta
    u = rng.standard_normal(len(state.u))
    coin = rng.uniform()
    new = proposed_state(target, theta, u) if d else _at_noise(state, u)
    if new is None:
        return state, Info(acceptance=0.0, joint=True, failed=1, evaluations=1)
    levels = density.log_density(np.stack([state.theta, theta])) if d else np.zeros(2)
    probability = acceptance_probability(
        new.log_level - state.log_level + float(levels[0] - levels[1])
    )
    info = Info(
        acceptance=probability, moved=coin < probability, joint=True, evaluations=int(d > 0)
    )
    return (new if info.moved else state), info


def _at_noise(state: State, u: np.ndarray) -> State:
    return replace(state, u=u, log_weight=finite_or_nothing(state.conditional.log_weight(u)))
