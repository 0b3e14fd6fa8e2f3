"""The normals behind a given draw, and those of a point set that is shifted at random."""

import numpy as np
import pytest
from problems import probit_problem
from scipy.stats import kstest
from stat_checks import LIMIT, assert_within, z_of_independent

from pymc_pseudomarginal.numerics import APPROXIMATIONS, Approximation, DensePrior, RootedPrior
from pymc_pseudomarginal.numerics.conditional_normals import normals_given
from pymc_pseudomarginal.numerics.importance import draw
from pymc_pseudomarginal.numerics.shifted_points import (
    shift_between,
    shifted_normals,
    sobol_points,
)


def rooted(m, K):
    """A prior with a root of K that is not triangular."""
    values, vectors = np.linalg.eigh(K)
    return RootedPrior(m, vectors * np.sqrt(values))


PRIORS = {"dense": DensePrior, "rooted": rooted}


def problem(approximation, prior, n=6):
    m, K, _, likelihood = probit_problem(n, seed=3, mean=2.0)
    return APPROXIMATIONS[approximation](PRIORS[prior](m, K), likelihood)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_normals_given_f_are_those_of_f_and_the_regression_on_f(approximation, prior):
    q = problem(approximation, prior)
    rng = np.random.default_rng(0)
    u, f = rng.standard_normal((2, 6)), q.mean + rng.standard_normal(6)
    given = normals_given(q, f, u)
    np.testing.assert_allclose(draw(q, given[:, None])[0], f, rtol=1e-10)
    # f = mu + A u: the columns of A are the draws of the unit vectors. Given f, u is a fresh
    # one moved by Aᵀ (A Aᵀ)^-1 (f - mu - A u), as for any two jointly normal vectors.
    units = np.eye(12).reshape(12, 2, 6).swapaxes(0, 1)
    A = (draw(q, units) - q.mean).T
    moved = u.ravel() + A.T @ np.linalg.solve(A @ A.T, f - q.mean - A @ u.ravel())
    np.testing.assert_allclose(given.ravel(), moved, rtol=1e-5, atol=1e-5)


def test_over_draws_from_q_the_normals_given_f_are_standard_normal():
    q = problem("laplace", "dense", n=3)
    rng = np.random.default_rng(1)
    draws = np.array(
        [
            normals_given(q, f, rng.standard_normal((2, 3))).ravel()
            for f in draw(q, rng.standard_normal((2, 2500, 3)))
        ]
    )
    assert_within({i: z_of_independent(draws[:, i], 0.0) for i in range(6)})
    assert_within(
        {
            (i, j): z_of_independent(draws[:, i] * draws[:, j], float(i == j))
            for i in range(6)
            for j in range(i + 1)
        }
    )
    assert kstest(draws.ravel(), "norm").pvalue > 1e-4


def test_where_a_site_says_nothing_its_noise_stays():
    m, K, _, _ = probit_problem(4, seed=0)
    none = np.zeros(4)
    q = Approximation(DensePrior(m, K), m, none, DensePrior(m, K).condition(none), 0, 0, True, m)
    u = np.random.default_rng(0).standard_normal((2, 4))
    given = normals_given(q, m + 1.0, u)
    np.testing.assert_array_equal(given[1], u[1])
    np.testing.assert_allclose(given[0], q.prior.whiten(m + 1.0))


# Shifted points.


@pytest.mark.parametrize("n_points", [1, 2, 8, 64])
def test_a_power_of_two_of_points_is_balanced_in_every_coordinate(n_points):
    points = sobol_points(n_points, 30)
    assert points.shape == (2, n_points, 30)
    expected = np.arange(n_points) / n_points
    ordered = np.sort(points, axis=1)
    np.testing.assert_array_equal(ordered, np.broadcast_to(expected[:, None], ordered.shape))


def test_any_number_of_points_is_the_beginning_of_one_sequence():
    np.testing.assert_array_equal(sobol_points(5, 4), sobol_points(8, 4)[:, :5])


def test_shifted_points_come_in_antithetic_pairs():
    normals = shifted_normals(sobol_points(16, 200), np.random.default_rng(0).random((2, 200)))
    np.testing.assert_allclose(normals[:, ::2], -normals[:, 1::2], atol=1e-12)


def test_the_points_are_kept_and_protected():
    points = sobol_points(4, 7)
    assert sobol_points(4, 7) is points
    with pytest.raises(ValueError, match="read-only"):
        points[0, 0, 0] = 0.5


def test_dimensions_beyond_the_sequence_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"10600 latent values; found 10601\. Take antithetic"):
        sobol_points(2, 10_601)


def test_every_point_gives_standard_normals_that_are_independent_of_each_other():
    rng = np.random.default_rng(2)
    points = sobol_points(4, 2)
    draws = np.array([shifted_normals(points, rng.random((2, 2))) for _ in range(2500)])
    for k in range(4):
        of_one = draws[:, :, k].reshape(-1, 4)
        products = {(i, j): of_one[:, i] * of_one[:, j] for i in range(4) for j in range(i + 1)}
        assert_within({p: z_of_independent(x, float(p[0] == p[1])) for p, x in products.items()})
        assert kstest(of_one.ravel(), "norm").pvalue > 1e-4


@pytest.mark.parametrize("k", range(5))
def test_a_point_and_its_normals_give_the_shift(k):
    rng = np.random.default_rng(k)
    points = sobol_points(5, 6)
    shift = rng.random((2, 6))
    normals = shifted_normals(points, shift)
    upper = (points[:, k] + shift) % 1.0 > 0.5
    found = shift_between(points[:, k], normals[:, k], upper)
    np.testing.assert_allclose(found, shift, atol=1e-14)
    # Either side of the fold gives the same point, and other companions but for its image.
    other = shifted_normals(points, shift_between(points[:, k], normals[:, k], ~upper))
    np.testing.assert_allclose(other[:, k], normals[:, k], atol=1e-12)
    j = (k + 2) % 5
    assert not np.isclose(other[:, j], normals[:, j]).any()


def test_the_normals_are_finite_whatever_the_shift():
    points = sobol_points(4, 3)
    below = np.nextafter(1.0, 0.0)
    for value in (0.0, 0.25, below, 1.0):
        assert np.abs(shifted_normals(points, np.full((2, 3), value))).max() < 8.3
    for z in (-40.0, -8.5, 0.0, 8.5, 40.0):
        shift = shift_between(points[:, 1], np.full((2, 3), z), np.arange(3) < 1)
        assert np.isfinite(shifted_normals(points, shift)).all()


def test_a_shifted_set_integrates_a_smooth_function_better_than_independent_draws():
    """The reason for it: here a sum of functions of one coordinate each."""
    rng = np.random.default_rng(3)
    points = sobol_points(16, 2)

    def mean(u):
        return np.exp(0.5 * u).sum(axis=(0, 2)).mean()

    shifted = [mean(shifted_normals(points, rng.random((2, 2)))) for _ in range(500)]
    independent = [mean(rng.standard_normal((2, 16, 2))) for _ in range(500)]
    assert np.std(shifted) < 0.3 * np.std(independent)
    assert abs(z_of_independent(shifted, 4 * np.exp(0.125))) < LIMIT
