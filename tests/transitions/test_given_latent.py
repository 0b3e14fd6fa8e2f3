"""Theta given coordinates of f: exact posterior, Geweke's test, and wrong variants that fail."""

import exchangeable
import numpy as np
import pytest
from exchangeable import CORRELATION, N_LATENT, draw_from_prior, draw_labels
from problems import probit_problem
from scipy.stats import multivariate_normal
from stat_checks import LIMIT, assert_within, z_of_chains

from pymc_pseudomarginal.numerics import DensePrior, NumericalFailure, RootedPrior
from pymc_pseudomarginal.numerics.likelihoods import GaussianLikelihood, ProbitLikelihood
from pymc_pseudomarginal.transitions.centred import centred
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.given_latent import LatentState, metropolis_given_latent
from pymc_pseudomarginal.transitions.proposals import RandomWalk
from pymc_pseudomarginal.transitions.surrogate import SurrogateSetting, surrogate
from pymc_pseudomarginal.transitions.whitened import whitened

PARAMETERISATIONS = {"centred": centred, "whitened": whitened, "surrogate": surrogate}
# A little more than the width of p(theta|f, y), which is the narrowest.
WALK = RandomWalk(np.array([[2.0]]))


def setting_at(theta, labels):
    prior = DensePrior(np.zeros(N_LATENT), np.exp(theta[0]) * CORRELATION)
    likelihood = ProbitLikelihood.from_labels(labels)
    return SurrogateSetting(theta, exchangeable.log_prior(theta), prior, likelihood)


def transition(rng, theta, f, labels, parameterisation):
    """Theta by Metropolis-Hastings, then f by the elliptical slice."""

    def evaluate(at):
        return setting_at(at, labels)

    state = LatentState(evaluate(theta), f)
    state, info = metropolis_given_latent(rng, state, evaluate, WALK, parameterisation)
    setting = state.setting
    f, _ = elliptical_slice(rng, state.f, setting.prior, setting.likelihood)
    return setting.theta, f, info


def run(parameterisation, *, draws, seed, geweke):
    """theta (1, draws) and f (1, draws, n): the posterior given LABELS, or the prior."""
    rng = np.random.default_rng(seed)
    theta, f, labels = draw_from_prior(rng)
    thetas, latents = [], []
    for _ in range(draws):
        labels = draw_labels(rng, f) if geweke else exchangeable.LABELS
        theta, f, _ = transition(rng, theta, f, labels, parameterisation)
        thetas.append(theta[0])
        latents.append(f)
    return np.array(thetas)[None], np.array(latents)[None]


def z_scores(theta, f, expectations):
    draws = exchangeable.test_functions(theta, f)
    return {name: z_of_chains(draws[name], truth) for name, truth in expectations.items()}


@pytest.mark.parametrize("name", PARAMETERISATIONS)
def test_posterior_of_theta_and_f_is_exact(name):
    theta, f = run(PARAMETERISATIONS[name], draws=8000, seed=1, geweke=False)
    assert_within(z_scores(theta, f, exchangeable.posterior_expectations()))


@pytest.mark.parametrize("name", PARAMETERISATIONS)
def test_geweke_joint_distribution(name):
    theta, f = run(PARAMETERISATIONS[name], draws=8000, seed=2, geweke=True)
    assert_within(z_scores(theta, f, exchangeable.prior_expectations()))


def with_density_times(parameterisation, factor):
    """Wrong: the log density of the coordinates given theta is counted `factor` times."""

    def wrong(rng, state):
        coordinates = parameterisation(rng, state)

        def scaled(setting):
            f, log_density = coordinates(setting)
            return f, factor * log_density

        return scaled

    return wrong


def without_following(rng, state):
    """Wrong: nu stays, but f does not follow it to the new theta."""
    return lambda setting: (state.f, 0.0)


@pytest.mark.parametrize(
    "wrong",
    [with_density_times(centred, 0.0), with_density_times(surrogate, 3.0), without_following],
    ids=["centred", "surrogate", "whitened"],
)
def test_geweke_finds_what_is_wrong(wrong):
    theta, f = run(wrong, draws=6000, seed=2, geweke=True)
    z = z_scores(theta, f, exchangeable.prior_expectations())
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT


