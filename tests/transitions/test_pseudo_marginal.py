"""Pseudo-marginal MH against an exact posterior, and Geweke's joint-distribution test."""

from dataclasses import dataclass, replace
from functools import partial

import exchangeable
import numpy as np
import pytest
from exchangeable import ExchangeableModel, draw_from_prior, draw_labels
from interleavings import exact_interleaving, naive_interleaving
from stat_checks import LIMIT, assert_within, z_of_chains

from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.transitions import pseudo_marginal
from pymc_pseudomarginal.transitions.proposals import RandomWalk
from pymc_pseudomarginal.transitions.pseudo_marginal import State, pseudo_marginal_mh

WALK = RandomWalk(np.array([[4.0]]))
SCHEMES = {
    "laplace-1": ("laplace", 1, exact_interleaving),
    "laplace-4": ("laplace", 4, exact_interleaving),
    "ep-1": ("ep", 1, exact_interleaving),
    # Retained, weights of Laplace are so heavy-tailed that the errors of means are optimistic.
    "retained-ep-4": ("ep", 4, partial(exact_interleaving, refresh=False)),
    "delayed-laplace-4": ("laplace", 4, partial(exact_interleaving, delayed=True)),
    "delayed-ep-1": ("ep", 1, partial(exact_interleaving, delayed=True)),
}


def start(model, rng):
    theta, f, _ = draw_from_prior(rng)
    return State(model(theta), f)


def run_posterior(approximation, n_importance, interleave, *, draws, seed, model=ExchangeableModel):
    """theta (1, draws) and f (1, draws, n) from the posterior given LABELS."""
    rng = np.random.default_rng(seed)
    model = model(approximation, exchangeable.LABELS)
    state = start(model, rng)
    thetas, latents = [], []
    for _ in range(draws):
        state, _ = interleave(rng, state, model, WALK, n_importance)
        thetas.append(state.conditional.theta[0])
        latents.append(state.f)
    return np.array(thetas)[None], np.array(latents)[None]


def run_geweke(approximation, n_importance, interleave, *, draws, seed):
    """Alternate labels ~ p(y|f) with the transition; the draws must follow the prior."""
    rng = np.random.default_rng(seed)
    theta, f, labels = draw_from_prior(rng)
    thetas, latents = [], []
    for _ in range(draws):
        model = ExchangeableModel(approximation, labels)
        state, _ = interleave(rng, State(model(theta), f), model, WALK, n_importance)
        theta, f = state.conditional.theta, state.f
        labels = draw_labels(rng, f)
        thetas.append(theta[0])
        latents.append(f)
    return np.array(thetas)[None], np.array(latents)[None]


def z_scores(theta, f, expectations):
    draws = exchangeable.test_functions(theta, f)
    return {name: z_of_chains(draws[name], truth) for name, truth in expectations.items()}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_posterior_of_theta_and_f_is_exact(scheme):
    theta, f = run_posterior(*SCHEMES[scheme], draws=4000, seed=1)
    assert_within(z_scores(theta, f, exchangeable.posterior_expectations()))


def test_the_naive_interleaving_fails_the_same_test():
    theta, f = run_posterior("laplace", 4, naive_interleaving, draws=6000, seed=1)
    z = z_scores(theta, f, exchangeable.posterior_expectations())
    assert abs(z["f²/s"]) > LIMIT
    # Its theta is right, which is why the error is easy to miss.
    assert abs(z["theta"]) < LIMIT


@pytest.mark.parametrize("scheme", ["laplace-1", "laplace-4", "ep-1", "delayed-laplace-4"])
def test_geweke_joint_distribution(scheme):
    theta, f = run_geweke(*SCHEMES[scheme], draws=4000, seed=2)
    assert_within(z_scores(theta, f, exchangeable.prior_expectations()))


def test_geweke_finds_the_naive_interleaving():
    theta, f = run_geweke("laplace", 4, naive_interleaving, draws=6000, seed=2)
    z = z_scores(theta, f, exchangeable.prior_expectations())
    assert max(abs(value) for value in z.values()) > 2 * LIMIT


