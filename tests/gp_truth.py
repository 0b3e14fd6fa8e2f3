"""A simulated GP probit problem with n = 100 and the posterior of its hyper-parameters.

The truth is a brute-force grid over (log ls, log sigma): at every node the marginal
likelihood by importance sampling from EP with 200 draws, times the prior. The Monte
Carlo error of a node is about 3 %, independent from node to node, so that of the
posterior means is below a hundredth of a posterior standard deviation.
"""

from functools import cache

import numpy as np
import pymc as pm
from problems import exp_quad
from scipy.spatial.distance import cdist
from scipy.stats import gamma, norm

from pymc_pseudomarginal.numerics import (
    DensePrior,
    expectation_propagation,
    importance_set,
    laplace,
)
from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood

N_DATA = 100
LS_SHAPE, LS_RATE = 3.0, 6.0
SIGMA_SHAPE, SIGMA_RATE = 3.0, 0.6


@cache
def data():
    """(X, labels) drawn from the model with ls = 0.3, sigma = 5."""
    rng = np.random.default_rng(20)
    X = rng.uniform(size=(N_DATA, 2))
    f = np.linalg.cholesky(exp_quad(X, 0.3, 5.0)) @ rng.standard_normal(N_DATA)
    return X, (f + rng.standard_normal(N_DATA) > 0).astype(int)


X_NEW = np.array([[0.5, 0.5], [0.05, 0.9], [0.8, 0.3], [1.5, 0.5]])
"""New inputs: among the data, at their edge, and outside."""


def gp_model(*, reparameterize=True):
    """(the PyMC model of these data, its process)."""
    X, y = data()
    with pm.Model() as model:
        ls = pm.Gamma("ls", LS_SHAPE, LS_RATE)
        sigma = pm.Gamma("sigma", SIGMA_SHAPE, SIGMA_RATE)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(2, ls=ls))
        f = gp.prior("f", X=X, reparameterize=reparameterize)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)
    return model, gp


def quantities(ls, sigma, f):
    """What is compared: functions of log ls, log sigma and the first latent."""
    log_ls, log_sigma = np.log(ls), np.log(sigma)
    return {
        "log ls": log_ls,
        "log sigma": log_sigma,
        "log ls²": log_ls**2,
        "log sigma²": log_sigma**2,
        "log ls log sigma": log_ls * log_sigma,
        "f": f,
        "f²": f**2,
        "f²/sigma": f**2 / sigma,
    }


def predictive_probabilities(prior, f, ls, sigma):
    """p(y* = 1|f, theta) at each new input for draws f of shape (N, n), by name."""
    cross = sigma * np.exp(-0.5 * cdist(data()[0], X_NEW, "sqeuclidean") / ls**2)
    solved = np.linalg.solve(prior.covariance, cross)
    variance = sigma - np.sum(cross * solved, axis=0)
    p = norm.cdf(f @ solved / np.sqrt(1.0 + variance))
    return {f"p at {x}": p[:, i] for i, x in enumerate(X_NEW)}


@cache
def laplace_expectations():
    """Expectations of the same quantities under p(theta) Z_LA(theta) q(f)."""
    X, y = data()
    likelihood = ProbitLikelihood.from_labels(y)
    totals, log_weights = [], []
    for ls, sigma, log_prior in grid():
        q = laplace(DensePrior(np.zeros(N_DATA), exp_quad(X, ls, sigma)), likelihood)
        log_weights.append(q.log_marginal + log_prior)
        mean, variance = q.mean[0], q.factor.marginal_variances()[0]
        values = quantities(ls, sigma, mean)
        values |= {"f²": mean**2 + variance, "f²/sigma": (mean**2 + variance) / sigma}
        totals.append(values)
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    return {name: float(weights @ [t[name] for t in totals]) for name in totals[0]}


def grid():
    """(ls, sigma, log prior density of their logarithms) at every node."""
    for log_ls in np.linspace(-2.6, 0.7, 34):
        for log_sigma in np.linspace(-1.0, 3.4, 30):
            ls, sigma = np.exp(log_ls), np.exp(log_sigma)
            log_prior = gamma.logpdf(ls, LS_SHAPE, scale=1 / LS_RATE) + log_ls
            log_prior += gamma.logpdf(sigma, SIGMA_SHAPE, scale=1 / SIGMA_RATE) + log_sigma
            yield ls, sigma, log_prior


@cache
def expectations():
    """Posterior expectations of the quantities on the grid, and p(y* = 1|y) at the new inputs."""
    X, y = data()
    likelihood = ProbitLikelihood.from_labels(y)
    rng = np.random.default_rng(0)
    totals, log_weights = [], []
    for ls, sigma, log_prior in grid():
        q = expectation_propagation(
            DensePrior(np.zeros(N_DATA), exp_quad(X, ls, sigma)), likelihood
        )
        draws = importance_set(q, likelihood, rng.standard_normal((2, 200, N_DATA)))
        log_weights.append(draws.log_estimate + log_prior)
        weights = np.exp(draws.log_weights - draws.log_estimate) / 200
        values = quantities(np.full(200, ls), np.full(200, sigma), draws.samples[:, 0])
        values |= predictive_probabilities(q.prior, draws.samples, ls, sigma)
        totals.append({name: float(weights @ value) for name, value in values.items()})
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    return {name: float(weights @ [t[name] for t in totals]) for name in totals[0]}