def problem(rooted=False):
    """A setting with a mean, and f drawn from its prior."""
    m, K, _, likelihood = probit_problem(6, seed=3, mean=1.0)
    prior = RootedPrior(m, np.linalg.cholesky(K) @ np.diag([1, -1, 1, 1, -1, 1.0]))
    setting = SurrogateSetting(np.zeros(1), 0.0, prior if rooted else DensePrior(m, K), likelihood)
    f = m + setting.prior.colour(np.random.default_rng(5).standard_normal(6))
    return setting, K, f


@pytest.mark.parametrize("rooted", [False, True])
def test_surrogate_formulas(rooted):
    """The density of g, and f given g, as Murray & Adams write them."""
    setting, K, f = problem(rooted)
    S = np.diag(1.0 / setting.noise_precision)
    g = f + 0.3
    zbar = setting.centre(g)
    expected = multivariate_normal(setting.prior.mean, K + S).logpdf(g)
    assert setting.log_density(g, zbar) == pytest.approx(expected)
    R = S - S @ np.linalg.solve(S + K, S)
    root = np.linalg.solve(setting.factor, setting.prior.root.T).T
    np.testing.assert_allclose(root @ root.T, R, rtol=1e-6, atol=1e-10)
    centre = setting.prior.mean + R @ np.linalg.solve(S, g - setting.prior.mean)
    np.testing.assert_allclose(setting.prior.mean + setting.prior.colour(zbar), centre, rtol=1e-6)


def test_surrogate_noise_is_that_of_gaussian_data():
    _, K, f = problem()
    variance = np.linspace(0.2, 3.0, 6)
    likelihood = GaussianLikelihood(f, variance)
    setting = SurrogateSetting(np.zeros(1), 0.0, DensePrior(0 * f, K), likelihood)
    np.testing.assert_allclose(1.0 / setting.noise_precision, variance, rtol=1e-8)


def test_data_that_say_nothing_leave_the_surrogate_next_to_nothing():
    class Flat:
        def tilted_moments(self, mean, variance):
            return (
                ProbitLikelihood(np.ones(6))
                .tilted_moments(mean, variance)
                ._replace(variance=1.5 * variance)
            )

    setting, K, _ = problem()
    flat = SurrogateSetting(np.zeros(1), 0.0, setting.prior, Flat())
    assert np.isfinite(flat.factor).all()
    np.testing.assert_allclose(flat.noise_precision, 1e-6 / np.diag(K))


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("name", PARAMETERISATIONS)
def test_coordinates_lead_back_to_f(name, rooted):
    setting, _, f = problem(rooted)
    same = SurrogateSetting(setting.theta, 0.0, setting.prior, setting.likelihood)
    coordinates = PARAMETERISATIONS[name](np.random.default_rng(0), LatentState(setting, f))
    here, there = coordinates(setting), coordinates(same)
    assert here[0] is f
    np.testing.assert_allclose(there[0], f, rtol=1e-6)
    assert there[1] == pytest.approx(here[1])


@pytest.mark.parametrize("rooted", [False, True])
def test_log_density_of_the_prior(rooted):
    setting, K, f = problem(rooted)
    expected = multivariate_normal(setting.prior.mean, K).logpdf(f)
    assert setting.prior.log_density(f) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "operations"), [("centred", 1), ("whitened", 1), ("surrogate", 3)]
)
def test_cubic_operations_are_those_of_the_paper(name, operations):
    rng = np.random.default_rng(1)
    theta, f, labels = draw_from_prior(rng)
    state = LatentState(setting_at(theta, labels), f)
    counts = []
    for _ in range(10):
        state, info = metropolis_given_latent(
            rng, state, lambda at: setting_at(at, labels), WALK, PARAMETERISATIONS[name]
        )
        counts.append(info.cubic_operations)
    # The first also factorises at the start.
    assert counts == [2 * operations] + 9 * [operations]


def test_a_proposal_that_fails_is_rejected_and_recorded():
    rng = np.random.default_rng(0)
    theta, f, labels = draw_from_prior(rng)
    state = LatentState(setting_at(theta, labels), f)

    def failing(theta):
        raise NumericalFailure("no factor")

    for parameterisation in PARAMETERISATIONS.values():
        after, info = metropolis_given_latent(rng, state, failing, WALK, parameterisation)
        assert after is state
        assert info.acceptance == 0.0
        assert str(info.failure) == "no factor"
