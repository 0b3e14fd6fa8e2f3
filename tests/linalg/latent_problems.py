"""Small latent Gaussian models with NumPy likelihoods, in many structures."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import (
    block_diag,
    csc_array,
    csr_array,
    diags_array,
    eye_array,
    kron,
    random_array,
)
from scipy.special import gammaln, log_expit, log_softmax, softmax

from pymc_pseudomarginal.linalg.latent import Derivatives, GaussianPrior, LatentAt, Predictor

LOG_2PI = np.log(2.0 * np.pi)


class Separable:
    """A likelihood of one predictor per term: subclasses give terms, slopes and curvatures."""

    def log_density(self, eta):
        return self.terms(eta).sum(axis=-1)

    def derivatives(self, eta):
        slope, curvature = self.slopes(eta)
        return Derivatives(float(self.log_density(eta)), slope, curvature)


@dataclass
class Normal(Separable):
    y: np.ndarray
    sd: float = 1.0

    def terms(self, eta):
        return -0.5 * ((self.y - eta) / self.sd) ** 2 - np.log(self.sd) - 0.5 * LOG_2PI

    def slopes(self, eta):
        return (self.y - eta) / self.sd**2, np.full(len(self.y), self.sd**-2)


@dataclass
class Poisson(Separable):
    y: np.ndarray

    def terms(self, eta):
        return self.y * eta - np.exp(eta) - gammaln(self.y + 1.0)

    def slopes(self, eta):
        return self.y - np.exp(eta), np.exp(eta)


@dataclass
class Bernoulli(Separable):
    y: np.ndarray

    def terms(self, eta):
        return log_expit((2 * self.y - 1) * eta)

    def slopes(self, eta):
        p = np.exp(log_expit(eta))
        return self.y - p, p * np.exp(log_expit(-eta))


@dataclass
class StudentT(Separable):
    y: np.ndarray
    nu: float = 3.0

    def terms(self, eta):
        return -0.5 * (self.nu + 1) * np.log1p((self.y - eta) ** 2 / self.nu)

    def slopes(self, eta):
        r = self.y - eta
        bottom = self.nu + r * r
        return (self.nu + 1) * r / bottom, (self.nu + 1) * (self.nu - r * r) / bottom**2


@dataclass
class AsymmetricLaplace(Separable):
    """The check function of a quantile: its curvature is zero on both sides of the kink."""

    y: np.ndarray
    quantile: float = 0.5
    scale: float = 1.0

    def terms(self, eta):
        r = (self.y - eta) / self.scale
        normaliser = np.log(self.quantile * (1 - self.quantile) / self.scale)
        return normaliser - r * (self.quantile - (r < 0))

    def slopes(self, eta):
        return (self.quantile - (self.y < eta)) / self.scale, np.zeros(len(self.y))


class HeteroskedasticNormal:
    """Location eta_2i and log standard deviation eta_2i+1; not log-concave."""

    def __init__(self, y):
        self.y = y
        first = 2 * np.arange(len(y))
        self.rows = np.concatenate([first, first, first + 1, first + 1])
        self.columns = np.concatenate([first, first + 1, first, first + 1])

    def log_density(self, eta):
        location, log_sd = eta[..., ::2], eta[..., 1::2]
        scaled = (self.y - location) * np.exp(-log_sd)
        return (-0.5 * scaled**2 - log_sd - 0.5 * LOG_2PI).sum(axis=-1)

    def derivatives(self, eta):
        location, log_sd = eta[::2], eta[1::2]
        precision = np.exp(-2 * log_sd)
        r = self.y - location
        gradient = np.empty_like(eta)
        gradient[::2], gradient[1::2] = r * precision, r * r * precision - 1
        cross = 2 * r * precision
        entries = np.concatenate([precision, cross, cross, 2 * r * r * precision])
        shape = (len(eta), len(eta))
        curvature = csr_array((entries, (self.rows, self.columns)), shape=shape)
        return Derivatives(float(self.log_density(eta)), gradient, curvature)


class Softmax:
    """Three classes: predictors 3i, 3i + 1, 3i + 2 of datum i."""

    classes = 3

    def __init__(self, y):
        self.y = y
        base = self.classes * np.arange(len(y))[:, None, None]
        one = np.arange(self.classes)
        self.rows = (base + one[:, None] + 0 * one).ravel()
        self.columns = (base + one + 0 * one[:, None]).ravel()

    def log_density(self, eta):
        grid = eta.reshape(*eta.shape[:-1], len(self.y), self.classes)
        chosen = np.take_along_axis(
            log_softmax(grid, axis=-1),
            np.broadcast_to(self.y[:, None], (*grid.shape[:-1], 1)),
            axis=-1,
        )
        return chosen[..., 0].sum(axis=-1)

    def derivatives(self, eta):
        p = softmax(eta.reshape(len(self.y), self.classes), axis=-1)
        gradient = (np.eye(self.classes)[self.y] - p).ravel()
        blocks = p[:, :, None] * (np.eye(self.classes) - p[:, None, :])
        shape = (len(eta), len(eta))
        curvature = csr_array((blocks.ravel(), (self.rows, self.columns)), shape=shape)
        return Derivatives(float(self.log_density(eta)), gradient, curvature)


def random_walk(n):
    """Precision of a walk whose first element is standard normal."""
    D = diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
    return csc_array(D.T @ D + diags_array(np.r_[1.0, np.zeros(n - 1)]))


def lattice(k, proper=True):
    """Precision of a conditional autoregression on a k x k lattice, singular if not proper."""
    path = diags_array([np.ones(k - 1), np.ones(k - 1)], offsets=[-1, 1])
    adjacency = kron(eye_array(k), path) + kron(path, eye_array(k))
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    return csc_array(diags_array(degrees) - (0.9 if proper else 1.0) * adjacency)


def hierarchical_means(groups, members):
    """x = (mean, group means, members): each level is centred on the one above."""
    parents = np.concatenate([[0] * groups, 1 + np.repeat(np.arange(groups), members)])
    n = 1 + len(parents)
    children = np.arange(1, n)
    D = csc_array(
        (
            np.concatenate([np.ones(n - 1), -np.ones(n - 1)]),
            (np.tile(np.arange(n - 1), 2), np.concatenate([children, parents])),
        ),
        shape=(n - 1, n),
    )
    return csc_array(4.0 * D.T @ D + diags_array(np.r_[0.25, np.zeros(n - 1)]))


def crossed_design(rng, m, sizes, fixed=1):
    """Rows with an intercept, `fixed` covariates and one level of each factor."""
    blocks = [csr_array(np.column_stack([np.ones(m), rng.standard_normal((m, fixed))]))]
    for size in sizes:
        level = rng.integers(0, size, m)
        blocks.append(csr_array((np.ones(m), (np.arange(m), level)), shape=(m, size)))
    widths = np.concatenate([[0], np.cumsum([b.shape[1] for b in blocks])])
    A = np.zeros((m, widths[-1]))
    for block, first in zip(blocks, widths[:-1], strict=True):
        A[:, first : first + block.shape[1]] = block.toarray()
    return csr_array(A)


def gaussian_prior(Q, rng, rows=None, row_weights=None):
    """A prior of precision Q, with some linear part and constant."""
    Q = csc_array(Q)
    Q.sort_indices()
    n = Q.shape[0]
    return GaussianPrior(-0.3 * n, 0.1 * rng.standard_normal(n), Q, rows, row_weights)


def structures(seed=0):
    """Pairs (prior, predictor) of many structures, by name."""
    rng = np.random.default_rng(seed)
    observe = csr_array(eye_array(60))
    few = csr_array(random_array((40, 60), density=0.05, rng=rng))
    crossed = crossed_design(rng, 150, (12, 20), fixed=2)
    # Flat intercept and slopes: data alone make P positive definite.
    flat = diags_array(np.r_[np.zeros(3), np.full(32, 2.0)])
    sums = np.ones((1, 64))
    two = np.vstack([np.ones(64), rng.standard_normal(64)])
    cases = {
        "crossed": (flat, crossed, None, None),
        "walk": (random_walk(60), observe, None, None),
        "walk, sparse design": (random_walk(60), few, None, None),
        "lattice": (lattice(8), csr_array(eye_array(64)), None, None),
        "intrinsic lattice": (
            lattice(8, proper=False),
            csr_array(eye_array(64)),
            sums,
            np.array([[0.5]]),
        ),
        "two rows": (lattice(8), csr_array(eye_array(64)), two, np.array([[2.0, 0.3], [0.3, 1.0]])),
        "hierarchical": (
            hierarchical_means(7, 6),
            csr_array(csr_array(eye_array(50))[8:]),
            None,
            None,
        ),
        "blocks": (
            block_diag([random_walk(30), lattice(5)]),
            csr_array(random_array((80, 55), density=0.08, rng=rng)),
            None,
            None,
        ),
        "dense design": (eye_array(12), rng.standard_normal((40, 12)), None, None),
    }
    out = {}
    for name, (Q, A, rows, row_weights) in cases.items():
        offset = 0.2 * rng.standard_normal(A.shape[0])
        out[name] = (gaussian_prior(Q, rng, rows, row_weights), Predictor(A, offset))
    return out


def at_of(prior, predictor, likelihood, theta=()):
    return LatentAt(np.asarray(theta, dtype=float), 0.0, prior, predictor, likelihood)
