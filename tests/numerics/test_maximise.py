"""Climbing functions with known optima, some of which fail on the way."""

import numpy as np
import pytest

from pymc_pseudomarginal.numerics import NoFiniteApproximation
from pymc_pseudomarginal.numerics.maximise import climb, curvature_covariance, unbounded_elements

BOX = np.array([[-10.0, -10.0], [10.0, 10.0]])
PRECISION = np.array([[2.0, 0.6], [0.6, 1.0]])
MODE = np.array([0.5, -1.0])


def quadratic(theta):
    return -0.5 * (theta - MODE) @ PRECISION @ (theta - MODE), -PRECISION @ (theta - MODE)


def saturating(theta):
    """Bounded in the first element, rising for ever in the second."""
    value = -0.5 * theta[0] ** 2 - np.exp(-2.0 * theta[1])
    return value, np.array([-theta[0], 2.0 * np.exp(-2.0 * theta[1])])


def failing_beyond(limit, function=quadratic):
    def fails(theta):
        if theta.sum() > limit:
            raise NoFiniteApproximation("too far")
        return function(theta)

    return fails


def test_a_quadratic_and_its_curvature():
    found = climb(quadratic, np.array([4.0, 4.0]), BOX)
    assert found.converged
    assert found.value == pytest.approx(0.0, abs=1e-10)
    np.testing.assert_allclose(found.theta, MODE, atol=1e-5)
    assert not unbounded_elements(quadratic, found, BOX).any()
    covariance = curvature_covariance(quadratic, found.theta, np.full(2, True), BOX)
    np.testing.assert_allclose(covariance, np.linalg.inv(PRECISION), rtol=1e-8)
    first = curvature_covariance(quadratic, found.theta, np.array([True, False]), BOX)
    assert first[0, 0] == pytest.approx(0.5)
    assert np.isnan(first[[0, 1, 1], [1, 0, 1]]).all()


def test_the_line_search_steps_back_from_failures():
    cautious = failing_beyond(0.0)  # the mode is just inside, the long way round
    found = climb(cautious, np.array([-9.0, 8.0]), BOX)
    assert found.converged
    np.testing.assert_allclose(found.theta, MODE, atol=1e-4)


def test_a_start_that_fails_is_recorded():
    found = climb(failing_beyond(0.0), np.array([4.0, 4.0]), BOX)
    assert found.value == -np.inf
    assert not found.converged
    assert np.isnan(found.theta).all()
    assert found.evaluations == 1


def test_an_optimum_on_the_edge_is_converged_and_unbounded():
    box = np.array([[-10.0, -10.0], [0.0, 10.0]])
    found = climb(quadratic, np.array([-3.0, 3.0]), box)
    assert found.converged
    assert found.theta[0] == 0.0
    assert unbounded_elements(quadratic, found, box).tolist() == [True, False]


def test_a_function_that_flattens_out_is_unbounded_wherever_the_climb_ends():
    found = climb(saturating, np.array([2.0, 0.0]), BOX)
    assert found.converged
    assert found.theta[1] < 10.0
    assert unbounded_elements(saturating, found, BOX).tolist() == [False, True]
    blocked = failing_beyond(9.0, saturating)
    assert not unbounded_elements(blocked, found, BOX).any()


@pytest.mark.parametrize(
    "hessian", [np.array([[-1.0, 2.0], [2.0, -1.0]]), np.array([[-1.0, 1.0], [1.0, -1.001]])]
)
def test_a_saddle_or_a_flat_direction_has_no_covariance(hessian):
    def function(theta):
        return 0.5 * theta @ hessian @ theta, hessian @ theta

    box = BOX / 10.0
    assert np.isnan(curvature_covariance(function, np.zeros(2), np.full(2, True), box)).all()


def test_failures_next_to_the_optimum_leave_no_covariance():
    fails = failing_beyond(MODE.sum())
    assert np.isnan(curvature_covariance(fails, MODE, np.full(2, True), BOX)).all()
