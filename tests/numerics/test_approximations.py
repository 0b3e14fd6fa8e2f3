"""Laplace and EP against independent computations."""

import numpy as np
import pytest
from problems import orthant_log_probability, probit_problem
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from pymc_pseudomarginal.numerics import (
    APPROXIMATIONS,
    DensePrior,
    NumericalFailure,
    ep_gradient,
    expectation_propagation,
    importance_set,
    laplace,
    laplace_gradient,
)
from pymc_pseudomarginal.numerics.likelihoods import GaussianLikelihood

BOTH = pytest.mark.parametrize("approximate", APPROXIMATIONS.values(), ids=APPROXIMATIONS.keys())


def test_laplace_is_the_gaussian_at_the_mode():
    m, K, _, likelihood = probit_problem(6, seed=1, mean=0.5)
    q = laplace(DensePrior(m, K), likelihood)
    K_inverse = np.linalg.inv(K)

    def negative(f):
        return -likelihood.log_density(f) + 0.5 * (f - m) @ K_inverse @ (f - m)

    mode = minimize(negative, m, method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(q.mean, mode, atol=1e-5)
    np.testing.assert_allclose(q.precision, likelihood.derivatives(mode)[1], atol=1e-5)
    hessian = K_inverse + np.diag(q.precision)
    expected = -negative(mode) - 0.5 * np.linalg.slogdet(K @ hessian)[1]
    assert q.log_marginal == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(q.dual, K_inverse @ (q.mean - m), atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_ep_is_close_to_the_orthant_probability(seed):
    # EP's own error grows with the prior variance: about 0.005 nat at 1, 0.02 at 4.
    m, K, y, likelihood = probit_problem(6, seed=seed, variance=1.0, mean=0.5)
    q = expectation_propagation(DensePrior(m, K), likelihood)
    assert q.log_marginal == pytest.approx(orthant_log_probability(m, K, y), abs=0.01)


def test_ep_matches_the_moments_of_the_tilted_distributions():
    m, K, _, likelihood = probit_problem(30, seed=3, variance=10.0)
    q = expectation_propagation(DensePrior(m, K), likelihood, tolerance=1e-8)
    W, nu = q.anchor
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(W))
    variance = np.diag(Sigma)
    np.testing.assert_allclose(q.mean, Sigma @ (nu - W * m) + m, atol=1e-5)
    cavity_variance = 1 / (1 / variance - W)
    cavity_mean = cavity_variance * (q.mean / variance - nu)
    tilted = likelihood.tilted_moments(cavity_mean, cavity_variance)
    np.testing.assert_allclose(tilted.mean, q.mean, atol=1e-6)
    np.testing.assert_allclose(tilted.variance, variance, rtol=1e-5)


@BOTH
def test_a_gaussian_likelihood_is_solved_exactly_with_equal_weights(approximate):
    m, K, _, _ = probit_problem(8, seed=5, mean=1.0)
    rng = np.random.default_rng(0)
    y, variance = rng.standard_normal(8), rng.uniform(0.2, 2.0, 8)
    likelihood = GaussianLikelihood(y, variance)
    exact = multivariate_normal(m, K + np.diag(variance)).logpdf(y)
    q = approximate(DensePrior(m, K), likelihood)
    samples = importance_set(q, likelihood, rng.standard_normal((2, 5, 8)))
    assert q.log_marginal == pytest.approx(exact, abs=1e-9)
    np.testing.assert_allclose(samples.log_weights, exact, atol=1e-9)


@BOTH
def test_the_answer_does_not_depend_on_where_it_starts(approximate):
    m, K, _, likelihood = probit_problem(25, seed=2, variance=20.0)
    cold = approximate(DensePrior(m, K), likelihood)
    other = approximate(DensePrior(m, 0.2 * K), likelihood).anchor
    warm = approximate(DensePrior(m, K), likelihood, start=other)
    again = approximate(DensePrior(m, K), likelihood, start=cold.anchor)
    assert warm.log_marginal == pytest.approx(cold.log_marginal, abs=2e-3)
    assert again.iterations <= 2


def test_laplace_starts_from_zero_where_the_anchor_is_worse():
    m, K, _, likelihood = probit_problem(25, seed=2)
    cold = laplace(DensePrior(m, K), likelihood)
    bad = laplace(DensePrior(m, K), likelihood, start=np.full(25, 1e8))
    np.testing.assert_array_equal(bad.mean, cold.mean)


def test_laplace_near_its_start_needs_one_factorisation():
    m, K, _, likelihood = probit_problem(25, seed=2)
    mode = laplace(DensePrior(m, K), likelihood).mean
    prior = DensePrior(m, K)
    q = laplace(prior, likelihood, start=mode + 0.05, chord_tolerance=1e-3)
    assert (q.iterations, prior.cubic_operations, q.converged) == (1, 1, True)
    np.testing.assert_allclose(q.mean, mode, atol=1e-4)


def test_laplace_from_a_guess_that_overflows_starts_at_the_prior_mean():
    m, K, _, likelihood = probit_problem(25, seed=2)
    q = laplace(DensePrior(m, K), likelihood, start=np.full(25, np.nan))
    np.testing.assert_array_equal(q.mean, laplace(DensePrior(m, K), likelihood).mean)


@BOTH
@pytest.mark.parametrize("variance", [1e-6, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("lengthscale", [1e-3, 1.0, 1e3])
def test_extreme_covariances_give_a_finite_gaussian(approximate, variance, lengthscale):
    m, K, _, likelihood = probit_problem(20, seed=4, variance=variance, lengthscale=lengthscale)
    try:
        q = approximate(DensePrior(m, K), likelihood)
        samples = importance_set(
            q, likelihood, np.random.default_rng(0).standard_normal((2, 3, 20))
        )
    except NumericalFailure:
        return  # a typed failure is an answer too
    assert np.isfinite(q.log_marginal)
    assert np.isfinite(samples.log_weights).all()


@BOTH
@pytest.mark.parametrize("log_scale", range(-40, 61, 10))
def test_a_distant_start_gives_a_finite_gaussian_or_a_typed_failure(approximate, log_scale):
    m, K, _, likelihood = probit_problem(5, seed=0)
    anchor = approximate(DensePrior(m, K), likelihood).anchor
    try:
        q = approximate(DensePrior(m, np.exp(log_scale) * K), likelihood, start=anchor)
    except NumericalFailure:
        return
    assert np.isfinite(q.log_marginal)
    assert np.isfinite(q.mean).all()


@BOTH
def test_not_a_number_in_the_covariance_is_a_typed_failure(approximate):
    m, K, _, likelihood = probit_problem(6, seed=0)
    K[2, 2] = np.nan
    with pytest.raises(NumericalFailure):
        approximate(DensePrior(m, K), likelihood)


@BOTH
def test_an_approximation_that_did_not_converge_is_returned_as_such(approximate):
    m, K, _, likelihood = probit_problem(30, seed=3, variance=50.0)
    q = approximate(DensePrior(m, K), likelihood, max_iterations=2)
    assert not q.converged
    assert q.iterations == 2
    # Its weights are computed with the same q, so that they are still consistent.
    np.testing.assert_allclose(q.dual @ K, q.mean - m, atol=1e-8)


@pytest.mark.parametrize(
    ("approximate", "gradient", "tolerance"),
    [(laplace, laplace_gradient, 1e-20), (expectation_propagation, ep_gradient, 1e-10)],
    ids=["laplace", "ep"],
)
def test_gradients_agree_with_finite_differences(approximate, gradient, tolerance):
    m, K, _, likelihood = probit_problem(8, seed=6, mean=0.5)
    rng = np.random.default_rng(0)

    def log_marginal(m, K):
        return approximate(DensePrior(m, K), likelihood, tolerance=tolerance).log_marginal

    q = approximate(DensePrior(m, K), likelihood, tolerance=tolerance)
    cotangents = gradient(q, likelihood)
    step = 1e-5
    for _ in range(3):
        dm, A = rng.standard_normal(8), rng.standard_normal((8, 8))
        dK = A @ A.T  # a direction in which K stays positive definite
        in_m = log_marginal(m + step * dm, K) - log_marginal(m - step * dm, K)
        # One-sided and of second order: K - step dK need not be positive definite.
        in_K = (
            4 * log_marginal(m, K + step * dK)
            - 3 * log_marginal(m, K)
            - log_marginal(m, K + 2 * step * dK)
        )
        assert in_m / (2 * step) == pytest.approx(cotangents.mean @ dm, rel=1e-6)
        assert in_K / (2 * step) == pytest.approx((cotangents.covariance * dK).sum(), rel=1e-5)
