"""Models that depend on theta, for the approximations' tests."""

import numpy as np
from linalg.latent_problems import (
    LOG_2PI,
    HeteroskedasticNormal,
    Poisson,
    Softmax,
    at_of,
    crossed_design,
    lattice,
)
from scipy.sparse import csc_array, csr_array, eye_array

from pymc_pseudomarginal.linalg.latent import GaussianPrior, LatentAt, Predictor


class Fixed:
    """A model without hyper-parameters."""

    dim_theta = 0

    def __init__(self, prior, predictor, likelihood):
        self.size = prior.size
        self._at = at_of(prior, predictor, likelihood)

    def at(self, theta):
        return self._at


class Scaled:
    """Blocks of x with log standard deviations theta; one fixed block in front if wanted."""

    def __init__(self, matrix, blocks, likelihood, fixed=0, mean=0.0):
        self.size, self.dim_theta = matrix.shape[1], len(blocks)
        self._fixed, self._blocks, self._mean = fixed, blocks, mean
        self._likelihood = likelihood
        self._predictor = Predictor(matrix, np.zeros(matrix.shape[0]))

    def at(self, theta):
        scaled = np.repeat(np.exp(-2.0 * theta), self._blocks)
        d = np.concatenate([np.full(self._fixed, 0.1), scaled])
        n = self.size
        Q = csc_array((d, np.arange(n), np.arange(n + 1)), shape=(n, n))
        mean = np.full(n, self._mean)
        constant = 0.5 * (np.log(d).sum() - n * LOG_2PI - mean @ (d * mean))
        prior = GaussianPrior(constant, d * mean, Q)
        log_prior = -0.5 * float(theta @ theta)
        return LatentAt(theta, log_prior, prior, self._predictor, self._likelihood)


def crossed_poisson(seed=0, m=120, sizes=(10, 15)):
    rng = np.random.default_rng(seed)
    A = crossed_design(rng, m, sizes)
    x = 0.5 * rng.standard_normal(A.shape[1])
    return Scaled(A, sizes, Poisson(rng.poisson(np.exp(0.5 + A @ x))), fixed=2)


def two_predictors(seed=0, data=40):
    """Location and log standard deviation, with three coefficients each."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(data), rng.standard_normal((data, 2))])
    A = np.zeros((2 * data, 6))
    A[::2, :3], A[1::2, 3:] = X, X
    return Scaled(csr_array(A), (3, 3), HeteroskedasticNormal(2 * rng.standard_normal(data)))


def three_classes(seed=0, data=40):
    """Softmax regression with two coefficients a class."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(data), rng.standard_normal(data)])
    A = np.kron(X, np.eye(3)).reshape(data * 3, 6)
    return Scaled(csr_array(A), (2, 4), Softmax(rng.integers(0, 3, data)))


def lattice_with_sum(likelihood, k=9):
    """An intrinsic lattice with a soft sum-to-zero row."""
    n = k * k
    prior = GaussianPrior(
        -1.0, np.zeros(n), lattice(k, proper=False), np.ones((1, n)), np.array([[0.1]])
    )
    return Fixed(prior, Predictor(csr_array(eye_array(n)), np.zeros(n)), likelihood)
