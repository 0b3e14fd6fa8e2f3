"""Metropolis-Hastings for theta given some coordinates of f, which stay while theta moves.

Which coordinates stay is the choice of a parameterisation: f itself (`centred`), its
standard normal coordinates (`whitened`), or a noisy copy of f and the coordinates of f given
that copy (`surrogate`). The transition is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics import DensePrior, NumericalFailure
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.transitions.acceptance import acceptance_probability
from pymc_pseudomarginal.transitions.proposals import Proposal


@dataclass(frozen=True)
class Setting:
    """What theta determines.

    Attributes
    ----------
    theta : array, shape (d,)
        On the unconstrained scale.
    log_prior : float
        log p(theta), with the Jacobian and every factor that does not involve f.
    prior : DensePrior
        p(f|theta).
    likelihood : Likelihood
        p(y|f, theta).
    """

    theta: np.ndarray
    log_prior: float
    prior: DensePrior
    likelihood: Likelihood


@dataclass(frozen=True)
class LatentState:
    """(theta, f), where the chain is.

    Attributes
    ----------
    setting : Setting
        At theta.
    f : array, shape (n,)
    """

    setting: Setting
    f: np.ndarray


Coordinates = Callable[[Setting], tuple[np.ndarray, float]]
"""Coordinates that stay: at a theta, they give f and the log density of theirs given theta."""

Parameterisation = Callable[[np.random.Generator, LatentState], Coordinates]
"""Takes the coordinates of the current state, drawing what is auxiliary."""


@dataclass(frozen=True)
class MoveInfo:
    """What one transition did.

    Attributes
    ----------
    accepted : bool
    acceptance : float
        Probability with which the proposal was accepted.
    cubic_operations : int
        Factorisations, inversions and products of n×n matrices.
    failure : NumericalFailure or None
        Why the target is not defined at the proposal, which was then rejected.
    """

    accepted: bool
    acceptance: float
    cubic_operations: int
    failure: NumericalFailure | None = None


def metropolis_given_latent(
    rng: np.random.Generator,
    state: LatentState,
    evaluate: Callable[[np.ndarray], Setting],
    propose: Proposal,
    parameterisation: Parameterisation,
) -> tuple[LatentState, MoveInfo]:
    """One transition of (theta, f) that leaves the joint posterior invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    state : LatentState
    evaluate : callable
        theta -> Setting; raises NumericalFailure where none exists.
    propose : Proposal
    parameterisation : Parameterisation

    References
    ----------
    Yu & Meng (2011), To center or not to center, Journal of Computational and Graphical
    Statistics 20; Filippone, Zhong & Girolami (2013), A comparative evaluation of stochastic
    inference methods for Gaussian process models, Machine Learning 93.
    """
    current = state.setting
    before = current.prior.cubic_operations
    coordinates = parameterisation(rng, state)
    log_current = _log_target(current, state.f, coordinates(current)[1])
    theta, log_proposal_ratio = propose(rng, current.theta)

    acceptance, failure = 0.0, None
    operations = current.prior.cubic_operations - before
    try:
        proposed = evaluate(theta)
        f, log_density = coordinates(proposed)
        log_proposed = _log_target(proposed, f, log_density)
        acceptance = acceptance_probability(log_proposed, log_current, log_proposal_ratio)
        operations += proposed.prior.cubic_operations
    except NumericalFailure as error:
        failure = error

    accepted = bool(rng.uniform() < acceptance)
    if accepted:
        state = LatentState(proposed, f)
    return state, MoveInfo(accepted, acceptance, operations, failure)


def _log_target(setting, f, log_density_of_coordinates):
    with np.errstate(all="ignore"):
        log_likelihood = float(setting.likelihood.log_density(f))
    if np.isnan(log_likelihood):
        raise NumericalFailure("log p(y|f) is not a number.")
    return setting.log_prior + log_likelihood + log_density_of_coordinates
