"""HMC for f against a Gaussian posterior, by Geweke's test, and without its accept step."""

import numpy as np
import pytest
from problems import probit_problem
from stat_checks import LIMIT, assert_within, z_of_chains

from pymc_pseudomarginal.numerics import DensePrior, RootedPrior
from pymc_pseudomarginal.numerics.likelihoods import GaussianLikelihood, ProbitLikelihood
from pymc_pseudomarginal.transitions.latent_hmc import latent_hmc


@pytest.mark.parametrize("rooted", [False, True])
def test_a_gaussian_posterior_is_reproduced(rooted):
    m, K, _, _ = probit_problem(3, seed=0, mean=1.0)
    y, variance = np.array([1.0, -2.0, 0.5]), 0.5
    gain = K @ np.linalg.inv(K + variance * np.eye(3))
    mean, covariance = m + gain @ (y - m), K - gain @ K
    prior = RootedPrior(m, np.linalg.cholesky(K)) if rooted else DensePrior(m, K)
    rng, f, draws, accepted = np.random.default_rng(1), m, [], []
    likelihood = GaussianLikelihood(y, variance)
    for _ in range(6000):
        f, info = latent_hmc(rng, f, prior, likelihood, step_size=0.5, n_steps=3)
        draws.append(f)
        accepted.append(info.acceptance)
    assert 0.3 < np.mean(accepted) < 0.99  # coarse enough for the accept step to matter
    draws = np.array(draws)
    z = {f"mean {i}": z_of_chains(draws[None, :, i], mean[i]) for i in range(3)}
    for i in range(3):
        for j in range(i + 1):
            products = ((draws - mean)[:, i] * (draws - mean)[:, j])[None]
            z[f"covariance {i}{j}"] = z_of_chains(products, covariance[i, j])
    assert_within(z)


def geweke(step_size, *, always=False, draws=8000):
    """z-scores of prior moments of f, with labels drawn anew for each move."""
    m, K, _, _ = probit_problem(4, seed=1, mean=1.0, variance=20.0)
    rng, prior = np.random.default_rng(2), DensePrior(m, K)
    f = m + prior.colour(rng.standard_normal(4))
    found = []
    for _ in range(draws):
        y = (f + rng.standard_normal(4) > 0).astype(int)
        likelihood = ProbitLikelihood.from_labels(y)
        moved, info = latent_hmc(rng, f, prior, likelihood, step_size=step_size, n_steps=3)
        while always and not info.accepted:  # wrong: as if every trajectory were accepted
            moved, info = latent_hmc(rng, f, prior, likelihood, step_size=step_size, n_steps=3)
        f = moved
        found.append(f)
    found = np.array(found)
    z = {f"mean {i}": z_of_chains(found[None, :, i], m[i]) for i in range(4)}
    for i in range(4):
        z[f"square {i}"] = z_of_chains((found[None, :, i] - m[i]) ** 2, K[i, i])
    return z


def test_geweke_joint_distribution():
    assert_within(geweke(0.6))


def test_geweke_finds_a_sampler_that_accepts_everything():
    # Steps so coarse that what is accepted wrongly shows, and not yet so that hardly any is.
    z = geweke(0.8, always=True, draws=4000)
    assert max(abs(value) for value in z.values()) > LIMIT


def test_small_steps_are_accepted_and_reversible():
    m, K, _, likelihood = probit_problem(5, seed=2)
    prior = DensePrior(m, K)
    f, info = latent_hmc(
        np.random.default_rng(0), m + 0.1, prior, likelihood, step_size=1e-3, n_steps=20
    )
    assert info.acceptance > 0.9999
    assert info.evaluations == 21
    assert not np.array_equal(f, m + 0.1)


def test_what_overflows_is_rejected():
    class Cliff:
        def log_density(self, f):
            return float(-np.exp(np.abs(f)).sum())

        def derivatives(self, f):
            return -np.sign(f) * np.exp(np.abs(f)), np.exp(np.abs(f))

    m, K, _, _ = probit_problem(3, seed=0)
    f, info = latent_hmc(
        np.random.default_rng(0), m + 5.0, DensePrior(m, K), Cliff(), step_size=1.5, n_steps=10
    )
    assert info.acceptance == 0.0
    np.testing.assert_array_equal(f, m + 5.0)
