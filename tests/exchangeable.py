"""A tiny model in which f and its variance s are strongly coupled, with exact answers.

f ~ N(0, s C) with C = rho 1 1ᵀ + (1 - rho) I, n = 5 probit labels, theta = log s with
a wide normal prior. Given a common value g ~ N(0, s rho) the f_i are independent
N(g, s (1 - rho)), so that the posterior is a two-dimensional integral over (s, g) with
closed forms inside.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma
from scipy.stats import norm
from stat_checks import z_of_chains

from pymc_pseudomarginal.numerics import APPROXIMATIONS, DensePrior
from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional

N_LATENT = 5
RHO = 0.5
CORRELATION = RHO * np.ones((N_LATENT, N_LATENT)) + (1 - RHO) * np.eye(N_LATENT)
THETA_SD = 2.0
LABELS = np.ones(N_LATENT, dtype=int)


def log_prior(theta):
    """log p(theta) for theta = (log s,)."""
    return float(norm.logpdf(theta[0], 0.0, THETA_SD))


@dataclass
class ExchangeableModel:
    """theta -> Conditional for given labels, as the transitions want it."""

    approximation: str
    labels: np.ndarray

    def __call__(self, theta):
        likelihood = ProbitLikelihood.from_labels(self.labels)
        prior = DensePrior(np.zeros(N_LATENT), np.exp(theta[0]) * CORRELATION)
        q = APPROXIMATIONS[self.approximation](prior, likelihood)
        return Conditional(theta, log_prior(theta), likelihood, q)


def draw_from_prior(rng):
    """(theta, f, labels) from the joint distribution."""
    theta = THETA_SD * rng.standard_normal(1)
    f = np.exp(theta / 2) * (np.linalg.cholesky(CORRELATION) @ rng.standard_normal(N_LATENT))
    return theta, f, draw_labels(rng, f)


def draw_labels(rng, f):
    """Labels from p(y|f)."""
    return (rng.uniform(size=N_LATENT) < norm.cdf(f)).astype(int)


def test_functions(theta, f):
    """What is compared, as a dict of arrays: theta (draws,), f (draws, n).

    f is scaled by its prior standard deviation: f itself has the tails of a lognormal
    variable, for which the z-score of a mean is far from normal.
    """
    s = np.exp(theta)
    # Chi-squared with n degrees of freedom under the prior, whatever theta is.
    q = np.einsum("...i,ij,...j", f, np.linalg.inv(CORRELATION), f) / s
    return {
        "theta": theta,
        "theta²": theta**2,
        "f/√s": f[..., 0] / np.sqrt(s),
        "f²/s": f[..., 0] ** 2 / s,
        "f₁f₂/s": f[..., 0] * f[..., 1] / s,
        "theta f²/s": theta * f[..., 0] ** 2 / s,
        "log q": np.log(q),
        "theta log q": theta * np.log(q),
    }


test_functions.__test__ = False  # a name of the theory, not a test


def chain_z_scores(transition, *, geweke, draws, seed=4):
    """z-scores of the test functions over a chain of (theta, f).

    `transition` takes (rng, labels, theta, f) to the next (theta, f). With `geweke` the labels are
    drawn anew from p(y|f) before every transition, and the draws must follow the prior;
    else they are LABELS, and the posterior is known.
    """
    rng = np.random.default_rng(seed)
    theta, f, _ = draw_from_prior(rng)
    thetas, latents = [], []
    for _ in range(draws):
        labels = draw_labels(rng, f) if geweke else LABELS
        theta, f = transition(rng, labels, theta, f)
        thetas.append(theta[0])
        latents.append(f)
    found = test_functions(np.array(thetas), np.array(latents))
    truth = prior_expectations() if geweke else posterior_expectations()
    return {name: z_of_chains(found[name][None], value) for name, value in truth.items()}


def prior_expectations():
    """Prior expectations of the test functions, in closed form."""
    return {
        "theta": 0.0,
        "theta²": THETA_SD**2,
        "f/√s": 0.0,
        "f²/s": 1.0,
        "f₁f₂/s": RHO,
        "theta f²/s": 0.0,
        "log q": digamma(N_LATENT / 2) + np.log(2.0),
        "theta log q": 0.0,
    }


def posterior_expectations():
    """Posterior expectations given LABELS of those test functions that allow quadrature."""
    theta, theta_weight = _panel(-12.0, 12.0, 400)
    g, g_weight = _panel(-8.0, 8.0, 2000)  # in prior standard deviations
    s = np.exp(theta)[:, None]
    common = g * np.sqrt(s * RHO)
    site = ProbitLikelihood(np.ones(1))
    tilted = site.tilted_moments(common, s * (1 - RHO))
    log_weight = (
        np.array([log_prior([t]) for t in theta])[:, None]
        + norm.logpdf(g)
        + N_LATENT * tilted.log_normaliser
        + np.log(theta_weight)[:, None]
        + np.log(g_weight)
    )
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    first, square = tilted.mean, tilted.variance + tilted.mean**2
    theta = theta[:, None]
    integrands = {
        "theta": theta,
        "theta²": theta**2,
        "f/√s": first / np.sqrt(s),
        "f²/s": square / s,
        "f₁f₂/s": first**2 / s,  # independent given g
        "theta f²/s": theta * square / s,
    }
    return {name: float((weight * value).sum()) for name, value in integrands.items()}


def _panel(lower, upper, n):
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (upper - lower) * nodes + 0.5 * (upper + lower), 0.5 * (upper - lower) * weights
