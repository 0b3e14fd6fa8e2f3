"""Pseudo-marginal Metropolis-Hastings on theta, exact for (theta, f) jointly.

The extended target is pi(theta, f_1..f_N, k) ∝ p(theta) p(y, f_k|theta)
prod_{j≠k} q_theta(f_j), under which (theta, f_k) has exactly the posterior. A
transition refreshes the companions f_j of the current f, proposes theta' with a new
set of N draws, accepts by the ratio of the mean weights, and takes f from the kept
set with probability proportional to its weights. ``docs/theory.md`` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from pymc_pseudomarginal.numerics import Approximation, DensePrior, ImportanceSet, NumericalFailure
from pymc_pseudomarginal.numerics.importance import log_weights
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.transitions.acceptance import acceptance_probability
from pymc_pseudomarginal.transitions.annealing import PlainImportance, WeightedSampler
from pymc_pseudomarginal.transitions.correlated import correlated_sets
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
        Probability with which the proposal was accepted. In two stages, that of the second,
        or zero where the first rejected.
    log_estimate : float
        Log of the estimate of p(y|theta) at the theta arrived at. Where no set was drawn
        there (tuning, or rejected in a first stage), log w(f) of the current f.
    log_weight_sd : float
        Spread of the proposal's log weights; with a single draw, its distance from
        the approximate log marginal. Zero where none were drawn.
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


@dataclass(frozen=True)
class Candidate:
    """A proposal of theta that waits for the estimates.

    Attributes
    ----------
    conditional : Conditional or None
        At the proposed theta; None where there is none.
    log_proposal_ratio : float
        What the proposal densities add to the acceptance that is still to come.
    passed : bool
        Whether it passed a stage by log Z_q, if there was one.
    acceptance : float
        Probability with which it passed.
    failure : NumericalFailure or None
        Why there is no conditional.
    """

    conditional: Conditional | None
    log_proposal_ratio: float = 0.0
    passed: bool = True
    acceptance: float = 1.0
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
    delayed: bool = False,
    correlation: float = 0.0,
) -> tuple[State, Info]:
    """One transition of (theta, f) that leaves the joint posterior invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    state : State
    evaluate : callable
        theta -> Conditional; raises NumericalFailure where none exists.
    propose : Proposal
        Where it stays at theta, nothing is evaluated and the state is kept.
    n_importance : int
        N, the size of an importance set.
    refresh : bool
        Draw the companions of the current f anew (the default). False retains the
        current set, and with it the estimate, until the next acceptance.
    approximate : bool
        Accept by the deterministic log Z_q in place of the estimates. For the tuning
        phase only: the chain then targets the approximate posterior.
    delayed : bool
        Accept in two stages: by log Z_q, for which no set is drawn and K is not factorised;
        what passes is accepted by the estimates relative to Z_q. The product of the two
        probabilities satisfies detailed balance, so that this is as exact as one stage.
    correlation : float
        Of the standard normals behind the two sets (see `correlated`); needs `refresh` and
        plain importance sampling.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian
    processes, algorithm 1 (``refresh=False``); Andrieu, Doucet & Holenstein (2010),
    Particle Markov chain Monte Carlo, for the extended target; Christen & Fox (2005),
    Markov chain Monte Carlo using an approximation, for the two stages.
    """
    operations_before = state.conditional.prior.cubic_operations
    staged = approximate or delayed
    theta, log_proposal_ratio = propose(rng, state.conditional.theta)
    candidate = Candidate(None, passed=False, acceptance=0.0)
    if not np.array_equal(theta, state.conditional.theta):  # else a filter has stopped it
        if state.retained is None and not staged and not correlation:
            state = replace(state, retained=_current_set(rng, state, n_importance, refresh))
        try:
            candidate = Candidate(evaluate(theta), log_proposal_ratio)
            if staged:
                candidate = _first_stage(rng, state.conditional, candidate)
        except NumericalFailure as failure:
            candidate = replace(candidate, failure=failure)
    return accept_by_estimates(
        rng,
        state,
        candidate,
        n_importance,
        operations_before=operations_before,
        refresh=refresh,
        approximate=approximate,
        delayed=delayed,
        correlation=correlation,
    )


def _first_stage(rng, current, candidate):
    """The candidate after a stage by log Z_q, which its proposal densities are spent on."""
    levels = approximate_level(candidate.conditional), approximate_level(current)
    acceptance = acceptance_probability(*levels, candidate.log_proposal_ratio)
    return Candidate(
        candidate.conditional, passed=bool(rng.uniform() < acceptance), acceptance=acceptance
    )


def accept_by_estimates(
    rng: np.random.Generator,
    state: State,
    candidate: Candidate,
    n_importance: int,
    *,
    operations_before: int,
    refresh: bool = True,
    approximate: bool = False,
    delayed: bool = True,
    correlation: float = 0.0,
) -> tuple[State, Info]:
    """Accept a candidate by the estimates at both ends, and take f from the set that is kept.

    Parameters
    ----------
    rng : numpy.random.Generator
    state : State
    candidate : Candidate
    n_importance : int
    operations_before : int
        Cubic operations done with the current prior when the transition began.
    refresh, approximate, delayed : bool
        As in `pseudo_marginal_mh`. With `delayed` the candidate came by a kernel that is
        reversible with respect to p(theta) Z_q(theta), and the estimates count relative to
        Z_q; with `approximate` they do not count at all.
    correlation : float
        As in `pseudo_marginal_mh`.
    """
    current, kept, proposed = state.conditional, state.retained, candidate.conditional
    proposed_set, failure = None, candidate.failure
    accepted, acceptance = candidate.passed, candidate.acceptance if approximate else 0.0
    try:
        if accepted and correlation and not approximate:
            kept, proposed_set = correlated_sets(
                rng, current, state.f, proposed, n_importance, correlation
            )
        elif accepted:
            proposed_set = proposed.importance_set(rng, n_importance)
        if accepted and not approximate:
            kept = _current_set(rng, state, n_importance, refresh) if kept is None else kept
            acceptance = acceptance_probability(
                _level(proposed, proposed_set, delayed),
                _level(current, kept, delayed),
                candidate.log_proposal_ratio,
            )
            accepted = bool(rng.uniform() < acceptance)
    except NumericalFailure as error:
        failure, accepted, acceptance = error, False, 0.0

    info = Info(
        accepted,
        acceptance,
        _log_estimate(state, proposed_set if accepted else kept),
        0.0 if proposed_set is None else _spread(proposed, proposed_set),
        0 if proposed is None else proposed.approximation.iterations,
        current.prior.cubic_operations
        - operations_before
        + (0 if proposed is None else proposed.prior.cubic_operations),
        failure,
    )
    if accepted:
        current, kept = proposed, proposed_set
    f = state.f if kept is None else kept.pick(rng)
    return State(current, f, None if refresh else kept), info


def _current_set(rng, state, n_importance, refresh):
    if refresh:
        return state.conditional.importance_set(rng, n_importance - 1, include=state.f)
    return state.conditional.importance_set(rng, n_importance)


def approximate_level(conditional: Conditional) -> float:
    """Log of p(theta) Z_q(theta), the target of a first stage."""
    return conditional.log_prior + conditional.approximation.log_marginal


def _level(conditional, importance, delayed):
    """What the estimate adds to the log target: all of it, or what the first stage left."""
    level = importance.log_estimate
    if delayed:
        return level - conditional.approximation.log_marginal
    return level + conditional.log_prior


def _log_estimate(state, importance):
    """Of p(y|theta) by the set at hand; where none was drawn, by f alone."""
    if importance is not None:
        return importance.log_estimate
    q, likelihood = state.conditional.approximation, state.conditional.likelihood
    return float(log_weights(q, likelihood, state.f[None])[0])


def _spread(conditional, importance):
    finite = importance.log_weights[np.isfinite(importance.log_weights)]
    if len(finite) > 1:
        deviations = finite - finite.sum() / len(finite)
        return math.sqrt(deviations @ deviations / len(finite))
    return float(np.abs(finite - conditional.approximation.log_marginal).sum())
