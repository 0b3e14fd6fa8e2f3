"""The prediction of where Newton and EP start."""

import numpy as np

from pymc_pseudomarginal.transitions.warm_start import WarmStart


def anchor_at(theta):
    """A linear function of theta, shaped as the sites of EP."""
    return np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0]]) + theta[0] - 2.0 * theta[1]


def learnt(thetas):
    state = WarmStart.starting_at(thetas[0], anchor_at(thetas[0]))
    for theta in thetas:
        state = state.updated(theta, anchor_at(theta))
    return state


def test_a_linear_anchor_is_predicted():
    thetas = np.random.default_rng(0).normal([3.0, -1.0], [0.5, 2.0], (300, 2))
    prediction = learnt(thetas).refitted().prediction
    for theta in ([3.0, -1.0], [3.4, 1.0], [2.5, -3.0]):
        found, expected = prediction(np.array(theta)), anchor_at(np.array(theta))
        assert found.shape == expected.shape
        # The ridge shrinks the slope by a thousandth.
        np.testing.assert_allclose(found, expected, atol=0.03)


def test_far_away_it_is_the_prediction_at_the_edge():
    thetas = np.random.default_rng(0).normal(size=(200, 2))
    prediction = learnt(thetas).refitted().prediction
    far, further = prediction(np.array([50.0, 0.0])), prediction(np.array([500.0, 0.0]))
    np.testing.assert_array_equal(far, further)
    assert np.abs(far - anchor_at(np.zeros(2))).max() < 4.0


def test_the_start_of_the_chain_is_forgotten():
    thetas = np.random.default_rng(0).normal(size=(400, 2))
    thetas[:20] += 100.0
    theta = learnt(thetas).theta
    assert np.abs(theta).max() < 0.3


def test_the_prediction_changes_only_when_the_draws_have_doubled():
    thetas = np.random.default_rng(0).normal(size=(20, 2))
    state = WarmStart.starting_at(thetas[0], anchor_at(thetas[0]))
    changes = []
    for draw, theta in enumerate(thetas, start=1):
        after = state.updated(theta, anchor_at(theta))
        if after.prediction is not state.prediction:
            changes.append(draw)
        state = after
    assert changes == [1, 2, 4, 8, 16]


def test_a_theta_that_never_moves_is_no_difficulty():
    theta = np.array([1.0, 2.0])
    prediction = learnt([theta] * 10).refitted().prediction
    np.testing.assert_array_equal(prediction(theta + 1.0), anchor_at(theta))
