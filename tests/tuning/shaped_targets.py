"""Targets whose posterior of theta has any shape: a map of independent standard normals.

theta = T(z) for z ~ N(0, I), so that the truth is known in z: its mean, square and tails. The noise
has u | theta ~ N(a(theta), I), which no Gaussian q = N(0, I) knows; a is the strength of that.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri, stdtr

from pymc_pseudomarginal.numerics.errors import NumericalFailure

LOG_2PI = np.log(2 * np.pi)


def log_normal(z):
    return float(-0.5 * (np.asarray(z) ** 2 + LOG_2PI).sum())


def standard(p):
    return ndtri(np.clip(p, 1e-300, 1 - 1e-16))


@dataclass(frozen=True)
class ShapedConditional:
    theta: np.ndarray
    log_prior: float
    shift: float
    size: int

    def latent(self, u):
        return u

    def noise(self, x):
        return x

    def log_weights(self, u):
        return self.shift * u.sum(axis=-1) - 0.5 * self.size * self.shift**2

    def log_weight(self, u):
        return float(self.log_weights(u))

    def log_weight_and_gradient(self, u):
        return self.log_weight(u), np.full(self.size, self.shift)


@dataclass(frozen=True)
class Shaped:
    """`shape` has `dim`, `log_density(theta)` and `standardised(theta)`, the z of theta."""

    shape: object
    strength: float = 0.3
    size: int = 3

    @property
    def dim_theta(self):
        return self.shape.dim

    def shift(self, theta):
        return self.strength * np.tanh(self.shape.standardised(theta)[0])

    def at(self, theta):
        with np.errstate(all="ignore"):
            log_prior, shift = self.shape.log_density(theta), self.shift(theta)
        if not np.isfinite(log_prior + shift):
            raise NumericalFailure("no density")
        return ShapedConditional(theta, log_prior, float(shift), self.size)

    def learn_start(self, conditionals):
        return self

    def frozen(self):
        return {}

    def thawed(self, arrays):
        return self

    def standard_draws(self, thetas, latents):
        """Independent standard normals, were the draws exact, shape (draws, d + 1)."""
        z = np.array([self.shape.standardised(theta) for theta in thetas])
        shifts = np.array([self.shift(theta) for theta in thetas])
        return np.column_stack([z, latents[:, 0] - shifts])


@dataclass(frozen=True)
class Affine:
    """theta = centre + factor z."""

    centre: np.ndarray
    factor: np.ndarray

    @property
    def dim(self):
        return len(self.centre)

    def standardised(self, theta):
        return np.linalg.solve(self.factor, theta - self.centre)

    def log_density(self, theta):
        return log_normal(self.standardised(theta)) - np.linalg.slogdet(self.factor)[1]


@dataclass(frozen=True)
class Banana:
    """theta_2 = z_2 + bend (z_1² - 1), the rest normal."""

    dim: int
    bend: float

    def standardised(self, theta):
        z = np.array(theta)
        z[1] = theta[1] - self.bend * (theta[0] ** 2 - 1)
        return z

    def log_density(self, theta):
        return log_normal(self.standardised(theta))


@dataclass(frozen=True)
class Funnel:
    """theta_1 = width z_1 and theta_j = exp(theta_1/2) z_j: Neal's."""

    dim: int
    width: float

    def standardised(self, theta):
        return np.concatenate([theta[:1] / self.width, theta[1:] * np.exp(-0.5 * theta[0])])

    def log_density(self, theta):
        scales = np.log(self.width) + 0.5 * (self.dim - 1) * theta[0]
        return log_normal(self.standardised(theta)) - scales


@dataclass(frozen=True)
class LogHalfCauchy:
    """Every theta is log sd of a half-Cauchy sd: tails exp(-|theta|) to both sides."""

    dim: int

    def standardised(self, theta):
        return standard(2 / np.pi * np.arctan(np.exp(theta)))

    def log_density(self, theta):
        return float((theta - np.logaddexp(0.0, 2.0 * theta)).sum() + self.dim * np.log(2 / np.pi))


@dataclass(frozen=True)
class LogHalfNormal:
    """Every theta is log sd of a half-normal sd: much mass near zero, nothing far to the right."""

    dim: int

    def standardised(self, theta):
        sd = np.exp(theta)
        return -standard(2.0 * ndtr(-sd))

    def log_density(self, theta):
        sd = np.exp(theta)
        return float((np.log(2.0) + theta - 0.5 * sd**2 - 0.5 * LOG_2PI).sum())


@dataclass(frozen=True)
class HeavyTail:
    """Every theta has a Student t density of three degrees."""

    dim: int

    def standardised(self, theta):
        return standard(stdtr(3.0, theta))

    def log_density(self, theta):
        constant = np.log(2.0 / (np.pi * np.sqrt(3.0)))
        return float((constant - 2.0 * np.log1p(theta**2 / 3.0)).sum())


@dataclass(frozen=True)
class TwoModes:
    """share N(-apart/2, 1) + (1 - share) N(apart/2, 1) along a direction, the rest normal."""

    dim: int
    apart: float
    share: float = 0.4

    def _along(self, theta):
        reflection = np.eye(self.dim)[0] - np.ones(self.dim) / np.sqrt(self.dim)
        length = reflection @ reflection
        if length < 1e-12:
            return theta
        return theta - 2.0 * (reflection @ theta) / length * reflection

    def standardised(self, theta):
        z = np.array(self._along(theta))
        places = z[0] + np.array([0.5, -0.5]) * self.apart
        z[0] = standard(np.array([self.share, 1 - self.share]) @ ndtr(places))
        return z

    def log_density(self, theta):
        z = self._along(theta)
        places = z[0] + np.array([0.5, -0.5]) * self.apart
        logs = np.log([self.share, 1 - self.share]) - 0.5 * (places**2 + LOG_2PI)
        return float(logsumexp(logs)) + log_normal(z[1:])


@dataclass(frozen=True)
class Skewed:
    """Every theta is a log-gamma variable of shape one, all mixed by a factor."""

    factor: np.ndarray

    @property
    def dim(self):
        return len(self.factor)

    def _apart(self, theta):
        return np.linalg.solve(self.factor, theta)

    def standardised(self, theta):
        # A log-gamma variable of shape one: its distribution function is 1 - exp(-exp(t)).
        return -standard(np.exp(-np.exp(self._apart(theta))))

    def log_density(self, theta):
        t = self._apart(theta)
        return float((t - np.exp(t)).sum() - np.linalg.slogdet(self.factor)[1])
