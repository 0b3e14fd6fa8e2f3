"""Fitted proposals: their densities, their ratio, and the posterior that they lead to."""

from dataclasses import dataclass

import exchangeable
import numpy as np
import pytest
from exchangeable import ExchangeableModel
from interleavings import exact_interleaving
from scipy.stats import multivariate_normal, multivariate_t
from stat_checks import LIMIT, assert_within, z_of_independent

from pymc_pseudomarginal.transitions.proposals import (
    FittedOrWalk,
    RandomWalk,
    StudentT,
    expected_acceptance,
)
from pymc_pseudomarginal.transitions.pseudo_marginal import State

FACTOR = np.array([[0.7, 0.0], [-0.4, 1.1]])
CENTRE = np.array([0.3, -1.0])
THETA, NEW = np.array([0.1, 0.9]), np.array([-0.8, 0.2])


def test_densities_are_scipys():
    t = multivariate_t(CENTRE, FACTOR @ FACTOR.T, df=6)
    np.testing.assert_allclose(StudentT(CENTRE, FACTOR).log_density(THETA), t.logpdf(THETA))
    normal = multivariate_normal(THETA, FACTOR @ FACTOR.T)
    np.testing.assert_allclose(RandomWalk(FACTOR).log_density(NEW, THETA), normal.logpdf(NEW))


def test_a_fitted_density_has_the_moments_of_the_draws():
    rng = np.random.default_rng(1)
    draws = CENTRE + rng.standard_normal((5000, 2)) @ FACTOR.T
    fitted = StudentT.fitted(draws)
    np.testing.assert_allclose(fitted.centre, draws.mean(axis=0))
    np.testing.assert_allclose(fitted.factor @ fitted.factor.T, 1.1 * np.cov(draws.T), rtol=1e-4)
    again = np.array([fitted.draw(rng) for _ in range(5000)])
    assert_within({j: z_of_independent(again[:, j], fitted.centre[j]) for j in range(2)})
    # The variance of a t is 6/4 of its scale.
    square = (again[:, 1] - fitted.centre[1]) ** 2
    assert abs(z_of_independent(square, 1.5 * (fitted.factor[1] ** 2).sum())) < LIMIT


def test_draws_that_do_not_differ_still_give_a_density():
    fitted = StudentT.fitted(np.tile(THETA, (30, 1)))
    assert np.isfinite(fitted.log_density(THETA))


def test_the_ratio_is_that_of_the_mixture():
    walk, fitted = RandomWalk(0.5 * FACTOR), StudentT(CENTRE, FACTOR)
    mixture = FittedOrWalk(fitted, walk, share=0.7)
    rng = np.random.default_rng(3)
    for _ in range(20):
        new, log_ratio = mixture(rng, THETA)
        walked = 0.3 * np.exp(walk.log_density(new, THETA))
        back = 0.7 * np.exp(fitted.log_density(THETA)) + walked
        forth = 0.7 * np.exp(fitted.log_density(new)) + walked
        np.testing.assert_allclose(log_ratio, np.log(back / forth))


def test_expected_acceptance_is_that_of_the_independence_sampler():
    """A normal target and proposals of twice its sd, against a simulation."""
    rng = np.random.default_rng(2)
    target, proposed = rng.standard_normal(4000), 2.0 * rng.standard_normal(4000)

    def log_ratio(x):
        return -0.5 * x**2 + 0.125 * x**2

    exact = np.mean(np.exp(np.minimum(0.0, log_ratio(proposed) - log_ratio(target))))
    found = expected_acceptance(log_ratio(target[:300]), log_ratio(proposed[:300]))
    assert abs(found - exact) < 0.05
    assert expected_acceptance(np.zeros(3), np.full(2, -np.inf)) == 0.0
    assert expected_acceptance(np.zeros(3), np.zeros(2)) == 1.0


@dataclass(frozen=True)
class WithoutRatio:
    """The control: a draw that does not depend on theta, accepted as if by a symmetric walk."""

    proposal: FittedOrWalk

    def __call__(self, rng, theta):
        return self.proposal(rng, theta)[0], 0.0


FITTED = FittedOrWalk(StudentT(np.array([1.0]), np.array([[2.5]])), RandomWalk(np.array([[4.0]])))


def run(propose, *, geweke, draws):
    def transition(rng, labels, theta, f):
        model = ExchangeableModel("laplace", labels)
        state, _ = exact_interleaving(rng, State(model(theta), f), model, propose, 4)
        return state.conditional.theta, state.f

    return exchangeable.chain_z_scores(transition, geweke=geweke, draws=draws)


@pytest.mark.parametrize("geweke", [True, False], ids=["geweke", "posterior"])
def test_fitted_proposals_are_exact_for_theta_and_f(geweke):
    assert_within(run(FITTED, geweke=geweke, draws=3000))


@pytest.mark.parametrize("geweke", [True, False], ids=["geweke", "posterior"])
def test_proposals_without_their_ratio_are_found_out(geweke):
    z = run(WithoutRatio(FITTED), geweke=geweke, draws=3000)
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT
