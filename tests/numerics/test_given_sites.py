"""The Gaussian of given sites: its moments, and the weights it leads to."""

import numpy as np
import pytest
from problems import exp_quad

from pymc_pseudomarginal.numerics import (
    DensePrior,
    NoFiniteApproximation,
    expectation_propagation,
    given_sites,
)
from pymc_pseudomarginal.numerics.importance import log_weights
from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood


@pytest.fixture
def problem():
    rng = np.random.default_rng(1)
    n = 7
    prior = DensePrior(rng.standard_normal(n), exp_quad(rng.standard_normal((n, 2)), 2.0, 1.0))
    return prior, ProbitLikelihood(np.sign(rng.standard_normal(n)))


def test_moments_are_those_of_the_product(problem):
    prior, likelihood = problem
    W, nu = np.random.default_rng(2).uniform(0.1, 2.0, (2, 7))
    q = given_sites(prior, likelihood, np.stack([W, nu]))
    inverse = np.linalg.inv(prior.covariance)
    Sigma = np.linalg.inv(inverse + np.diag(W))
    np.testing.assert_allclose(q.mean, Sigma @ (inverse @ prior.mean + nu), rtol=1e-7)
    np.testing.assert_allclose(q.factor.marginal_variances(), np.diagonal(Sigma), rtol=1e-7)
    assert q.prior.cubic_operations == 2  # the factor, and its inverse for the variances
    assert q.log_marginal == pytest.approx(log_weights(q, likelihood, q.mean[None])[0])


def test_with_the_sites_of_ep_it_is_that_of_ep(problem):
    ep = expectation_propagation(*problem)
    q = given_sites(*problem, ep.anchor)
    for name in ("mean", "dual", "precision"):
        np.testing.assert_allclose(getattr(q, name), getattr(ep, name), rtol=1e-12)


def test_a_site_of_negative_precision_has_none(problem):
    sites = np.stack([np.full(7, -0.5), np.zeros(7)])
    q = given_sites(*problem, sites)
    np.testing.assert_array_equal(q.precision, 0.0)
    np.testing.assert_allclose(q.mean, problem[0].mean)


def test_sites_that_are_not_finite_are_a_recorded_failure(problem):
    with pytest.raises(NoFiniteApproximation, match="given sites"):
        given_sites(*problem, np.stack([np.ones(7), np.full(7, np.nan)]))