def test_the_approximate_transition_targets_the_approximate_posterior():
    """In the tuning phase theta follows p(theta) Z_q(theta), whatever the noise."""
    rng = np.random.default_rng(3)
    model = ExchangeableModel("laplace", exchangeable.LABELS)
    state, thetas = start(model, rng), []
    for _ in range(4000):
        state, _ = pseudo_marginal_mh(rng, state, model, WALK, 1, approximate=True)
        thetas.append(state.conditional.theta[0])
    grid = np.linspace(-9.0, 10.0, 400)
    at = [model(np.array([t])) for t in grid]
    density = np.exp([c.log_prior + c.approximation.log_marginal for c in at])
    truth = float((grid * density).sum() / density.sum())
    assert abs(z_of_chains(np.array(thetas)[None], truth)) < LIMIT


@dataclass
class TiltedModel(ExchangeableModel):
    """With a first stage that prefers small theta: the second has to make up for it."""

    def __call__(self, theta):
        conditional = super().__call__(theta)
        q = conditional.approximation
        tilted = replace(q, log_marginal=q.log_marginal - 0.5 * theta[0])
        return replace(conditional, approximation=tilted)


def test_a_first_stage_that_is_off_does_not_matter():
    scheme = SCHEMES["delayed-laplace-4"]
    theta, f = run_posterior(*scheme, draws=4000, seed=1, model=TiltedModel)
    assert_within(z_scores(theta, f, exchangeable.posterior_expectations()))


def test_a_second_stage_that_forgets_the_first_is_found_out(monkeypatch):
    """The control: what passed by Z_q must be accepted by the estimates over Z_q."""

    def whole_estimate(conditional, importance, delayed):
        return importance.log_estimate

    monkeypatch.setattr(pseudo_marginal, "_level", whole_estimate)
    scheme = SCHEMES["delayed-laplace-4"]
    theta, f = run_posterior(*scheme, draws=4000, seed=1, model=TiltedModel)
    z = z_scores(theta, f, exchangeable.posterior_expectations())
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT


def test_a_proposal_rejected_in_the_first_stage_costs_no_samples():
    rng = np.random.default_rng(6)
    model = ExchangeableModel("laplace", exchangeable.LABELS)
    state = start(model, rng)
    rejected = 0
    for _ in range(100):
        before = state
        state, info = pseudo_marginal_mh(rng, state, model, WALK, 4, delayed=True)
        if info.log_weight_sd == 0.0:
            rejected += 1
            assert not info.accepted
            assert info.acceptance == 0.0
            assert info.cubic_operations == info.iterations  # no factor of K
            assert state.f is before.f
            assert np.isfinite(info.log_estimate)
    assert 10 < rejected < 90


def test_a_proposal_that_fails_is_rejected_and_recorded():
    rng = np.random.default_rng(0)
    model = ExchangeableModel("laplace", exchangeable.LABELS)
    state = start(model, rng)

    def failing(theta):
        raise NumericalFailure("no factor")

    after, info = pseudo_marginal_mh(rng, state, failing, WALK, 4)
    assert not info.accepted
    assert info.acceptance == 0.0
    assert str(info.failure) == "no factor"
    assert after.conditional is state.conditional
    assert np.isfinite([info.log_estimate, info.log_weight_sd]).all()


def test_without_refreshing_the_estimate_stands_until_an_acceptance():
    rng = np.random.default_rng(5)
    model = ExchangeableModel("laplace", exchangeable.LABELS)
    state = start(model, rng)
    kept = None
    for _ in range(50):
        state, info = pseudo_marginal_mh(rng, state, model, WALK, 4, refresh=False)
        if kept is not None and not info.accepted:
            assert info.log_estimate == kept
        kept = info.log_estimate
        assert any((state.f == sample).all() for sample in state.retained.samples)
