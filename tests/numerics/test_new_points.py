"""The latent at new points against the formulas of the paper, written with K^-1."""

import numpy as np
import pytest
from problems import exp_quad
from scipy.spatial.distance import cdist

from pymc_pseudomarginal.numerics import APPROXIMATIONS, DensePrior, NewPoints
from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood

N, LENGTHSCALE, VARIANCE = 12, 0.7, 3.0
RNG = np.random.default_rng(4)
X, X_NEW = RNG.standard_normal((N, 2)), RNG.standard_normal((5, 2))
MEAN, MEAN_NEW = RNG.standard_normal(N), RNG.standard_normal(5)
K = exp_quad(X, LENGTHSCALE, VARIANCE)
CROSS = VARIANCE * np.exp(-0.5 * cdist(X_NEW, X, "sqeuclidean") / LENGTHSCALE**2)
NEW = NewPoints(MEAN_NEW, CROSS, np.full(5, VARIANCE))
K_INVERSE = np.linalg.inv(K)


def test_given_draws_of_f():
    f = RNG.standard_normal((3, N))
    mean, variance = NEW.given_latent(DensePrior(MEAN, K), f)
    np.testing.assert_allclose(mean, MEAN_NEW + (f - MEAN) @ K_INVERSE @ CROSS.T, rtol=1e-7)
    expected = VARIANCE - np.einsum("ij,jk,ik->i", CROSS, K_INVERSE, CROSS)
    np.testing.assert_allclose(variance, expected, rtol=1e-7)


@pytest.mark.parametrize("approximation", ["laplace", "ep"])
def test_given_a_gaussian_approximation(approximation):
    likelihood = ProbitLikelihood.from_labels(np.arange(N) % 2)
    q = APPROXIMATIONS[approximation](DensePrior(MEAN, K), likelihood)
    Sigma = np.linalg.inv(K_INVERSE + np.diag(q.precision))
    mean, variance = NEW.given_approximation(q)
    half = CROSS @ K_INVERSE
    np.testing.assert_allclose(mean, MEAN_NEW + half @ (q.mean - MEAN), rtol=1e-6)
    expected = VARIANCE - np.sum(half * CROSS, axis=1) + np.sum(half @ Sigma * half, axis=1)
    np.testing.assert_allclose(variance, expected, rtol=1e-6)


def test_at_a_data_point_the_latent_is_f_and_no_variance_is_negative():
    f = np.linalg.cholesky(K) @ RNG.standard_normal(N)
    at_data = NewPoints(np.zeros(N), K - 1e-6 * np.eye(N), np.full(N, VARIANCE))
    mean, variance = at_data.given_latent(DensePrior(np.zeros(N), K), f[None])
    np.testing.assert_allclose(mean[0], f, atol=1e-3)
    assert ((variance >= 0.0) & (variance < 1e-5)).all()
