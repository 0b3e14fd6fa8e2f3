"""Annealed importance sampling: unbiased, exact for the current f, and worth its cost.

The statistical tests at fixed theta have controls: samplers that are wrong in one place
and must fail.
"""

from dataclasses import dataclass
from itertools import pairwise

import exchangeable
import numpy as np
import pytest
from exchangeable import draw_from_prior, draw_labels
from interleavings import exact_interleaving
from problems import orthant_log_probability, probit_problem
from scipy.stats import multivariate_normal
from stat_checks import LIMIT, assert_within, z_of_chains, z_of_independent

from pymc_pseudomarginal.numerics import (
    APPROXIMATIONS,
    Approximation,
    DensePrior,
    NoFiniteApproximation,
    importance_set,
    laplace,
)
from pymc_pseudomarginal.numerics.importance import log_weights
from pymc_pseudomarginal.numerics.likelihoods import GaussianLikelihood, ProbitLikelihood
from pymc_pseudomarginal.transitions.annealing import Annealing, PlainImportance
from pymc_pseudomarginal.transitions.proposals import RandomWalk
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional, State


def prior_itself(prior, likelihood):
    """q = p(f): far from the posterior, with the bounded weights p(y|f)."""
    none = np.zeros(prior.size)
    return Approximation(prior, prior.mean, none, prior.condition(none), 0.0, 0, True, none)


QS = APPROXIMATIONS | {"prior": prior_itself}


class WeighsAfterTheMove(Annealing):
    """Wrong: log w of f_1..f_T in place of f_0..f_{T-1}."""

    def _forward(self, rng, approximation, likelihood, f, log_w):
        moved, log_W = super()._forward(rng, approximation, likelihood, f, log_w)
        last = log_weights(approximation, likelihood, moved)
        return moved, log_W + (last - log_w) / self.temperatures


class ForwardFromTheCurrent(Annealing):
    """Wrong: the path of an included f starts there, in place of ending there."""

    def _backward(self, rng, approximation, likelihood, f):
        log_w = log_weights(approximation, likelihood, f)
        return self._forward(rng, approximation, likelihood, f, log_w)[1]


class PlainWeightOfTheCurrent(Annealing):
    """Wrong: an included f has the weight w(f) among annealed ones."""

    def _backward(self, rng, approximation, likelihood, f):
        return log_weights(approximation, likelihood, f)


# Fresh paths: the estimate of p(y).


