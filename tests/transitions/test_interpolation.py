"""Interpolation between values at some points, and the sites that are interpolated by it."""

import numpy as np
import pytest

from pymc_pseudomarginal.transitions.fitted_sites import FittedSites
from pymc_pseudomarginal.transitions.interpolation import Interpolation
from pymc_pseudomarginal.transitions.student_t import StudentT


def smooth(points):
    """Two functions of two numbers, shape (m, 2)."""
    x, y = points.T
    return np.stack([np.sin(x) * y, 100.0 + np.exp(0.3 * y - 0.1 * x**2)], axis=1)


@pytest.fixture(scope="module")
def fitted():
    points = np.random.default_rng(0).standard_normal((60, 2))
    return Interpolation.fitted(points, smooth(points))


def test_values_between_the_points_are_found(fitted):
    points = np.random.default_rng(1).uniform(-1.0, 1.0, (100, 2))
    values, unknown = fitted(points)
    np.testing.assert_allclose(values, smooth(points), atol=0.02)
    assert unknown.max() < 0.05


def test_far_from_the_points_nothing_is_known(fitted):
    values, unknown = fitted(np.array([[40.0, 0.0]]))
    np.testing.assert_allclose(values, fitted.level[None])
    np.testing.assert_allclose(unknown, 1.0)


def test_errors_are_those_of_values_that_are_left_out(fitted):
    """The short cut against the interpolation of all others."""
    points, inverse = fitted.points, fitted.inverse
    values = np.linalg.solve(inverse, fitted.coefficients)
    correlation = np.linalg.inv(inverse)
    for i in (0, 17):
        rest = np.delete(np.arange(len(points)), i)
        weights = np.linalg.solve(correlation[np.ix_(rest, rest)], correlation[rest, i])
        np.testing.assert_allclose(
            weights @ values[rest] - values[i], fitted.errors[i], rtol=1e-4, atol=1e-7
        )


def test_values_that_do_not_differ_are_kept():
    points = np.random.default_rng(0).standard_normal((12, 1))
    values, _ = Interpolation.fitted(points, np.full((12, 3), 2.5))(points)
    np.testing.assert_allclose(values, 2.5)


def test_sites_are_given_where_they_are_known():
    rng = np.random.default_rng(2)
    base = StudentT(np.array([1.0, -1.0]), np.diag([0.5, 2.0]))
    thetas = base.draw(rng, 60)
    sites = np.stack([np.exp(thetas @ [[0.1, 0.2], [0.0, 0.1]]), thetas], axis=1)
    fitted = FittedSites.fitted(base, thetas, sites)
    theta = base.centre + 0.1
    expected = np.stack([np.exp(theta @ [[0.1, 0.2], [0.0, 0.1]]), theta])
    np.testing.assert_allclose(fitted(theta), expected, atol=0.01)
    assert fitted(base.centre + np.array([20.0, 0.0])) is None
