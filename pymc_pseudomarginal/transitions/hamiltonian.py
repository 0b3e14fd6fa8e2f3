"""Hamiltonian proposals of theta on the approximate marginal posterior, corrected to be exact.

A trajectory follows U(theta) = -log p(theta) Z_q(theta) and is accepted by its energy: a kernel
that is reversible with respect to p(theta) Z_q(theta). What it proposes is put to the
estimates of p(y|theta) relative to Z_q, the second stage of delayed acceptance. The product
of the two acceptance probabilities satisfies detailed balance for the extended target of
`pseudo_marginal`, whatever Z_q is, so long as it is a function of theta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.transitions.acceptance import acceptance_probability
from pymc_pseudomarginal.transitions.pseudo_marginal import (
    Candidate,
    Conditional,
    Info,
    State,
    accept_by_estimates,
    approximate_level,
)

# A trajectory whose energies differ by more than this has left the region where leapfrog
# follows it. The difference of the largest and the smallest is the same for the trajectory
# run backwards, so that to give it up is to reject both.
_LARGEST_ENERGY_RANGE = 100.0


@dataclass(frozen=True)
class Position:
    """A theta with the force that acts there.

    Attributes
    ----------
    conditional : Conditional
    force : array, shape (d,)
        The gradient of log p(theta) Z_q(theta), or any other function of theta: it decides
        how far a trajectory is accepted, not what is sampled.
    """

    conditional: Conditional
    force: np.ndarray


@dataclass(frozen=True)
class Trajectory:
    """How theta is moved.

    Attributes
    ----------
    factor : array, shape (d, k)
        L, with the inverse mass matrix C = L Lᵀ. Rows of zeros are elements that stay.
    step_size : float
        Of leapfrog, in units in which C is the identity.
    n_steps : int
    """

    factor: np.ndarray
    step_size: float
    n_steps: int


@dataclass(frozen=True)
class TrajectoryInfo:
    """What one trajectory did.

    Attributes
    ----------
    acceptance : float
        Probability with which its end passed by the energy.
    energy_error : float
        Energy at the end (or where it was given up) less that at the start; infinite where a
        position on the way failed.
    gradients : int
        Forces that were evaluated.
    iterations : int
        Newton iterations or EP sweeps on the way, those at the end included.
    cubic_operations : int
        Factorisations and inversions on the way, those at both ends not included.
    """

    acceptance: float
    energy_error: float
    gradients: int
    iterations: int
    cubic_operations: int


def leapfrog(
    start: Position,
    momentum: np.ndarray,
    position_at: Callable[[np.ndarray], Position],
    trajectory: Trajectory,
) -> Iterator[tuple[Position, np.ndarray]]:
    """The positions and momenta, each (k,), after every step of a trajectory.

    The momentum is that of the coordinates in which C is the identity, standard normal in
    equilibrium. With its sign changed the same steps lead back from the end to the start.
    """
    factor, step_size = trajectory.factor, trajectory.step_size
    position = start
    kick = 0.5 * step_size * (factor.T @ position.force)
    for _ in range(trajectory.n_steps):
        momentum = momentum + kick
        position = position_at(position.conditional.theta + step_size * (factor @ momentum))
        kick = 0.5 * step_size * (factor.T @ position.force)
        momentum = momentum + kick
        yield position, momentum


def hamiltonian_proposal(
    rng: np.random.Generator,
    start: Position,
    position_at: Callable[[np.ndarray], Position],
    trajectory: Trajectory,
) -> tuple[Candidate, Position | None, TrajectoryInfo]:
    """The end of a trajectory, passed or not by its energy.

    The kernel "go there if it passed, else stay" is reversible with respect to
    p(theta) Z_q(theta).

    Parameters
    ----------
    rng : numpy.random.Generator
    start : Position
    position_at : callable
        theta -> Position, a function of theta alone; raises NumericalFailure where none exists.
    trajectory : Trajectory
        Chosen independently of the state.

    Returns
    -------
    candidate : Candidate
    end : Position or None
        That of the candidate.
    info : TrajectoryInfo

    References
    ----------
    Neal (2011), MCMC using Hamiltonian dynamics, Handbook of Markov Chain Monte Carlo.
    """
    momentum = rng.standard_normal(trajectory.factor.shape[1])
    # What overflows shows as a failure or as an energy that is not finite.
    with np.errstate(all="ignore"):
        end, info, failure = _follow(start, momentum, position_at, trajectory)
    passed = info.acceptance > 0.0 and bool(rng.uniform() < info.acceptance)
    conditional = None if end is None else end.conditional
    candidate = Candidate(conditional, 0.0, passed, info.acceptance, failure)
    return candidate, end if passed else None, info


def _follow(start, momentum, position_at, trajectory):
    """(last position arrived at or None, what the way there was like, a failure or None)."""
    first = lowest = highest = last = energy(start, momentum)
    end, failure = None, None
    gradients = iterations = operations = 0
    try:
        for position, arrived in leapfrog(start, momentum, position_at, trajectory):
            if end is not None:
                operations += end.conditional.prior.cubic_operations
            end, last = position, energy(position, arrived)
            gradients += 1
            iterations += position.conditional.approximation.iterations
            lowest, highest = min(lowest, last), max(highest, last)
            if not highest - lowest < _LARGEST_ENERGY_RANGE:
                break
    except NumericalFailure as error:
        failure, highest = error, np.inf
    given_up = not highest - lowest < _LARGEST_ENERGY_RANGE
    acceptance = 0.0 if given_up else acceptance_probability(-last, -first, 0.0)
    error = np.inf if failure is not None else last - first
    return end, TrajectoryInfo(acceptance, error, gradients, iterations, operations), failure


def energy(position: Position, momentum: np.ndarray) -> float:
    """-log p(theta) Z_q(theta) + |momentum|²/2."""
    return 0.5 * float(momentum @ momentum) - approximate_level(position.conditional)


def pseudo_marginal_hmc(
    rng: np.random.Generator,
    state: State,
    start: Position,
    position_at: Callable[[np.ndarray], Position],
    trajectory: Trajectory,
    n_importance: int,
    *,
    approximate: bool = False,
) -> tuple[State, Position, Info, TrajectoryInfo]:
    """One transition of (theta, f) that leaves the joint posterior invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    state : State
        With ``start.conditional`` as its conditional.
    start, position_at, trajectory
        As in `hamiltonian_proposal`.
    n_importance : int
        N, the size of an importance set.
    approximate : bool
        Leave the second stage out. For the tuning phase only: the chain then targets the
        approximate posterior.

    Returns
    -------
    state : State
    position : Position
        That of the state, for the next transition.
    info : Info
        Of the second stage, with the iterations and cubic operations of the whole.
    trajectory_info : TrajectoryInfo

    References
    ----------
    Christen & Fox (2005), Markov chain Monte Carlo using an approximation, for the two stages;
    Rasmussen (2003), Gaussian processes to speed up hybrid Monte Carlo for expensive Bayesian
    integrals, for trajectories on an approximation.
    """
    before = state.conditional.prior.cubic_operations
    candidate, end, way = hamiltonian_proposal(rng, start, position_at, trajectory)
    state, info = accept_by_estimates(
        rng, state, candidate, n_importance, operations_before=before, approximate=approximate
    )
    info = replace(
        info,
        iterations=way.iterations,
        cubic_operations=info.cubic_operations + way.cubic_operations,
    )
    return state, end if info.accepted else start, info, way
