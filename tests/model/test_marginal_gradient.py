"""Gradients of log Z_q in theta against differences of log Z_q and against closed forms."""

from functools import cache

import likelihood_cases
import numpy as np
import pymc as pm
import pytensor
import pytest
import reading_cases
from models import add_gp, gp_probit, inputs, side_data_probit
from problems import exp_quad
from scipy.stats import gamma, multivariate_normal, norm

from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.model.marginal_gradient import MarginalGradient, MarginalObjective
from pymc_pseudomarginal.numerics import APPROXIMATIONS, NumericalFailure

# log Z is good to about 1e-12, and its third derivatives are of order ten at most.
STEP, TOLERANCE = 1e-4, 2e-7
TIGHT = {"laplace": 1e-24, "ep": 1e-10}

PRIORS = [
    "whitened",
    "centred",
    "ard",
    "linear-mean",
    "scaled-root",
]
LIKELIHOODS = [
    "logit",
    "poisson",
    "negative binomial",
    "ordered probit",
]

both = pytest.mark.parametrize("approximation", APPROXIMATIONS)


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@cache
def by_prior(name):
    """(model as read, theta) of a case of `reading_cases`."""
    case = reading_cases.CASES[name]
    read = read_model(case.build())
    return read, read.theta_from_natural(case.natural)


@cache
def by_likelihood(name, parameterisation="rooted"):
    """(model as read, theta) of a case of `likelihood_cases`."""
    read = likelihood_cases.read(name, parameterisation)
    natural = {"scale": likelihood_cases.SCALE} | likelihood_cases.CASES[name].parameters
    return read, read.theta_from_natural(natural)


def differences(function, theta):
    """Gradient of a scalar function by central differences, shape (d,)."""
    return np.array(
        [
            (function(theta + step) - function(theta - step)) / (2.0 * STEP)
            for step in STEP * np.eye(theta.size)
        ]
    )


def check_gradient(read, theta, approximation, tolerance=TOLERANCE):
    bound = read.bind_data()

    def log_marginal(at):
        run, tight = APPROXIMATIONS[approximation], {"tolerance": TIGHT[approximation]}
        likelihood = bound(at)
        q = run(read.prior(at), likelihood, **tight)
        return run(read.prior(at), likelihood, start=q.anchor, **tight).log_marginal

    value, gradient = MarginalGradient(read, approximation)(theta)
    assert value == pytest.approx(log_marginal(theta), abs=1e-9)
    assert gradient.shape == theta.shape
    np.testing.assert_allclose(gradient, differences(log_marginal, theta), atol=tolerance)


@both
@pytest.mark.parametrize("name", PRIORS)
def test_parameters_of_the_prior(name, approximation):
    check_gradient(*by_prior(name), approximation)


@both
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_parameters_of_the_likelihood(name, approximation):
    check_gradient(*by_likelihood(name), approximation)


@both
def test_sites_that_want_a_negative_precision(approximation):
    read, theta = by_likelihood("student t")
    original = read.model["data"].get_value()
    far = np.array([9.0, 0.4, -7.0])
    read.model["data"].set_value(far)
    try:
        q = MarginalGradient(read, approximation).approximate(theta)
        assert (q.precision == 0.0).any()
        # Quadrature places its nodes anew at every theta, which shows in the tenth digit.
        check_gradient(read, theta, approximation, tolerance=2e-5)
    finally:
        read.model["data"].set_value(original)


Y = np.sin(3.0 * inputs()[:, 0]) + 0.3


@cache
def gaussian_regression():
    with pm.Model() as model:
        ls, noise = pm.Gamma("ls", 2.0, 2.0), pm.HalfNormal("noise", 1.0)
        mean = pm.gp.mean.Constant(pm.Normal("level", 0.0, 1.0))
        f = add_gp(pm.gp.cov.ExpQuad(1, ls=ls), inputs(), mean=mean)
        pm.Normal("y", f, noise, observed=Y)
    return read_model(model)


@both
def test_a_gaussian_likelihood_has_the_closed_form(approximation):
    read = gaussian_regression()
    theta = read.theta_from_natural({"ls": 0.4, "noise": 0.3, "level": -0.2})

    def closed_form(at):
        ls, noise, level = np.exp(at[0]), np.exp(at[1]), at[2]
        K = exp_quad(inputs(), ls, 1.0) + noise**2 * np.eye(len(Y))
        return multivariate_normal(np.full(len(Y), level), K).logpdf(Y)

    value, gradient = MarginalGradient(read, approximation)(theta)
    assert value == pytest.approx(closed_form(theta), abs=1e-9)
    np.testing.assert_allclose(gradient, differences(closed_form, theta), atol=TOLERANCE)


def test_only_parameters_of_the_likelihood_are_differenced():
    count = {}
    for read, theta in (by_prior("linear-mean"), by_likelihood("negative binomial")):
        marginal = MarginalGradient(read, "laplace")
        likelihood_at, thetas = marginal._likelihood_at, []

        def spy(at, likelihood_at=likelihood_at, thetas=thetas):
            thetas.append(at)
            return likelihood_at(at)

        marginal._likelihood_at = spy
        marginal(theta)
        count[len(theta)] = len(thetas)
    assert count == {4: 1, 2: 3}  # one and, for the dispersion alone, two more


def test_what_is_beside_f_and_the_prior_are_added():
    read = read_model(side_data_probit())
    theta = read.theta_from_natural({"ls": 0.4, "sigma": 1.5})
    marginal, _ = MarginalGradient(read, "ep")(theta)
    beside = norm(0.4, 0.1).logpdf([0.5, 0.6]).sum() - 1.5**2
    prior = gamma(2.0, scale=0.5).logpdf(0.4) + gamma(2.0).logpdf(1.5)
    objective = MarginalObjective(read, "ep", with_prior=True)
    value, gradient = objective(theta)
    # PyMC's constant log(2 pi) has nine digits.
    assert value == pytest.approx(marginal + beside + prior, abs=1e-7)
    assert objective.log_prior(theta) == pytest.approx(prior)
    expected = differences(lambda at: objective(at)[0], theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@both
def test_noise_so_small_that_rounding_spoils_the_value_is_refused(approximation):
    marginal = MarginalGradient(gaussian_regression(), approximation)
    with pytest.raises(NumericalFailure, match=r"too narrow|does not converge"):
        marginal(np.array([-1.0, -11.0, 0.0]))


@both
def test_extreme_theta_fails_by_a_numerical_failure(approximation):
    objective = MarginalObjective(read_model(gp_probit()), approximation, with_prior=False)
    for theta in (np.array([0.0, 800.0]), np.array([np.nan, 0.0])):
        with pytest.raises(NumericalFailure):
            objective(theta)


def test_a_covariance_that_is_none_is_refused_and_one_that_lost_digits_is_not():
    with pm.Model() as model:
        rho = pm.Normal("rho", 0.0, 1.0)
        K = np.eye(3) + rho * (np.eye(3, k=1) + np.eye(3, k=-1))
        f = pm.MvNormal("f", np.zeros(3), cov=K)
        pm.Poisson("y", pm.math.exp(f), observed=[0, 2, 1])
    marginal = MarginalGradient(read_model(model), "laplace")
    # The smallest eigenvalue is 1 - sqrt(2) |rho|.
    singular = np.array([np.sqrt(0.5) * (1.0 + 1e-12)])
    value, gradient = marginal(singular)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    with pytest.raises(NumericalFailure, match="not positive definite"):
        marginal(np.array([0.72]))
