"""A proposal that was fitted to draws, tried on others before it is used."""

from __future__ import annotations

from collections.abc import Callable

from pymc_pseudomarginal.transitions.proposals import Proposal
from pymc_pseudomarginal.transitions.pseudo_marginal import Info, State


def acceptance_on_trial(
    state: State,
    move: Callable[[State, Proposal], tuple[State, Info]],
    fitted: Proposal,
    walk: Proposal,
    trials: int,
) -> float:
    """How often fresh proposals of a fitted kind are accepted, in the mean of their probabilities.

    Every trial is followed by a step of the random walk: it needs no fit, and leads away from
    where the fit was made if the posterior is elsewhere.

    Parameters
    ----------
    state : State
        Where the chain has got to.
    move : callable
        (state, proposal) -> state and Info, a transition as the chain will make them.
    fitted, walk : Proposal
    trials : int
        Of each.

    Returns
    -------
    float
        Over the later half of the trials, when the walk has had time.
    """
    found = []
    for _ in range(trials):
        state, info = move(state, fitted)
        found.append(info.acceptance)
        state, _ = move(state, walk)
    later = found[len(found) // 2 :]
    return sum(later) / len(later)
