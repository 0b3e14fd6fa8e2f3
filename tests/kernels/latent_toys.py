"""Targets whose exact posterior is known by quadrature."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln, logsumexp

from pymc_pseudomarginal.numerics.errors import NumericalFailure

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
LOG_2PI = np.log(2 * np.pi)


def exp(x):
    """Infinity where it is too large, in silence."""
    with np.errstate(over="ignore"):
        return np.exp(x)


def log_poisson(y, eta):
    return y * eta - exp(eta) - gammaln(y + 1)


@dataclass(frozen=True)
class ToyConditional:
    """q = prod N(mean_i, sd_i²) for x_i ~ N(0, sigma²), y_i ~ p(y_i | x_i + b)."""

    toy: "Toy"
    theta: np.ndarray
    log_prior: float
    mean: np.ndarray
    sd: np.ndarray

    @property
    def size(self):
        return len(self.mean)

    def latent(self, u):
        return self.mean + self.sd * u

    def noise(self, x):
        return (x - self.mean) / self.sd

    def log_weights(self, u):
        x = self.latent(u)
        joint = self.toy.log_joint(x, self.theta).sum(axis=-1)
        return joint + (0.5 * u**2 + 0.5 * LOG_2PI + np.log(self.sd)).sum(axis=-1)

    def log_weight(self, u):
        return float(self.log_weights(u))

    def log_weight_and_gradient(self, u):
        gradient = self.sd * self.toy.slope(self.latent(u), self.theta) + u
        return self.log_weight(u), gradient


@dataclass(frozen=True)
class Toy:
    """theta = (log sigma, b, log s)[:d]; likelihood Poisson(exp(x + b)) or N(x + b, s²).

    `narrow` multiplies the standard deviation of Laplace's q; `broken` fails for sigma > 20.
    """

    y: np.ndarray
    dim_theta: int
    gaussian: bool = False
    narrow: float = 1.0
    known: tuple = (np.log(0.8), 0.5, np.log(0.7))
    learnt: np.ndarray = field(default_factory=lambda: np.zeros(1))

    @property
    def size(self):
        return len(self.y)

    def parameters(self, theta):
        full = np.concatenate([theta, self.known[len(theta) :]])
        return np.exp(full[0]), full[1], np.exp(full[2])

    def log_prior(self, theta):
        return float(-0.5 * (theta**2 + LOG_2PI).sum())

    def log_likelihood(self, x, theta):
        _, b, s = self.parameters(theta)
        if self.gaussian:
            return -0.5 * ((self.y - x - b) / s) ** 2 - np.log(s) - 0.5 * LOG_2PI
        return log_poisson(self.y, x + b)

    def log_joint(self, x, theta):
        sigma = self.parameters(theta)[0]
        prior = -0.5 * (x / sigma) ** 2 - np.log(sigma) - 0.5 * LOG_2PI
        return self.log_likelihood(x, theta) + prior

    def slope(self, x, theta):
        sigma, b, s = self.parameters(theta)
        part = (self.y - x - b) / s**2 if self.gaussian else self.y - exp(x + b)
        return part - x / sigma**2

    def curvature(self, x, theta):
        sigma, b, s = self.parameters(theta)
        part = 1 / s**2 + 0 * x if self.gaussian else exp(x + b)
        return part + 1 / sigma**2

    def at(self, theta):
        sigma, b, _ = self.parameters(theta)
        if not np.all(np.abs(theta) < 15):
            raise NumericalFailure("too far")
        x = np.zeros(self.size) if self.gaussian else np.log(self.y + 0.5) - b
        x = x * sigma**2 / (sigma**2 + 1)
        for _ in range(40):
            step = np.clip(self.slope(x, theta) / self.curvature(x, theta), -1, 1)
            x = x + step
            if np.abs(step).max() < 1e-11:
                break
        sd = self.narrow / np.sqrt(self.curvature(x, theta))
        return ToyConditional(self, theta, self.log_prior(theta), x, sd)

    def learn_start(self, conditionals):
        means = np.mean([c.mean.mean() for c in conditionals])
        return Toy(
            self.y, self.dim_theta, self.gaussian, self.narrow, self.known, np.array([means])
        )

    def frozen(self):
        return {"learnt": self.learnt}

    def thawed(self, arrays):
        return Toy(self.y, self.dim_theta, self.gaussian, self.narrow, self.known, arrays["learnt"])

    def evidence_and_moments(self, theta):
        """log p(y|theta), E[x_i|y, theta], E[x_i²|y, theta] by quadrature about the mode."""
        exact = Toy(self.y, self.dim_theta, self.gaussian, 1.0, self.known).at(theta)
        wide = 1.4 * exact.sd
        x = exact.mean + wide * NODES[:, None]
        logs = self.log_joint(x, theta) + np.log(wide) + 0.5 * NODES[:, None] ** 2
        logs = logs + np.log(NODE_WEIGHTS)[:, None]
        level = logsumexp(logs, axis=0)
        shares = np.exp(logs - level)
        return level.sum(), (shares * x).sum(axis=0), (shares * x**2).sum(axis=0)


@dataclass(frozen=True)
class Truth:
    """Posterior means of theta, theta², x, x² by a grid over theta."""

    theta: np.ndarray
    theta_squared: np.ndarray
    x: np.ndarray
    x_squared: np.ndarray


def exact_posterior(toy, lower, upper, nodes):
    axes = [np.linspace(lo, up, nodes) for lo, up in zip(lower, upper, strict=True)]
    thetas = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(lower))
    parts = [toy.evidence_and_moments(theta) for theta in thetas]
    logs = np.array([p[0] for p in parts]) + np.array([toy.log_prior(t) for t in thetas])
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    return Truth(
        shares @ thetas,
        shares @ thetas**2,
        shares @ np.array([p[1] for p in parts]),
        shares @ np.array([p[2] for p in parts]),
    )


def counts(size=12, seed=3):
    rng = np.random.default_rng(seed)
    return rng.poisson(np.exp(0.5 + 0.8 * rng.standard_normal(size))).astype(float)


def run_chain(step, state, draws):
    """theta and x of a chain of step(state) -> (state, info), and the infos."""
    thetas, latents, infos = [], [], []
    for _ in range(draws):
        state, info = step(state)
        thetas.append(state.theta)
        latents.append(state.latent)
        infos.append(info)
    return np.array(thetas), np.array(latents), infos