def z_of_the_estimate(annealing, q, n_importance, *, repetitions):
    """z-score of the mean of independent estimates of an orthant probability."""
    m, K, y, likelihood = probit_problem(5, seed=1, variance=2.0, mean=0.5)
    q = QS[q](DensePrior(m, K), likelihood)
    # All paths in one call: they are independent, whatever set they belong to. A seed of
    # its own for each T, as the paths of one seed start at the same points for all T.
    rng = np.random.default_rng(annealing.temperatures)
    paths = annealing(rng, q, likelihood, repetitions * n_importance)
    estimates = np.exp(paths.log_weights).reshape(repetitions, n_importance).mean(axis=1)
    return z_of_independent(estimates, np.exp(orthant_log_probability(m, K, y)))


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize(
    ("annealing", "n_importance"),
    [(Annealing(1), 4), (Annealing(2), 4), (Annealing(6), 1), (Annealing(3, moves=2), 2)],
)
def test_mean_of_the_estimate_is_the_orthant_probability(q, annealing, n_importance):
    z = z_of_the_estimate(annealing, q, n_importance, repetitions=1000 // n_importance)
    assert abs(z) < LIMIT


def test_weights_taken_after_the_move_would_be_found_out():
    assert z_of_the_estimate(WeighsAfterTheMove(3), "prior", 1, repetitions=600) > 1.5 * LIMIT


def test_one_temperature_has_the_weights_of_importance_sampling():
    m, K, _, likelihood = probit_problem(5, seed=1)
    q = laplace(DensePrior(m, K), likelihood)
    u = np.random.default_rng(0).standard_normal((2, 6, 5))
    plain = PlainImportance()(np.random.default_rng(0), q, likelihood, 6)
    annealed = Annealing(1)(np.random.default_rng(0), q, likelihood, 6)
    np.testing.assert_array_equal(plain.samples, importance_set(q, likelihood, u).samples)
    np.testing.assert_array_equal(annealed.log_weights, plain.log_weights)
    assert not np.isclose(annealed.samples, plain.samples).any()


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("temperatures", [1, 2, 7])
def test_with_a_gaussian_likelihood_every_weight_is_the_marginal_likelihood(
    approximation, temperatures
):
    m, K, _, _ = probit_problem(6, seed=2, mean=1.0)
    rng = np.random.default_rng(0)
    y = rng.standard_normal(6)
    likelihood = GaussianLikelihood(y, 0.5)
    q = APPROXIMATIONS[approximation](DensePrior(m, K), likelihood)
    paths = Annealing(temperatures)(rng, q, likelihood, 5, include=m)
    truth = multivariate_normal(m, K + 0.5 * np.eye(6)).logpdf(y)
    np.testing.assert_allclose(paths.log_weights, truth, rtol=1e-9)


def test_more_temperatures_bring_the_weights_together():
    """Where Laplace's weights are many e-folds apart, annealing makes them usable."""
    m, K, _, likelihood = probit_problem(50, seed=0, d=10, lengthscale=4.0, variance=50.0)
    q = laplace(DensePrior(m, K), likelihood)
    spread = [
        Annealing(temperatures)(np.random.default_rng(1), q, likelihood, 150).log_weights.std()
        for temperatures in (1, 4, 16, 64)
    ]
    print("sd of log W for T = 1, 4, 16, 64:", np.round(spread, 2))
    assert spread[0] > 8.0
    # Each factor of four about halves it; the standard error of such a ratio is 0.05.
    assert all(after < 0.75 * before for before, after in pairwise(spread))
    assert spread[-1] < 0.25 * spread[0]


# The path of the current f, at fixed theta. With a Gaussian likelihood the posterior is
# drawn exactly; q is the posterior of other data, in the wrong place.


class GaussianProblem:
    """f ~ N(m, K), y = f + noise, with p(y), the exact posterior and a q that is off."""

    def __init__(self):
        m, K, _, _ = probit_problem(2, seed=0, mean=1.0)
        y, variance = np.array([1.0, -2.0]), 0.6
        self.likelihood = GaussianLikelihood(y, variance)
        self.q = laplace(DensePrior(m, K), GaussianLikelihood(y + 1.0, variance))
        total = K + variance * np.eye(2)
        gain = K @ np.linalg.inv(total)
        self.mean, self.covariance = m + gain @ (y - m), K - gain @ K
        self.log_marginal = multivariate_normal(m, total).logpdf(y)

    def posterior(self, rng, draws):
        """Independent draws of f, shape (draws, 2)."""
        return rng.multivariate_normal(self.mean, self.covariance, size=draws)


def z_of_the_inverse_weight(annealing, *, draws=1500):
    """1/W of the path of a posterior draw has the mean 1/p(y): the harmonic identity."""
    problem, rng = GaussianProblem(), np.random.default_rng(0)
    inverse = [
        np.exp(-annealing(rng, problem.q, problem.likelihood, 0, include=f).log_weights[0])
        for f in problem.posterior(rng, draws)
    ]
    return z_of_independent(inverse, np.exp(-problem.log_marginal))


def z_of_the_change(annealing, *, draws=2000):
    """A posterior draw with one fresh companion: what is picked has the posterior again.

    The picked are compared with the draws they come from, pair by pair.
    """
    problem, rng = GaussianProblem(), np.random.default_rng(5)
    before = problem.posterior(rng, draws)
    after = np.array(
        [annealing(rng, problem.q, problem.likelihood, 1, include=f).pick(rng) for f in before]
    )
    log_w = [log_weights(problem.q, problem.likelihood, f) for f in (before, after)]
    changes = {
        "f₁": after[:, 0] - before[:, 0],
        "f₂": after[:, 1] - before[:, 1],
        "f₁f₂": after.prod(axis=1) - before.prod(axis=1),
        "log w": log_w[1] - log_w[0],
    }
    return {name: z_of_independent(change, 0.0) for name, change in changes.items()}


@pytest.mark.parametrize("annealing", [Annealing(1), Annealing(6), Annealing(3, moves=2)])
def test_the_inverse_weight_of_a_backward_path_has_the_mean_one_over_p_of_y(annealing):
    assert abs(z_of_the_inverse_weight(annealing)) < LIMIT


def test_a_forward_path_from_the_current_would_be_found_out():
    assert abs(z_of_the_inverse_weight(ForwardFromTheCurrent(8))) > 1.5 * LIMIT


@pytest.mark.parametrize("annealing", [Annealing(1), Annealing(3)])
def test_refreshing_the_companions_keeps_the_posterior(annealing):
    assert_within(z_of_the_change(annealing))


def test_the_plain_weight_among_annealed_ones_would_be_found_out():
    assert z_of_the_change(PlainWeightOfTheCurrent(6))["log w"] > 1.5 * LIMIT


# Theta and f jointly, on the model with exact answers.


@dataclass
class AnnealedModel:
    """theta -> Conditional with annealing as its sampler, on the exchangeable model."""

    annealing: Annealing
    q: str
    labels: np.ndarray

    def __call__(self, theta):
        likelihood = ProbitLikelihood.from_labels(self.labels)
        prior = DensePrior(np.zeros(len(self.labels)), np.exp(theta[0]) * exchangeable.CORRELATION)
        q = QS[self.q](prior, likelihood)
        return Conditional(theta, exchangeable.log_prior(theta), likelihood, q, self.annealing)


WALK = RandomWalk(np.array([[4.0]]))


def run(annealing, q, n_importance, *, draws, seed, geweke=False):
    """theta (1, draws) and f (1, draws, n): given LABELS, or with labels drawn in turn."""
    rng = np.random.default_rng(seed)
    theta, f, _ = draw_from_prior(rng)
    model = AnnealedModel(annealing, q, exchangeable.LABELS)
    state, thetas, latents = State(model(theta), f), [], []
    for _ in range(draws):
        if geweke:
            model = AnnealedModel(annealing, q, draw_labels(rng, state.f))
            state = State(model(state.conditional.theta), state.f)
        state, _ = exact_interleaving(rng, state, model, WALK, n_importance)
        thetas.append(state.conditional.theta[0])
        latents.append(state.f)
    return np.array(thetas)[None], np.array(latents)[None]


def z_scores(theta, f, expectations):
    draws = exchangeable.test_functions(theta, f)
    return {name: z_of_chains(draws[name], truth) for name, truth in expectations.items()}


def test_posterior_of_theta_and_f_is_exact():
    theta, f = run(Annealing(2), "laplace", 2, draws=1200, seed=1)
    assert_within(z_scores(theta, f, exchangeable.posterior_expectations()))


def test_geweke_joint_distribution():
    theta, f = run(Annealing(3), "prior", 1, draws=1200, seed=2, geweke=True)
    assert_within(z_scores(theta, f, exchangeable.prior_expectations()))


# Form and limits.


@pytest.mark.parametrize("sampler", [PlainImportance(), Annealing(3)])
def test_an_included_latent_comes_first_and_the_same_seed_gives_the_same_set(sampler):
    m, K, _, likelihood = probit_problem(9, seed=4)
    q = laplace(DensePrior(m, K), likelihood)
    f = q.mean + 0.1
    first, second = (sampler(np.random.default_rng(3), q, likelihood, 2, f) for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)
    np.testing.assert_array_equal(first.log_weights, second.log_weights)
    assert first.samples.shape == (3, 9)
    np.testing.assert_array_equal(first.samples[0], f)
    assert sampler(np.random.default_rng(3), q, likelihood, 0, f).log_weights.shape == (1,)
    assert sampler(np.random.default_rng(3), q, likelihood, 2).samples.shape == (2, 9)


class BoundedProbit(ProbitLikelihood):
    """Probit labels, and nothing below a bound."""

    bound = -0.4

    def log_density(self, f):
        return np.where((f > self.bound).all(axis=-1), super().log_density(f), -np.inf)


def bounded_problem():
    """A likelihood with w = 0 on a good part of q, and p(y) as an orthant probability."""
    m, K, _, _ = probit_problem(3, seed=0)
    # z = f + noise > 0 and f > bound, jointly normal.
    covariance = np.block([[K + np.eye(3), K], [K, K]])
    lower = np.repeat([0.0, BoundedProbit.bound], 3)
    normal = multivariate_normal(np.zeros(6), covariance, seed=1, maxpts=200_000)
    truth = normal.cdf(np.full(6, np.inf), lower_limit=lower)
    return laplace(DensePrior(m, K), BoundedProbit(np.ones(3))), BoundedProbit(np.ones(3)), truth


def test_a_likelihood_with_bounded_support():
    q, likelihood, truth = bounded_problem()
    paths = Annealing(4)(np.random.default_rng(0), q, likelihood, 1500)
    outside = (paths.samples <= likelihood.bound).any(axis=1)
    assert 0.05 < outside.mean() < 0.95
    np.testing.assert_array_equal(np.isneginf(paths.log_weights), outside)
    assert np.isfinite(paths.log_weights[~outside]).all()
    assert abs(z_of_independent(np.exp(paths.log_weights), truth)) < LIMIT
    assert all(likelihood.bound < paths.pick(np.random.default_rng(i)).min() for i in range(20))


def test_an_included_latent_outside_the_support_has_no_weight():
    q, likelihood, _ = bounded_problem()
    f = np.full(3, -1.0)
    paths = Annealing(4)(np.random.default_rng(0), q, likelihood, 3, include=f)
    np.testing.assert_array_equal(paths.samples[0], f)
    assert paths.log_weights[0] == -np.inf
    alone = Annealing(4)(np.random.default_rng(0), q, likelihood, 0, include=f)
    assert alone.log_estimate == -np.inf


def test_a_weight_that_is_not_finite_on_the_path_is_a_failure():
    class FailsInTheMoves(ProbitLikelihood):
        """Finite for the set of starting points, not for the single ones of the moves."""

        def log_density(self, f):
            return super().log_density(f) if f.ndim == 2 else np.nan

    m, K, _, likelihood = probit_problem(4, seed=0)
    q = laplace(DensePrior(m, K), likelihood)
    with pytest.raises(NoFiniteApproximation):
        Annealing(2)(np.random.default_rng(0), q, FailsInTheMoves(likelihood.signs), 2)


@pytest.mark.parametrize("arguments", [{"temperatures": 0}, {"temperatures": 3, "moves": 0}])
def test_temperatures_and_moves_are_at_least_one(arguments):
    with pytest.raises(ValueError, match="at least one temperature and one move"):
        Annealing(**arguments)
