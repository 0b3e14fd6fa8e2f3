"""Fitted proposals: their densities, their ratio, and the posterior that they lead to."""

from dataclasses import dataclass, replace

import exchangeable
import numpy as np
import pytest
from exchangeable import ExchangeableModel
from interleavings import exact_interleaving
from scipy.stats import multivariate_t
from stat_checks import LIMIT, assert_within, z_of_independent

from pymc_pseudomarginal.transitions.fitted_density import FittedDensity
from pymc_pseudomarginal.transitions.proposals import (
    FilteredWalk,
    FittedOrWalk,
    RandomWalk,
    expected_acceptance,
)
from pymc_pseudomarginal.transitions.pseudo_marginal import State
from pymc_pseudomarginal.transitions.student_t import StudentT

FACTOR = np.array([[0.7, 0.0], [-0.4, 1.1]])
CENTRE = np.array([0.3, -1.0])
THETAS = np.array([[0.1, 0.9], [-0.8, 0.2]])


def skewed_log_density(thetas):
    """Of a density that no t resembles, up to a constant, at thetas of shape (m, 2)."""
    x, y = thetas.T
    return -np.exp(x) + 1.5 * x - 0.5 * (y - 0.3 * x**2) ** 2


def skewed_fit(rng, count=64):
    """A density fitted to it from draws of a wide normal, and further values of it."""
    base = StudentT(np.array([0.0, 0.3]), np.diag([0.9, 1.1]))
    thetas = base.draw(rng, count)
    return FittedDensity.fitted(base, thetas, skewed_log_density(thetas) + 7.0)


def test_the_density_of_a_t_is_scipys():
    t = multivariate_t(CENTRE, FACTOR @ FACTOR.T, df=6)
    np.testing.assert_allclose(StudentT(CENTRE, FACTOR).log_density(THETAS), t.logpdf(THETAS))


def test_a_fitted_t_has_the_moments_of_the_draws():
    rng = np.random.default_rng(1)
    draws = CENTRE + rng.standard_normal((5000, 2)) @ FACTOR.T
    fitted = StudentT.fitted(draws)
    np.testing.assert_allclose(fitted.centre, draws.mean(axis=0))
    np.testing.assert_allclose(fitted.factor @ fitted.factor.T, 1.1 * np.cov(draws.T), rtol=1e-4)
    again = fitted.draw(rng, 5000)
    assert_within({j: z_of_independent(again[:, j], fitted.centre[j]) for j in range(2)})
    # The variance of a t is 6/4 of its scale.
    square = (again[:, 1] - fitted.centre[1]) ** 2
    assert abs(z_of_independent(square, 1.5 * (fitted.factor[1] ** 2).sum())) < LIMIT


def test_draws_that_do_not_differ_still_give_a_density():
    fitted = StudentT.fitted(np.tile(THETAS[0], (30, 1)))
    assert np.isfinite(fitted.log_density(THETAS)).all()


def test_the_fitted_density_is_the_target_between_the_points():
    rng = np.random.default_rng(2)
    fitted = skewed_fit(rng)
    thetas = np.array([0.0, 0.3]) + 0.7 * rng.standard_normal((200, 2))
    error = fitted.log_density(thetas) - skewed_log_density(thetas)
    assert np.std(error) < 0.1
    # Left-out values are predicted about as well, and the t alone is far off.
    assert np.median(np.abs(fitted.errors)) < 0.1
    alone = fitted.base.log_density(thetas) - skewed_log_density(thetas)
    assert np.std(alone) > 5.0 * np.std(error)


def test_what_is_not_known_is_rather_too_high():
    """Where a density is too low a chain would stick."""
    rng = np.random.default_rng(2)
    fitted = skewed_fit(rng)
    assert (fitted.correction(5.0 * rng.standard_normal((500, 2))) <= 0.0).all()
    far = fitted.correction(np.array([[30.0, 0.0], [0.0, -30.0]]))
    assert (far > np.median(fitted.correction(fitted.depth.points))).all()
    thetas = fitted.base.draw(rng, 2000)
    error = fitted.log_density(thetas) - skewed_log_density(thetas)
    assert np.mean(error - np.median(error) < -0.5) < 0.01


