"""Chains of a step method without `pm.sample` around them."""

import numpy as np
import pymc as pm


def start_chain(step, seed, tune=10):
    """As `pm.sample` does on either version of PyMC."""
    rng = np.random.default_rng(seed)
    if hasattr(pm.step_methods.compound.BlockedStep, "setup_chain"):
        step.setup_chain(rng, tune, 10)
    else:
        step.set_rng(rng)


def advance(step, point, n):
    """After n draws: the point and the last statistics (None for no draws)."""
    stats = None
    for _ in range(n):
        point, stats = step.step(point)
    return point, stats


def assert_same_point(first, second):
    """The same keys in the same order, with the same values."""
    assert list(first) == list(second)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
