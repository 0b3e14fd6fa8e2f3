import numpy as np
import pytest
from problems import probit_problem
from scipy.stats import multivariate_normal
from stat_checks import assert_within, z_of_chains

from pymc_pseudomarginal.numerics import DensePrior
from pymc_pseudomarginal.numerics.likelihoods import GaussianLikelihood, ProbitLikelihood
from pymc_pseudomarginal.transitions.elliptical_slice import (
    Bracket,
    elliptical_slice,
    on_ellipse,
    shrink,
)

WHOLE = 2.0 * np.pi


@pytest.mark.parametrize(("moves", "width"), [(1, WHOLE), (3, WHOLE), (3, 1.0)])
def test_a_gaussian_posterior_is_reproduced(moves, width):
    m, K, _, _ = probit_problem(3, seed=0, mean=1.0)
    y, variance = np.array([1.0, -2.0, 0.5]), 0.5
    gain = K @ np.linalg.inv(K + variance * np.eye(3))
    mean, covariance = m + gain @ (y - m), K - gain @ K
    rng, f, draws = np.random.default_rng(1), m, []
    prior, likelihood = DensePrior(m, K), GaussianLikelihood(y, variance)
    for _ in range(8000):
        f, info = elliptical_slice(rng, f, prior, likelihood, moves=moves, width=width)
        draws.append(f)
        assert info.evaluations >= moves + 1
        assert 0.0 < info.angle <= min(width, np.pi)
    assert info.log_likelihood == pytest.approx(float(likelihood.log_density(f)))
    draws = np.array(draws)
    centred = draws - mean
    z = {f"mean {i}": z_of_chains(draws[None, :, i], mean[i]) for i in range(3)}
    for i in range(3):
        for j in range(i + 1):
            products = (centred[:, i] * centred[:, j])[None]
            z[f"covariance {i}{j}"] = z_of_chains(products, covariance[i, j])
    assert_within(z)


@pytest.mark.parametrize("width", [WHOLE, 2.5])
def test_geweke_joint_distribution_given_theta(width):
    """Labels given f, then f given labels: f must keep its prior (mean and all)."""
    m, K, _, _ = probit_problem(4, seed=1, mean=1.0)
    rng, prior = np.random.default_rng(2), DensePrior(m, K)
    f = m + prior.colour(rng.standard_normal(4))
    draws = []
    for _ in range(12_000):
        y = (f + rng.standard_normal(4) > 0).astype(int)
        f, _ = elliptical_slice(rng, f, prior, ProbitLikelihood.from_labels(y), width=width)
        draws.append(f)
    draws = np.array(draws)
    z = {}
    for i in range(4):
        z[f"mean {i}"] = z_of_chains(draws[None, :, i], m[i])
        z[f"square {i}"] = z_of_chains((draws[None, :, i] - m[i]) ** 2, K[i, i])
    z["product"] = z_of_chains((draws[:, 0] - m[0])[None] * (draws[:, 1] - m[1]), K[0, 1])
    assert_within(z)


def test_the_ellipse_passes_through_both_points_and_keeps_the_prior():
    a, b = np.array([1.0, 2.0]), np.array([-3.0, 0.5])
    np.testing.assert_allclose(on_ellipse(a, b, 0.0), a)
    np.testing.assert_allclose(on_ellipse(a, b, np.pi / 2), b)
    # A rotation of the pair (a, b) leaves their joint Gaussian density unchanged.
    normal = multivariate_normal(np.zeros(2), [[2.0, 0.3], [0.3, 1.0]])
    rotated = on_ellipse(a, b, 0.7), on_ellipse(b, -a, 0.7)
    before, after = normal.logpdf([a, b]).sum(), normal.logpdf(rotated).sum()
    assert after == pytest.approx(before)


def test_the_bracket_always_contains_the_current_point():
    assert shrink([-6.0, 0.28], -2.0) == [-2.0, 0.28]
    assert shrink([-2.0, 0.28], 0.1) == [-2.0, 0.1]


def test_a_bracket_is_learnt_from_the_moves_and_never_wider_than_the_ellipse():
    bracket = Bracket()
    for _ in range(99):
        bracket = bracket.updated(0.1)
    assert bracket.learnt().width == WHOLE  # too few
    assert bracket.updated(0.1).width == WHOLE  # not before it is asked to
    assert bracket.updated(0.1).learnt().width == pytest.approx(0.6)
    for _ in range(400):
        bracket = bracket.updated(0.2)
    assert bracket.learnt().width == pytest.approx(1.2, rel=0.05)  # of those before little is left
    for _ in range(400):
        bracket = bracket.updated(2.0)
    assert bracket.learnt().width == WHOLE
    assert Bracket(moves=200).learnt().width == WHOLE  # f that has never moved


def test_a_narrow_bracket_asks_for_fewer_evaluations_where_the_data_say_much():
    m, K, _, _ = probit_problem(3, seed=0)
    likelihood = GaussianLikelihood(np.array([1.0, -2.0, 0.5]), 1e-3)
    counts = {}
    for width in (WHOLE, 0.3):
        rng, f, counts[width] = np.random.default_rng(5), m, 0
        for _ in range(500):
            f, info = elliptical_slice(rng, f, DensePrior(m, K), likelihood, width=width)
            counts[width] += info.evaluations
    assert counts[0.3] < 0.8 * counts[WHOLE]


def test_no_better_point_leaves_f_where_it_is():
    class Spike:
        """Finite at one point only."""

        def __init__(self, at):
            self.at = at

        def log_density(self, f):
            return 0.0 if np.array_equal(f, self.at) else -np.inf

    m, K, _, _ = probit_problem(3, seed=0)
    f, info = elliptical_slice(np.random.default_rng(0), m, DensePrior(m, K), Spike(m))
    np.testing.assert_array_equal(f, m)
    assert info.angle == 0.0


def test_zero_moves_are_allowed():
    m, K, _, likelihood = probit_problem(3, seed=0)
    f, info = elliptical_slice(
        np.random.default_rng(0), m + 1, DensePrior(m, K), likelihood, moves=0
    )
    np.testing.assert_allclose(f, m + 1)
    assert info.evaluations == 1
