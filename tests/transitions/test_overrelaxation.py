"""Overrelaxation: balance between the members of a pool, and draws that lie opposite each other."""

from functools import cache

import numpy as np
from scipy.special import ndtri
from scipy.stats import kstest
from stat_checks import LIMIT, assert_within, z_of_independent

from pymc_pseudomarginal.transitions.overrelaxation import opposite_member, opposite_position

PLACES = np.array([0.3, -1.0, 2.0, 0.1, -0.2])
WEIGHTS = np.array([0.9, 0.2, 0.5, 1.0, 0.05])
# The midpoints of so many cells of the unit interval, for both uniforms.
CELLS = 400


@cache
def frequencies(member):
    """w_i P(i -> j) of a rule (places, weights, uniforms) -> j, shape (5, 5)."""
    grid = (np.arange(CELLS) + 0.5) / CELLS
    counts = np.zeros((5, 5))
    for i in range(5):
        order = [i, *np.delete(np.arange(5), i)]
        for u in grid:
            for v in grid:
                counts[i, order[member(PLACES[order], WEIGHTS[order], np.array([u, v]))]] += 1
    return WEIGHTS[:, None] * counts / CELLS**2


def without_weights(places, weights, uniforms):
    """The control: members share the interval evenly, whatever their weights."""
    return opposite_member(places, np.ones_like(weights), uniforms)


def asymmetry(matrix):
    return np.abs(matrix - matrix.T).max()


def test_a_move_is_as_likely_as_its_reverse():
    # A border that falls within a cell of the grid is off by a cell of either uniform.
    assert asymmetry(frequencies(opposite_member)) < 2.0 / CELLS
    assert asymmetry(frequencies(without_weights)) > 0.1


def test_every_member_is_reached_by_its_weight():
    reached = frequencies(opposite_member).sum(axis=0)
    np.testing.assert_allclose(reached, WEIGHTS, atol=4.0 / CELLS)
    assert np.abs(frequencies(without_weights).sum(axis=0) - WEIGHTS).max() > 0.1


def test_positions_stay_uniform_and_their_distance_from_the_middle_is_new():
    rng = np.random.default_rng(1)
    before, shifts = rng.uniform(size=(2, 20_000))
    after = np.array([opposite_position(*pair) for pair in zip(before, shifts, strict=True)])
    assert kstest(after, "uniform").pvalue > 0.001
    distances = np.abs(before - 0.5) - 0.25, np.abs(after - 0.5) - 0.25
    scores = ndtri(before) * ndtri(after)
    assert_within({"distance": z_of_independent(distances[0] * distances[1], 0.0)})
    # On the scale of a normal distribution the correlation is -0.56.
    assert abs(z_of_independent(scores, -0.56)) < LIMIT


def test_a_chain_of_normal_draws_swings_about_its_mean():
    """The mean of a chain is known better than that of independent draws, the variance as well."""
    rng = np.random.default_rng(2)
    at, chain = 0.0, np.empty(20_000)
    for t in range(len(chain)):
        pool = np.concatenate([[at], 1.5 * rng.standard_normal(32)])
        weights = np.exp(-0.5 * pool**2 * (1.0 - 1.5**-2))
        at = chain[t] = pool[opposite_member(pool, weights, rng.uniform(size=2))]
    pairs = chain[1:] * chain[:-1]
    squares = (chain**2 - 1.0)[1:] * (chain**2 - 1.0)[:-1]
    # A pool of any size falls short of the -0.56 of positions; errors are about 0.01.
    assert -0.56 < pairs.mean() < -0.4
    assert abs(squares.mean() / np.var(chain**2)) < 0.06
    blocks = chain.reshape(-1, 20).mean(axis=1)  # as good as independent of each other
    assert abs(z_of_independent(blocks, 0.0)) < LIMIT
    assert abs(z_of_independent((chain**2).reshape(-1, 20).mean(axis=1), 1.0)) < LIMIT


def test_where_one_member_has_all_the_weight_it_stays():
    weights = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    for u in (0.0, 0.4, 1.0 - 1e-16):
        assert opposite_member(PLACES, weights, np.array([u, 0.7])) == 0