def test_proposals_leave_the_fitted_density_invariant():
    """Draws of g by rejection, moved by the proposal, still have the moments of g."""
    rng = np.random.default_rng(4)
    fitted = skewed_fit(rng)
    z = fitted.base.draw_standardised(rng, 60_000)
    accepted = np.log(rng.uniform(size=len(z))) < fitted.correction(z)
    kept = fitted.base.at(z[accepted])
    start, new = kept[:4000], kept[4000:]
    assert len(new) > 3000
    moved = np.array([fitted(rng, theta)[0] for theta in start])
    assert np.mean((moved != start).any(axis=1)) > 0.9
    for j in range(2):
        for power in (1, 2):
            difference = np.mean(moved[:, j] ** power) - np.mean(new[:, j] ** power)
            sd = np.sqrt(
                np.var(moved[:, j] ** power) / len(moved) + np.var(new[:, j] ** power) / len(new)
            )
            assert abs(difference / sd) < LIMIT


def test_the_ratio_is_that_of_the_fitted_density():
    rng = np.random.default_rng(3)
    fitted = skewed_fit(rng)
    both = FittedOrWalk(fitted, RandomWalk(0.1 * FACTOR), share=0.5)
    walked = 0
    for _ in range(40):
        new, log_ratio = both(rng, THETAS[0])
        here, there = fitted.log_density(np.stack([THETAS[0], new]))
        walked += log_ratio == 0.0
        # Rounding in the inverse of a correlation matrix, which has a ridge of 1e-6.
        assert log_ratio == 0.0 or log_ratio == pytest.approx(here - there, abs=1e-6)
    assert 8 < walked < 32


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

    proposal: FittedOrWalk | FilteredWalk

    def __call__(self, rng, theta):
        return self.proposal(rng, theta)[0], 0.0


def fitted_to_the_prior():
    """A proposal whose density differs from any posterior of the exchangeable model."""
    base = StudentT(np.array([1.0]), np.array([[2.5]]))
    thetas = np.linspace(-4.0, 6.0, 12)[:, None]
    log_densities = -0.5 * (thetas[:, 0] / 2.0) ** 2
    fitted = FittedDensity.fitted(base, thetas, log_densities)
    return FittedOrWalk(fitted, RandomWalk(np.array([[4.0]])), share=0.8)


FITTED = fitted_to_the_prior()


def run(propose, *, geweke, draws):
    def transition(rng, labels, theta, f):
        model = ExchangeableModel("laplace", labels)
        state, _ = exact_interleaving(rng, State(model(theta), f), model, propose, 4)
        return state.conditional.theta, state.f

    return exchangeable.chain_z_scores(transition, geweke=geweke, draws=draws)


FILTERED = FilteredWalk(RandomWalk(np.array([[3.0]])), FITTED.fitted, share=0.9)
PROPOSALS = pytest.mark.parametrize("propose", [FITTED, FILTERED], ids=["fitted", "filtered"])
GEWEKE = pytest.mark.parametrize("geweke", [True, False], ids=["geweke", "posterior"])


@PROPOSALS
@GEWEKE
def test_fitted_proposals_are_exact_for_theta_and_f(propose, geweke):
    # A walk takes longer to where the errors of its means can be told.
    assert_within(run(propose, geweke=geweke, draws=3000 if propose is FITTED else 8000))


@pytest.mark.parametrize(
    "propose", [FITTED, replace(FILTERED, share=1.0)], ids=["fitted", "filtered"]
)
@GEWEKE
def test_proposals_without_their_ratio_are_found_out(propose, geweke):
    z = run(WithoutRatio(propose), geweke=geweke, draws=3000)
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT
