"""Pseudo-marginal Metropolis-Hastings on theta, exact for (theta, f) jointly.

The extended target is pi(theta, f_1..f_N, k) ∝ p(theta) p(y, f_k|theta)
prod_{j≠k} q_theta(f_j), under which (theta, f_k) has exactly the posterior. A
transition refreshes the companions f_j of the current f, proposes theta' with a new
set of N draws, accepts by the ratio of the mean weights, and takes f from the kept
set with probability proportional to its weights. ``docs/theory.md`` has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pymc_pseudomarginal.numerics import Approximation, DensePrior, ImportanceSet, NumericalFailure
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.transitions.acceptance import acceptance_probability
from pymc_pseudomarginal.transitions.annealing import PlainImportance, WeightedSampler
from pymc_pseudomarginal.transitions.proposals import Proposal


@dataclass(frozen=True)
class Conditional:
    """What is known of f at one theta.

    Attributes
    ----------
    theta : array, shape (d,)
        On the unconstrained scale.
    log_prior : float
        log p(theta), the Jacobian of the transforms included, and every factor of
        the model that does not involve f.
    likelihood : Likelihood
        p(y|f, theta).
    approximation : Approximation
        q_theta. It must depend on theta alone, never on the history of the chain.
    sampler : WeightedSampler
        How latent vectors with unbiased weights come of q.
    """

    theta: np.ndarray
    log_prior: float
    likelihood: Likelihood
    approximation: Approximation
    sampler: WeightedSampler = field(default_factory=PlainImportance)

    @property
    def prior(self) -> DensePrior:
        """p(f|theta)."""
        return self.approximation.prior

    def importance_set(
        self, rng: np.random.Generator, n_draws: int, include: np.ndarray | None = None
    ) -> ImportanceSet:
        """A set of fresh draws, with `include` as its first member if given."""
        return self.sampler(rng, self.approximation, self.likelihood, n_draws, include)


@dataclass(frozen=True)
class State:
    """Where the chain is.

    Attributes
    ----------
    conditional : Conditional
        At the current theta.
    f : array, shape (n,)
    retained : ImportanceSet or None
        The set whose estimate stands until the next acceptance. Only without
        refreshing (Algorithm 1 of the paper); otherwise (theta, f) is all there is.
    """

    conditional: Conditional
    f: np.ndarray
    retained: ImportanceSet | None = None


@dataclass(frozen=True)
class Info:
    """What one transition did.

    Attributes
    ----------
    accepted : bool
    acceptance : float
        Probability with which the proposal was accepted.
    log_estimate : float
        Log of the estimate of p(y|theta) at the theta arrived at.
    log_weight_sd : float
        Spread of the proposal's log weights; with a single draw, its distance from
        the approximate log marginal. Zero where the proposal failed.
    iterations : int
        Newton iterations or EP sweeps for the proposal.
    cubic_operations : int
        Factorisations and inversions of n×n matrices.
    failure : NumericalFailure or None
        Why no finite estimate exists at the proposal, which was then rejected.
    """

    accepted: bool
    acceptance: float
    log_estimate: float
    log_weight_sd: float
    iterations: int
    cubic_operations: int
    failure: NumericalFailure | None = None


def pseudo_marginal_mh(
    rng: np.random.Generator,
    state: State,
    evaluate: Callable[[np.ndarray], Conditional],
    propose: Proposal,
    n_importance: int,
    *,
    refresh: bool = True,
    approximate: bool = False,
) -> tuple[State, Info]:
    """One transition of (theta, f) that leaves the joint posterior invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    state : State
    evaluate : callable
        theta -> Conditional; raises NumericalFailure where none exists.
    propose : Proposal
    n_importance : int
        N, the size of an importance set.
    refresh : bool
        Draw the companions of the current f anew (the default). False retains the
        current set, and with it the estimate, until the next acceptance.
    approximate : bool
        Accept by the deterministic log Z_q in place of the estimates. For the tuning
        phase only: the chain then targets the approximate posterior.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian
    processes, algorithm 1 (``refresh=False``); Andrieu, Doucet & Holenstein (2010),
    Particle Markov chain Monte Carlo, for the extended target.
    """
    current = state.conditional
    operations_before = current.prior.cubic_operations
    kept = state.retained
    if kept is None:
        companions = n_importance - 1 if refresh else n_importance
        kept = current.importance_set(rng, companions, include=state.f if refresh else None)
    theta, log_proposal_ratio = propose(rng, current.theta)

    acceptance, log_weight_sd, iterations, failure = 0.0, 0.0, 0, None
    operations = current.prior.cubic_operations - operations_before
    try:
        proposed = evaluate(theta)
        proposed_set = proposed.importance_set(rng, n_importance)
        acceptance = acceptance_probability(
            proposed.log_prior + _level(proposed, proposed_set, approximate),
            current.log_prior + _level(current, kept, approximate),
            log_proposal_ratio,
        )
        log_weight_sd = _spread(proposed, proposed_set)
        iterations = proposed.approximation.iterations
        operations += proposed.prior.cubic_operations
    except NumericalFailure as error:
        failure = error

    accepted = bool(rng.uniform() < acceptance)
    if accepted:
        current, kept = proposed, proposed_set
    info = Info(
        accepted, acceptance, kept.log_estimate, log_weight_sd, iterations, operations, failure
    )
    return State(current, kept.pick(rng), None if refresh else kept), info


def _level(conditional, importance, approximate):
    return conditional.approximation.log_marginal if approximate else importance.log_estimate


def _spread(conditional, importance):
    finite = importance.log_weights[np.isfinite(importance.log_weights)]
    if len(finite) > 1:
        return float(np.std(finite))
    return float(np.abs(finite - conditional.approximation.log_marginal).sum())
