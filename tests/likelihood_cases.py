"""One case for every likelihood: a PyMC model, data, and log p(y|f) by SciPy.

The latent has three elements at most, so that p(y) is a small integral, and comes in
three parameterisations. Data stand in `pm.Data`, so that extreme ones can be put in
their place without compiling anew.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered
from scipy import stats
from scipy.special import gammaln, log_expit, log_ndtr

from pymc_pseudomarginal.model import LatentGaussianModel, read_model

SCALE = 0.8
MEAN = np.array([-0.3, 0.5, 0.1])
CORRELATION = 0.5 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
EXPOSURE = np.array([1.5, 0.5, 1.0])
X = np.array([0.4, -1.0, 0.7])
CUTPOINTS = np.array([-0.8, 0.4, 1.3])


def centred(n, scale):
    """f as pm.MvNormal."""
    return pm.MvNormal("f", MEAN[:n], cov=scale**2 * CORRELATION[:n, :n])


def whitened(n, scale):
    """f = mean + chol(K) z, as `gp.Latent.prior` writes it."""
    z = pm.Normal("z", 0.0, 1.0, shape=n)
    K = scale**2 * CORRELATION[:n, :n]
    return pm.Deterministic("f", MEAN[:n] + pt.linalg.cholesky(K) @ z)


def rooted(n, scale):
    """f = mean + s A z, written by hand."""
    z = pm.Normal("z", 0.0, 1.0, shape=n)
    return pm.Deterministic("f", MEAN[:n] + scale * np.linalg.cholesky(CORRELATION[:n, :n]) @ z)


PARAMETERISATIONS = {"centred": (1, centred), "whitened": (2, whitened), "rooted": (3, rooted)}
"""Each with its own n, so that all of both are met without all combinations."""


@dataclass(frozen=True)
class LikelihoodCase:
    """A likelihood with everything that the tests need.

    Attributes
    ----------
    observe : callable
        (f, y) adds the observed variables to the model in context, for data y.
    y : array, shape (3,)
    log_density : callable
        (f of shape (..., n), y of shape (n,)) -> log p(y_i|f_i), shape (..., n).
    parameters : dict
        Values of the likelihood's free variables, on their natural scale.
    extreme : array, shape (3,), optional
        Data as far out as they may be.
    log_concave : bool
    """

    observe: Callable
    y: np.ndarray
    log_density: Callable
    parameters: dict = field(default_factory=dict)
    extreme: np.ndarray | None = None
    log_concave: bool = True


def data(y):
    return pm.Data("data", y)


def log_choose(n, y):
    return gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)


def observe_probit(f, y):
    pm.Bernoulli("y", p=pm.math.invprobit(f), observed=data(y))


def observe_probit_regression(f, y):
    beta, slope = pm.Normal("beta", 0.0, 1.0), pm.HalfNormal("slope", 1.0)
    pm.Bernoulli("y", p=pm.math.invprobit(slope * f + X[: len(y)] * beta), observed=data(y))


def observe_logit(f, y):
    pm.Bernoulli("y", logit_p=f, observed=data(y))


def observe_inverse_logit(f, y):
    pm.Bernoulli("y", p=pm.math.invlogit(f + pm.Normal("shift", 0.0, 1.0)), observed=data(y))


def observe_binomial(f, y):
    pm.Binomial("y", n=20, logit_p=f, observed=data(y))


def observe_binomial_probit(f, y):
    pm.Binomial("y", n=20, p=pm.math.invprobit(f), observed=data(y))


def observe_poisson(f, y):
    pm.Poisson("y", mu=EXPOSURE[: len(y)] * pm.math.exp(f), observed=data(y))


def observe_negative_binomial(f, y):
    alpha = pm.HalfNormal("alpha", 2.0)
    pm.NegativeBinomial("y", mu=2.0 * pm.math.exp(f), alpha=alpha, observed=data(y))


def negative_binomial(f, y):
    alpha, log_mu = 1.7, f + np.log(2.0)
    excess = log_mu - np.log(alpha)
    return log_choose(y + alpha - 1, y) + y * log_expit(excess) + alpha * log_expit(-excess)


def observe_normal(f, y):
    pm.Normal("y", f, pm.HalfNormal("noise", 1.0), observed=data(y))


def observe_student_t(f, y):
    pm.StudentT("y", nu=4.0, mu=f, sigma=pm.HalfNormal("noise", 1.0), observed=data(y))


def observe_gamma(f, y):
    shape = pm.HalfNormal("shape", 2.0)
    pm.Gamma("y", alpha=shape, beta=shape / pm.math.exp(f), observed=data(y))


def free_cutpoints():
    return pm.Normal("cutpoints", 0.0, 2.0, shape=3, transform=ordered, initval=CUTPOINTS)


def observe_ordered_probit(f, y):
    sigma = pm.HalfNormal("sigma", 1.0)
    pm.OrderedProbit("y", eta=f, cutpoints=free_cutpoints(), sigma=sigma, observed=data(y))


def ordered_probit(f, y):
    cuts = np.concatenate([[-np.inf], CUTPOINTS, [np.inf]])
    a, b = (cuts[y] - f) / 0.7, (cuts[y + 1] - f) / 0.7
    # The interval on the side where the probabilities are small, and do not cancel.
    a, b = np.where(a > -b, -b, a), np.where(a > -b, -a, b)
    return log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))


def observe_ordered_logistic(f, y):
    pm.OrderedLogistic("y", eta=f, cutpoints=free_cutpoints(), observed=data(y), compute_p=False)


def ordered_logistic(f, y):
    cuts = np.concatenate([[-np.inf], CUTPOINTS, [np.inf]])
    below, above = f - cuts[y], f - cuts[y + 1]
    result = log_expit(below) + log_expit(-above)
    return result + np.log1p(-np.exp(cuts[y] - cuts[y + 1]))


def observe_censored(f, y):
    noise = pm.HalfNormal("noise", 1.0)
    pm.Censored("y", pm.Normal.dist(f, noise), lower=-1.0, upper=1.5, observed=data(y))


def censored(f, y):
    inside = stats.norm.logpdf(y, f, 0.6)
    result = np.where(y == -1.0, log_ndtr((-1.0 - f) / 0.6), inside)
    return np.where(y == 1.5, log_ndtr((f - 1.5) / 0.6), result)


def log_sech(residual):
    return np.log(2.0 / np.pi) - np.logaddexp(residual, -residual)


def observe_custom(f, y):
    def logp(value, mu):
        return np.log(2.0 / np.pi) - pt.softplus(2.0 * (value - mu)) + (value - mu)

    pm.CustomDist("y", f, logp=logp, observed=data(y))


def observe_potential(f, y):
    residual = data(y) - f
    pm.Potential("y", np.log(2.0 / np.pi) - pt.softplus(2.0 * residual) + residual)


def observe_summed_potential(f, y):
    rate = pm.HalfNormal("rate", 1.0)
    terms = pt.log(rate) - f - rate * data(y) * pt.exp(-f)
    pm.Potential("y", terms.sum())


def observe_repeatedly(f, y):
    index = np.repeat(np.arange(len(y)), 2)
    pm.Poisson("y", pm.math.exp(f[index]), observed=np.column_stack([y, y + 1]).ravel())


def observe_twice(f, y):
    pm.Bernoulli("label", logit_p=f[:1], observed=data(y[:1] > 0))
    pm.Poisson("y", pm.math.exp(f), observed=pm.Data("counts", y))


def twice(f, y):
    labelled = np.arange(f.shape[-1]) == 0
    label = log_expit(np.where(y > 0, f, -f))
    return stats.poisson.logpmf(y, np.exp(f)) + np.where(labelled, label, 0.0)


def observe_sparsely(f, y):
    pm.Bernoulli("y", p=pm.math.invprobit(f[::2]), observed=data(y[::2]))


LABELS = np.array([1, 0, 1])
COUNTS = np.array([2, 0, 3])
REALS = np.array([0.7, -0.4, 1.9])
MANY = np.array([10**6, 0, 5000])

CASES = {
    "probit": LikelihoodCase(
        observe_probit, LABELS, lambda f, y: log_ndtr(np.where(y == 1, f, -f))
    ),
    "probit regression": LikelihoodCase(
        observe_probit_regression,
        LABELS,
        lambda f, y: log_ndtr(np.where(y == 1, 1, -1) * (1.3 * f - 0.4 * X[: len(y)])),
        {"beta": -0.4, "slope": 1.3},
    ),
    "logit": LikelihoodCase(observe_logit, LABELS, lambda f, y: log_expit(np.where(y == 1, f, -f))),
    "inverse logit": LikelihoodCase(
        observe_inverse_logit,
        LABELS,
        lambda f, y: log_expit(np.where(y == 1, 1, -1) * (f + 0.6)),
        {"shift": 0.6},
    ),
    "binomial": LikelihoodCase(
        observe_binomial,
        np.array([3, 20, 11]),
        lambda f, y: log_choose(20, y) + y * log_expit(f) + (20 - y) * log_expit(-f),
        extreme=np.array([0, 20, 19]),
    ),
    "binomial probit": LikelihoodCase(
        observe_binomial_probit,
        np.array([8, 15, 11]),
        lambda f, y: log_choose(20, y) + y * log_ndtr(f) + (20 - y) * log_ndtr(-f),
        extreme=np.array([0, 20, 19]),
    ),
    "poisson": LikelihoodCase(
        observe_poisson,
        COUNTS,
        lambda f, y: (
            y * (f + np.log(EXPOSURE[: len(y)])) - EXPOSURE[: len(y)] * np.exp(f) - gammaln(y + 1)
        ),
        extreme=MANY,
    ),
    "negative binomial": LikelihoodCase(
        observe_negative_binomial, COUNTS, negative_binomial, {"alpha": 1.7}, extreme=MANY
    ),
    "normal": LikelihoodCase(
        observe_normal, REALS, lambda f, y: stats.norm.logpdf(y, f, 0.6), {"noise": 0.6}
    ),
    "student t": LikelihoodCase(
        observe_student_t,
        REALS,
        lambda f, y: stats.t.logpdf(y, 4.0, f, 0.6),
        {"noise": 0.6},
        log_concave=False,
    ),
    "gamma": LikelihoodCase(
        observe_gamma,
        np.array([0.7, 2.5, 1.1]),
        lambda f, y: stats.gamma.logpdf(y, 1.7, scale=np.exp(f) / 1.7),
        {"shape": 1.7},
        extreme=np.array([1e-6, 1e6, 1.0]),
    ),
    "ordered probit": LikelihoodCase(
        observe_ordered_probit,
        np.array([0, 2, 3]),
        ordered_probit,
        {"cutpoints": CUTPOINTS, "sigma": 0.7},
    ),
    "ordered logistic": LikelihoodCase(
        observe_ordered_logistic, np.array([1, 0, 3]), ordered_logistic, {"cutpoints": CUTPOINTS}
    ),
    "censored normal": LikelihoodCase(
        observe_censored, np.array([-1.0, 1.5, 0.3]), censored, {"noise": 0.6}
    ),
    "custom distribution": LikelihoodCase(
        observe_custom, REALS, lambda f, y: log_sech(y - f), extreme=np.array([1e3, -1e3, 0.0])
    ),
    "potential": LikelihoodCase(observe_potential, REALS, lambda f, y: log_sech(y - f)),
    "summed potential": LikelihoodCase(
        observe_summed_potential,
        np.array([0.7, 2.5, 1.1]),
        lambda f, y: stats.expon.logpdf(y, scale=np.exp(f) / 1.4),
        {"rate": 1.4},
    ),
    "repeated": LikelihoodCase(
        observe_repeatedly,
        COUNTS,
        lambda f, y: stats.poisson.logpmf(y, np.exp(f)) + stats.poisson.logpmf(y + 1, np.exp(f)),
    ),
    "two observed": LikelihoodCase(observe_twice, COUNTS, twice),
    "without data": LikelihoodCase(
        observe_sparsely,
        LABELS,
        lambda f, y: np.where(np.arange(len(y)) % 2 == 0, log_ndtr(np.where(y == 1, f, -f)), 0.0),
    ),
}


def build(name: str, parameterisation: str) -> pm.Model:
    """A new model of a case."""
    n, latent = PARAMETERISATIONS[parameterisation]
    case = CASES[name]
    with pm.Model() as model:
        case.observe(latent(n, pm.HalfNormal("scale", 1.0)), case.y[:n])
    return model


@cache
def read(name: str, parameterisation: str) -> LatentGaussianModel:
    """What is read of a case; shared by the tests, so that it is compiled once."""
    return read_model(build(name, parameterisation))


@cache
def at_parameters(name: str, parameterisation: str):
    """(prior, likelihood) of a case at its parameters."""
    model = read(name, parameterisation)
    theta = model.theta_from_natural({"scale": SCALE} | CASES[name].parameters)
    return model.prior(theta), model.bind_data()(theta)


@cache
def log_marginal(name: str, n: int) -> float:
    """log p(y) by the trapezoidal rule over whitened f, which converges exponentially."""
    case = CASES[name]
    step = 0.2 if n < 3 else 0.25
    z = np.arange(-8.0, 8.0 + step, step)
    grid = np.stack(np.meshgrid(*[z] * n, indexing="ij"), axis=-1).reshape(-1, n)
    f = MEAN[:n] + SCALE * grid @ np.linalg.cholesky(CORRELATION[:n, :n]).T
    log_terms = case.log_density(f, case.y[:n]).sum(-1) - 0.5 * (grid**2).sum(-1)
    return float(np.logaddexp.reduce(log_terms) + n * np.log(step / np.sqrt(2.0 * np.pi)))
