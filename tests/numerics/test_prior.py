import numpy as np
import pytest
from problems import probit_problem

from pymc_pseudomarginal.numerics import DensePrior, NotPositiveDefinite


@pytest.fixture
def problem():
    m, K, _, _ = probit_problem(7, seed=0, mean=0.5)
    W = np.random.default_rng(1).uniform(0.1, 2.0, 7)
    return m, K, W


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_and_factors_equal_their_definitions(problem, order):
    m, K, W = problem
    prior = DensePrior(m, np.array(K, order=order))
    v = np.random.default_rng(2).standard_normal((3, 7))
    L = np.linalg.cholesky(K)
    np.testing.assert_allclose(prior.multiply(v[0]), K @ v[0], rtol=1e-12)
    np.testing.assert_allclose(prior.colour(v), v @ L.T, rtol=1e-12)
    np.testing.assert_allclose(prior.colour(v[0]), L @ v[0], rtol=1e-12)
    np.testing.assert_allclose(prior.colour_transposed(v), v @ L, rtol=1e-12)
    np.testing.assert_allclose(prior.whiten(m + L @ v[0]), v[0], rtol=1e-9)
    R = np.linalg.inv(K + np.diag(1 / W))
    factor = prior.condition(W)
    np.testing.assert_allclose(factor.solve(v), v @ R, rtol=1e-9)
    np.testing.assert_allclose(factor.solve(v[0]), R @ v[0], rtol=1e-9)
    np.testing.assert_allclose(factor.site_covariance_inverse(), R, rtol=1e-9)
    B = np.eye(7) + np.sqrt(np.outer(W, W)) * K
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(B)[1])


@pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-12, 1e-6])
def test_marginal_variances_are_right_even_for_sites_of_no_weight(problem, tiny):
    m, K, W = problem
    W = W.copy()
    W[[2, 5]] = tiny  # their variance still shrinks, by the data of the others
    factor = DensePrior(m, K).condition(W)
    # Sigma = K - K R K, computed with the sites that count.
    weighty = W > 1e-9
    cross = K[:, weighty]
    expected = K - cross @ np.linalg.solve(
        K[np.ix_(weighty, weighty)] + np.diag(1 / W[weighty]), cross.T
    )
    np.testing.assert_allclose(factor.marginal_variances(), np.diag(expected), rtol=1e-6)


def test_inputs_are_left_as_they_were(problem):
    m, K, W = problem
    before = K.copy()
    prior = DensePrior(m, K)
    prior.condition(W).marginal_variances()
    _ = prior.cholesky
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("spoil", [np.nan, np.inf, -5.0])
def test_a_matrix_without_cholesky_factor_is_a_typed_failure(problem, spoil):
    m, K, _ = problem
    K = K.copy()
    K[3, 3] = spoil
    with pytest.raises(NotPositiveDefinite):
        _ = DensePrior(m, K).cholesky


def test_cubic_operations_are_counted(problem):
    m, K, W = problem
    prior = DensePrior(m, K)
    factor = prior.condition(W)
    factor.marginal_variances()
    prior.colour(m)
    prior.colour(m)
    assert prior.cubic_operations == 3  # B, its inverse factor, and K once
