"""`PseudoMarginalStep` through `pm.sample` against posteriors known by quadrature."""

from dataclasses import replace
from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm, poisson
from stat_checks import LIMIT, assert_within, z_of_chains

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.reading import LatentGaussianModel

GROUP = np.repeat(np.arange(4), 3)
REALS = np.array([0.4, 1.3, 0.2, -1.1, -0.3, -0.9, 2.0, 1.1, 1.8, 0.1, 0.9, -0.2])
COUNTS = np.array([1, 0, 2, 5, 7, 4, 0, 0, 1, 2, 3, 2])
BETWEEN, WITHIN = (-0.3, 0.8), (-0.5, 0.5)  # means and sds of log tau and log sigma


def normal_model():
    with pm.Model() as model:
        tau, sigma = pm.LogNormal("tau", *BETWEEN), pm.LogNormal("sigma", *WITHIN)
        mu = pm.Normal("mu", 0.0, 1.5)
        u = pm.Normal("u", mu, tau, shape=4)
        pm.Normal("y", u[GROUP], sigma, observed=REALS)
    return model


@cache
def normal_truth():
    """A grid over theta; given theta, x = (mu, u) and y are jointly normal."""
    axes = [np.linspace(-4.5, 3.0, 51), np.linspace(-2.2, 1.2, 35)]
    pieces = [normal_piece(a, b) for a in axes[0] for b in axes[1]]
    return weighted(pieces)


def normal_piece(log_tau, log_sigma):
    tau, sigma = np.exp(log_tau), np.exp(log_sigma)
    # x = F e and y = Z x + noise for independent standard normals e.
    F = np.block(
        [[np.full((1, 1), 1.5), np.zeros((1, 4))], [np.full((4, 1), 1.5), tau * np.eye(4)]]
    )
    Z = np.eye(5)[GROUP + 1]
    prior = F @ F.T
    marginal = Z @ prior @ Z.T + sigma**2 * np.eye(12)
    gain = prior @ Z.T @ np.linalg.inv(marginal)
    mean, variance = gain @ REALS, np.diagonal(prior - gain @ Z @ prior)
    level = norm.logpdf(log_tau, *BETWEEN) + norm.logpdf(log_sigma, *WITHIN)
    level += multivariate_normal.logpdf(REALS, np.zeros(12), marginal)
    return level, functions((log_tau, log_sigma), mean, mean**2 + variance)


def functions(theta, x, x_squared):
    """Test functions that are linear in x and x², so that their mean given theta is known."""
    found = {f"theta{i}": t for i, t in enumerate(theta)}
    found |= {f"theta{i}²": t**2 for i, t in enumerate(theta)}
    for k in range(np.shape(x)[-1]):
        found |= {f"x{k}": x[..., k], f"x{k}²": x_squared[..., k]}
        found |= {f"theta0 x{k}": theta[0] * x[..., k]}
        found |= {f"theta0 x{k}²": theta[0] * x_squared[..., k]}
    return found


def weighted(pieces):
    levels = np.array([level for level, _ in pieces])
    shares = np.exp(levels - logsumexp(levels))
    return {k: float(shares @ np.array([values[k] for _, values in pieces])) for k in pieces[0][1]}


def counts_model():
    with pm.Model() as model:
        tau = pm.LogNormal("tau", *BETWEEN)
        u = pm.Normal("u", 0.0, tau, shape=4)
        pm.Poisson("y", pm.math.exp(0.6 + u[GROUP]), observed=COUNTS)
    return model


@cache
def counts_truth():
    """A grid over theta; given theta the elements of x are independent: a quadrature each."""
    return weighted([counts_piece(log_tau) for log_tau in np.linspace(-5.0, 3.5, 121)])


def counts_piece(log_tau):
    grid = np.linspace(-12.0, 12.0, 4001) * min(np.exp(log_tau), 1.0)
    level, moments = norm.logpdf(log_tau, *BETWEEN), []
    for k in range(4):
        own = COUNTS[np.flatnonzero(k == GROUP)]
        logs = norm.logpdf(grid, 0.0, np.exp(log_tau))
        logs += poisson.logpmf(own[:, None], np.exp(0.6 + grid)).sum(axis=0)
        level += logsumexp(logs) + np.log(grid[1] - grid[0])
        shares = np.exp(logs - logsumexp(logs))
        moments.append((shares @ grid, shares @ grid**2))
    x, x_squared = np.array(moments).T
    return level, functions((log_tau,), x, x_squared)


def of_normal(posterior):
    x = np.concatenate([posterior["mu"].values[..., None], posterior["u"].values], axis=-1)
    theta = (np.log(posterior["tau"].values), np.log(posterior["sigma"].values))
    return functions(theta, x, x**2)


def of_counts(posterior):
    x = posterior["u"].values
    return functions((np.log(posterior["tau"].values),), x, x**2)


CASES = {
    "normal": (normal_model, of_normal, normal_truth),
    "counts": (counts_model, of_counts, counts_truth),
}


def z_scores(name, draws=1500):
    build, of, truth = CASES[name]
    with build():
        idata = pm.sample(
            draws,
            chains=2,
            cores=1,
            step=pmpm.PseudoMarginal(),
            random_seed=6,
            progressbar=False,
            compute_convergence_checks=False,
        )
    expected = truth()
    found = of(idata["posterior"])
    return {key: z_of_chains(values, expected[key]) for key, values in found.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_posterior_is_that_of_quadrature(name):
    assert_within(z_scores(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_posterior_of_many_draws_is_that_of_quadrature(name):
    assert_within(z_scores(name, draws=20_000))


@pytest.mark.parametrize("name", CASES)
def test_a_prior_of_x_without_its_determinant_is_found(name, monkeypatch):
    whole = LatentGaussianModel.at

    def at(self, theta):
        there = whole(self, theta)
        return replace(there, prior=replace(there.prior, constant=0.0))

    monkeypatch.setattr(LatentGaussianModel, "at", at)
    monkeypatch.setattr("pymc_pseudomarginal.reading.reader._check_identity", lambda *_: None)
    z = z_scores(name, draws=500)
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT
