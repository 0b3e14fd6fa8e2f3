"""The samplers of the paper, and chains of them summarised for its tables.

The step methods are driven by themselves rather than by `pm.sample`: the tables need proposals that
were tuned by another sampler, and updates that are repeated within a draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import arviz as az
import numpy as np
import pymc as pm

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.diagnostics import rhat_of_moments
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation

# Algorithm 1 of the paper, as printed. It needs no f to move theta.
ALGORITHM_1 = partial(
    pmpm.PseudoMarginalMH,
    refresh=False,
    annealing=0,
    normals="independent",
    proposal="random-walk",
    latent_moves=0,
)
SAMPLERS = {
    **{
        f"PM {name} ({N})": partial(ALGORITHM_1, approximation=approximation, n_importance=N)
        for name, approximation in (("LA", "laplace"), ("EP", "ep"))
        for N in (1, 16, 64)
    },
    "AA": pmpm.WhitenedMH,
    "SURR": pmpm.SurrogateMH,
    "default": pmpm.PseudoMarginalMH,
}
"""Step methods by their names in the paper; "default" is what users of this package get."""


@dataclass(frozen=True)
class Chain:
    """Draws after burn-in.

    Attributes
    ----------
    psi : array, shape (draws, p)
        Logarithms of the hyper-parameters.
    acceptance : float
        Share of accepted proposals.
    operations : float
        Cubic operations per proposal.
    adaptation : RandomWalkAdaptation
        As it was at the end of burn-in.
    """

    psi: np.ndarray
    acceptance: float
    operations: float
    adaptation: RandomWalkAdaptation


def draw_chain(
    model: pm.Model,
    sampler: str,
    start: dict[str, np.ndarray],
    *,
    burn_in: int,
    draws: int,
    seed: int,
    repeats: int = 1,
    latent_moves: int | None = None,
    proposal: RandomWalkAdaptation | None = None,
) -> Chain:
    """Run one chain.

    Parameters
    ----------
    model : pymc.Model
    sampler : str
        Of `SAMPLERS`.
    start : dict
        The point to start from.
    burn_in : int
        Proposals made while tuning. The pseudo-marginal samplers move on the approximate marginal
        meanwhile, where they cannot stick.
    draws : int
        To keep.
    seed : int
    repeats : int
        Proposals of theta per draw, followed by as many moves of f given theta.
    latent_moves : int, optional
        Moves of f per draw of AA and SURR, where they are not `repeats`.
    proposal : RandomWalkAdaptation, optional
        Takes the place of the random walk that burn-in found.
    """
    with model:
        step = SAMPLERS[sampler]()
    moves = (latent_moves or repeats) if step.latent_moves else 0
    step.latent_moves = moves
    step.set_rng(np.random.default_rng(seed))
    point = start
    for _ in range(burn_in):
        point, _ = step.step(point)
    if proposal is not None:
        step.adaptation = proposal
    adaptation = step.adaptation
    step.stop_tuning()
    psi, statistics = [], []
    for _ in range(draws):
        for repeat in range(repeats):
            # f moves when theta has been moved for the last time.
            step.latent_moves = moves if repeat == repeats - 1 else 0
            point, (found,) = step.step(point)
            statistics.append((found["pm_accepted"], found["pm_cubic_operations"]))
        psi.append(step.latent_model.theta(point))
    acceptance, operations = np.mean(statistics, axis=0)
    return Chain(np.array(psi), acceptance, operations, adaptation)


def smallest_ess(psi: np.ndarray) -> float:
    """Effective draws of the hyper-parameter that has the fewest, of psi of shape (draws, p)."""
    moving = np.ptp(psi, axis=0) > 0
    if not moving.all():
        return 1.0
    return min(float(az.ess(column[None], method="mean")) for column in psi.T)


def moments(psi: np.ndarray, lengths: Sequence[int]) -> dict[str, list]:
    """Means and variances of the first draws, for R-hat of several chains.

    Returns
    -------
    dict
        ``lengths``, and ``means`` and ``variances`` of shape (lengths, p).
    """
    prefixes = [psi[:length] for length in lengths]
    return {
        "lengths": [int(length) for length in lengths],
        "means": [prefix.mean(axis=0) for prefix in prefixes],
        "variances": [prefix.var(axis=0, ddof=1) for prefix in prefixes],
    }


def rhat(chains: Sequence[dict[str, list]]) -> np.ndarray:
    """R-hat and its 97.5 % bound, of the worst hyper-parameter; shape (lengths, 2).

    Parameters
    ----------
    chains : sequence of dict
        What `moments` gave for each chain.
    """
    means, variances = (
        np.array([chain[key] for chain in chains]) for key in ("means", "variances")
    )
    worst = []
    for at, length in enumerate(chains[0]["lengths"]):
        found = [
            rhat_of_moments(means[:, at, i], variances[:, at, i], length)
            for i in range(means.shape[2])
        ]
        worst.append(max(found))
    return np.array(worst)
