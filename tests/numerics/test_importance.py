"""The estimate is unbiased: its mean is the orthant probability."""

import numpy as np
import pytest
from problems import exp_quad, orthant_log_probability, probit_problem
from scipy.stats import multivariate_normal
from stat_checks import LIMIT, z_of_independent

from pymc_pseudomarginal.numerics import (
    APPROXIMATIONS,
    FOR_IMPORTANCE,
    DensePrior,
    ImportanceSet,
    importance_set,
)
from pymc_pseudomarginal.numerics.importance import draw, log_weights
from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood

BOTH = pytest.mark.parametrize("approximation", APPROXIMATIONS)


@BOTH
@pytest.mark.parametrize("n_importance", [1, 16])
@pytest.mark.parametrize("lengthscale", [0.8, np.array([0.4, 3.0])], ids=["isotropic", "ard"])
@pytest.mark.parametrize("n", [5, 6, 7, 8])
def test_mean_of_the_estimate_is_the_orthant_probability(
    approximation, n_importance, lengthscale, n
):
    rng = np.random.default_rng(n)
    K = exp_quad(rng.standard_normal((n, 2)), lengthscale, 2.0)
    y = rng.integers(0, 2, n)
    likelihood = ProbitLikelihood.from_labels(y)
    q = APPROXIMATIONS[approximation](DensePrior(np.zeros(n), K), likelihood)
    repetitions = 4000  # drawn at once: a row of u is an independent draw
    draws = importance_set(q, likelihood, rng.standard_normal((2, repetitions * n_importance, n)))
    estimates = [
        ImportanceSet(draws.samples, weights).log_estimate
        for weights in draws.log_weights.reshape(repetitions, n_importance)
    ]
    truth = np.exp(orthant_log_probability(np.zeros(n), K, y))
    assert abs(z_of_independent(np.exp(estimates), truth)) < LIMIT


@BOTH
def test_an_approximation_that_stops_early_gives_an_unbiased_estimate_too(approximation):
    m, K, y, likelihood = probit_problem(6, seed=1, variance=4.0)
    run = APPROXIMATIONS[approximation]
    start = run(DensePrior(m, 1.3 * K), likelihood).anchor
    converged = run(DensePrior(m, K), likelihood, start=start)
    q = run(DensePrior(m, K), likelihood, start=start, **FOR_IMPORTANCE[approximation])
    assert q.converged
    assert q.iterations < converged.iterations
    assert not np.array_equal(q.precision, converged.precision)
    u = np.random.default_rng(0).standard_normal((2, 20_000, 6))
    weights = importance_set(q, likelihood, u).log_weights
    truth = np.exp(orthant_log_probability(m, K, y))
    assert abs(z_of_independent(np.exp(weights), truth)) < LIMIT
    # And it is as good a density as the converged one.
    assert weights.std() < 1.2 * importance_set(converged, likelihood, u).log_weights.std()


@BOTH
def test_a_wrong_weight_would_be_found_out(approximation):
    """The control: leaving the site term out of the weights biases the estimate."""
    m, K, y, likelihood = probit_problem(6, seed=1)
    q = APPROXIMATIONS[approximation](DensePrior(m, K), likelihood)
    rng = np.random.default_rng(0)
    samples = importance_set(q, likelihood, rng.standard_normal((2, 4000, 6)))
    site_term = 0.5 * (samples.samples - q.mean) ** 2 @ q.precision
    truth = np.exp(orthant_log_probability(m, K, y))
    assert abs(z_of_independent(np.exp(samples.log_weights), truth)) < LIMIT
    assert abs(z_of_independent(np.exp(samples.log_weights - site_term), truth)) > 2 * LIMIT


@BOTH
def test_draws_have_the_mean_and_covariance_of_the_approximation(approximation):
    m, K, _, likelihood = probit_problem(4, seed=2, mean=0.5)
    q = APPROXIMATIONS[approximation](DensePrior(m, K), likelihood)
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(q.precision))
    f = draw(q, np.random.default_rng(0).standard_normal((2, 40_000, 4)))
    assert all(abs(z_of_independent(f[:, i], q.mean[i])) < LIMIT for i in range(4))
    centred = f - q.mean
    for i in range(4):
        for j in range(i + 1):
            assert abs(z_of_independent(centred[:, i] * centred[:, j], Sigma[i, j])) < LIMIT


@BOTH
def test_weights_are_the_ratio_of_densities(approximation):
    m, K, _, likelihood = probit_problem(5, seed=3, mean=0.5)
    q = APPROXIMATIONS[approximation](DensePrior(m, K), likelihood)
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(q.precision))
    f = np.random.default_rng(0).standard_normal((6, 5))
    expected = (
        likelihood.log_density(f)
        + multivariate_normal(m, K).logpdf(f)
        - multivariate_normal(q.mean, Sigma).logpdf(f)
    )
    np.testing.assert_allclose(log_weights(q, likelihood, f), expected, atol=1e-4)


def test_the_estimate_is_a_pure_function_of_u():
    m, K, _, likelihood = probit_problem(9, seed=4)
    u = np.random.default_rng(0).standard_normal((2, 3, 9))
    q = APPROXIMATIONS["laplace"](DensePrior(m, K), likelihood)
    first, second = (importance_set(q, likelihood, u.copy()) for _ in range(2))
    np.testing.assert_array_equal(first.log_weights, second.log_weights)
    np.testing.assert_array_equal(first.samples, second.samples)


def test_an_included_latent_comes_first_with_its_own_weight():
    m, K, _, likelihood = probit_problem(9, seed=4)
    q = APPROXIMATIONS["laplace"](DensePrior(m, K), likelihood)
    u = np.random.default_rng(0).standard_normal((2, 3, 9))
    f = q.mean + 0.1
    with_f = importance_set(q, likelihood, u, include=f)
    without = importance_set(q, likelihood, u)
    np.testing.assert_array_equal(with_f.samples[0], f)
    np.testing.assert_allclose(with_f.log_weights[1:], without.log_weights)
    alone = importance_set(q, likelihood, u[:, :0], include=f)
    assert alone.log_weights.shape == (1,)


def test_a_sample_is_picked_in_proportion_to_its_weight():
    m, K, _, likelihood = probit_problem(3, seed=4)
    q = APPROXIMATIONS["laplace"](DensePrior(m, K), likelihood)
    samples = importance_set(q, likelihood, np.random.default_rng(0).standard_normal((2, 3, 3)))
    rng = np.random.default_rng(1)
    picks = np.array([samples.pick(rng) for _ in range(20_000)])
    weights = np.exp(samples.log_weights - samples.log_estimate) / 3
    for k in range(3):
        chosen = (picks == samples.samples[k]).all(axis=1)
        assert abs(z_of_independent(chosen, weights[k])) < LIMIT
