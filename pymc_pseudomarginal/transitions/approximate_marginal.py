"""Metropolis-Hastings on the approximate marginal likelihood: fast, and not exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.numerics.importance import draw
from pymc_pseudomarginal.transitions.acceptance import acceptance_probability
from pymc_pseudomarginal.transitions.given_latent import MoveInfo
from pymc_pseudomarginal.transitions.proposals import Proposal
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional


def approximate_marginal_mh(
    rng: np.random.Generator,
    current: Conditional,
    evaluate: Callable[[np.ndarray], Conditional],
    propose: Proposal,
) -> tuple[Conditional, np.ndarray, MoveInfo]:
    """Theta by the deterministic log Z_q, then f from q.

    It leaves p(theta) Z_q(theta) q_theta(f) invariant, which is not the posterior.

    Parameters
    ----------
    rng : numpy.random.Generator
    current : Conditional
    evaluate : callable
        theta -> Conditional; raises NumericalFailure where none exists.
    propose : Proposal

    Returns
    -------
    conditional : Conditional
    f : array, shape (n,)
    info : MoveInfo

    References
    ----------
    Filippone & Girolami (2014), section 5.2: MCMC LA and MCMC EP.
    """
    before = current.prior.cubic_operations
    theta, log_proposal_ratio = propose(rng, current.theta)
    acceptance, operations, failure = 0.0, 0, None
    try:
        proposed = evaluate(theta)
        acceptance = acceptance_probability(
            _log_target(proposed), _log_target(current), log_proposal_ratio
        )
        operations = proposed.prior.cubic_operations
    except NumericalFailure as error:
        failure = error
    accepted = bool(rng.uniform() < acceptance)
    kept = proposed if accepted else current
    counted = kept.prior.cubic_operations
    f = draw(kept.approximation, rng.standard_normal((2, 1, kept.prior.size)))[0]
    # The draw factorises K, once for every theta at which the chain stays.
    operations += kept.prior.cubic_operations - (counted if accepted else before)
    return kept, f, MoveInfo(accepted, acceptance, operations, failure)


def _log_target(conditional):
    return conditional.log_prior + conditional.approximation.log_marginal
