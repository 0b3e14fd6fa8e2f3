"""The force on theta against differences of the approximate log posterior."""

from functools import cache

import likelihood_cases
import numpy as np
import pytensor
import pytest
import reading_cases

from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.model.force import Force
from pymc_pseudomarginal.numerics import APPROXIMATIONS, NumericalFailure

STEP, TOLERANCE = 1e-4, 5e-7
TIGHT = {"laplace": 1e-24, "ep": 1e-10}
# Of the prior: lengthscales, a mean, a root, factors beside f. Of the likelihood: slopes and
# offsets, noise, cut-points, a dispersion.
PRIORS = ["ard", "linear-mean", "scaled-root", "side-data"]
LIKELIHOODS = ["probit regression", "normal", "ordered probit", "negative binomial"]

both = pytest.mark.parametrize("approximation", APPROXIMATIONS)


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@cache
def case(name):
    """(model as read, theta, theta -> likelihood) of a case of either list."""
    if name in PRIORS:
        read = read_model(reading_cases.CASES[name].build())
        natural = reading_cases.CASES[name].natural
    else:
        read = likelihood_cases.read(name, "rooted")
        natural = {"scale": likelihood_cases.SCALE} | likelihood_cases.CASES[name].parameters
    return read, read.theta_from_natural(natural), read.bind_data()


def converged(read, likelihood_at, approximation, theta):
    run, tight = APPROXIMATIONS[approximation], {"tolerance": TIGHT[approximation]}
    prior, likelihood = read.prior(theta), likelihood_at(theta)
    return run(prior, likelihood, start=run(prior, likelihood, **tight).anchor, **tight)


@both
@pytest.mark.parametrize("name", PRIORS + LIKELIHOODS)
def test_the_force_is_the_gradient_of_the_approximate_log_posterior(name, approximation):
    read, theta, likelihood_at = case(name)

    def level(at):
        q = converged(read, likelihood_at, approximation, at)
        return read.log_prior(at) + q.log_marginal

    q = converged(read, likelihood_at, approximation, theta)
    found = Force(read, approximation)(theta, q, likelihood_at(theta), likelihood_at)
    steps = STEP * np.eye(theta.size)
    expected = [(level(theta + step) - level(theta - step)) / (2.0 * STEP) for step in steps]
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=1e-6)


def test_a_force_that_is_not_finite_is_a_numerical_failure():
    read, theta, likelihood_at = case("ard")
    q = converged(read, likelihood_at, "laplace", theta)
    with pytest.raises(NumericalFailure, match="not finite"):
        Force(read, "laplace")(np.full_like(theta, 800.0), q, likelihood_at(theta), likelihood_at)
