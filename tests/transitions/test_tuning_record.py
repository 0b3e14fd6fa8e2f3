"""The thinned record of the tuning draws."""

import numpy as np

from pymc_pseudomarginal.transitions.tuning_record import TuningRecord


def record_of(count):
    record = TuningRecord.empty(2)
    for i in range(1, count + 1):
        record = record.updated(np.array([i, -i], dtype=float))
    return record


def test_a_short_record_has_every_draw():
    record = record_of(300)
    assert record.seen == len(record.thetas) == 300
    np.testing.assert_array_equal(record.thetas[:, 0], np.arange(1, 301))


def test_a_long_record_is_evenly_thinned_and_bounded():
    record = record_of(5000)
    assert record.seen == 5000
    assert 250 <= len(record.thetas) <= 512
    assert set(np.diff(record.thetas[:, 0])) == {record.every}
    assert record.thetas[-1, 0] > 5000 - record.every


def test_the_way_to_the_posterior_is_left_out():
    assert record_of(300).settled().thetas[0, 0] == 101


def test_thetas_spread_out_are_different_and_in_order():
    record = record_of(100)
    chosen = record.spread_out(8)
    assert chosen.shape == (8, 2)
    np.testing.assert_array_equal(chosen[[0, -1], 0], [1, 100])
    assert (np.diff(chosen[:, 0]) > 0).all()
    stuck = TuningRecord.empty(1)
    for _ in range(10):
        stuck = stuck.updated(np.zeros(1))
    assert stuck.spread_out(8).shape == (1, 1)
