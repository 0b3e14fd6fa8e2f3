"""Small latent Gaussian problems with known answers, free of PyMC."""

import numpy as np
from scipy.stats import multivariate_normal

from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood


def exp_quad(X, lengthscale, variance):
    """The squared-exponential covariance with PyMC's default jitter, shape (n, n)."""
    scaled = X / lengthscale
    squares = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    return variance * np.exp(-0.5 * squares) + 1e-6 * np.eye(len(X))


def probit_problem(n, *, seed, d=2, lengthscale=1.0, variance=3.0, mean=0.0):
    """(m, K, labels in {0, 1}, likelihood) drawn from the model itself."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    K = exp_quad(X, lengthscale, variance)
    m = mean * rng.standard_normal(n)
    f = m + np.linalg.cholesky(K) @ rng.standard_normal(n)
    y = (f + rng.standard_normal(n) > 0).astype(int)
    return m, K, y, ProbitLikelihood.from_labels(y)


def orthant_log_probability(m, K, y):
    """log p(y) = log P(z > 0) for z ~ N(D m, D (K + I) D), D = diag(2 y - 1)."""
    signs = 2.0 * y - 1.0
    n = len(y)
    normal = multivariate_normal(
        mean=signs * m,
        cov=(K + np.eye(n)) * np.outer(signs, signs),
        seed=1,
        maxpts=200_000,
        abseps=1e-8,
        releps=1e-6,
    )
    return float(np.log(normal.cdf(np.full(n, np.inf), lower_limit=np.zeros(n))))
