"""Correlated importance sets: exact for theta and f, and closer to each other.

The transition runs by itself: elliptical slices behind it would repair what is wrong with f.
With the prior as q the weights are bounded, and z-scores can be trusted.
"""

from dataclasses import replace
from functools import partial

import exchangeable
import numpy as np
import pytest
from exchangeable import ExchangeableModel
from stat_checks import LIMIT, assert_within

from pymc_pseudomarginal.numerics import Approximation
from pymc_pseudomarginal.transitions import correlated
from pymc_pseudomarginal.transitions.correlated import correlated_sets
from pymc_pseudomarginal.transitions.proposals import RandomWalk
from pymc_pseudomarginal.transitions.pseudo_marginal import State, pseudo_marginal_mh

WALK = RandomWalk(np.array([[3.0]]))


def poor_conditional(labels, theta):
    """With the prior in the place of an approximation: q knows nothing of the labels."""
    exact = ExchangeableModel("laplace", labels)(theta)
    prior, none = exact.prior, np.zeros(exchangeable.N_LATENT)
    q = Approximation(prior, prior.mean, none, prior.condition(none), 0.0, 0, True, none)
    return replace(exact, approximation=q)


def run(n_importance, *, geweke, draws=3000, **options):
    def transition(rng, labels, theta, f):
        model = partial(poor_conditional, labels)
        state, _ = pseudo_marginal_mh(
            rng, State(model(theta), f), model, WALK, n_importance, correlation=0.9, **options
        )
        return state.conditional.theta, state.f

    return exchangeable.chain_z_scores(transition, geweke=geweke, draws=draws)


@pytest.mark.parametrize("geweke", [True, False], ids=["geweke", "posterior"])
@pytest.mark.parametrize(("n_importance", "delayed"), [(1, False), (4, True)])
def test_correlated_sets_are_exact_for_theta_and_f(n_importance, delayed, geweke):
    assert_within(run(n_importance, geweke=geweke, delayed=delayed))


def test_normals_of_too_little_spread_are_found_out(monkeypatch):
    """The control: a step that does not leave the normals standard."""
    monkeypatch.setattr(correlated, "crank_nicolson", lambda u, fresh, r: r * u + (1 - r) * fresh)
    z = run(1, geweke=False)
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT


def test_estimates_from_correlated_normals_are_closer():
    model = ExchangeableModel("laplace", exchangeable.LABELS)
    here, there = model(np.array([3.0])), model(np.array([3.2]))
    rng = np.random.default_rng(1)

    def spread(correlation):
        pairs = [
            correlated_sets(rng, here, here.approximation.mean, there, 4, correlation)
            for _ in range(300)
        ]
        return np.std([new.log_estimate - kept.log_estimate for kept, new in pairs])

    assert spread(0.99) < 0.5 * spread(0.0)
