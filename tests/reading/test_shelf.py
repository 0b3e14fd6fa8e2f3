"""What is read of every model on the shelf: the split, the predictors, the parts, the points.

One module, so that every model is read once.
"""

import numpy as np
import pytest
import shelf_constructions
import shelf_likelihoods
import shelf_look_alikes
import shelf_structures
from model_shelf import SHELF, on_shelf, read_case
from own_densities import identity_errors, random_vectors, start_of, whole_point

from pymc_pseudomarginal.model.errors import UnsupportedModelError

READABLE = [
    name
    for shelf in (shelf_structures, shelf_likelihoods, shelf_constructions)
    for name in on_shelf(shelf)
]

LOOK_ALIKES = on_shelf(shelf_look_alikes)
REFUSED = {name for name in LOOK_ALIKES if not SHELF[name].latent}
READ = [*READABLE, *(name for name in LOOK_ALIKES if name not in REFUSED)]
# PyMC keeps some constants of its densities in single precision, whose rounding is 6e-8, and a
# rewritten graph rounds them elsewhere. Everything else is exact to 1e-10.
SINGLE_PRECISION = 1e-7


def most_predictors(read):
    terms = read.structure.terms
    return 0 if terms is None else int(terms.counts.max(initial=0))


@pytest.mark.parametrize("name", READABLE)
def test_every_gaussian_variable_is_integrated_out(name):
    case, read = SHELF[name], read_case(name)
    assert {part: frozenset(names) for part, names in read.split().items()} == {
        "latent": case.latent,
        "theta": case.theta,
        "unobserved": case.unobserved,
    }
    assert most_predictors(read) <= case.predictors


@pytest.mark.parametrize("name", READABLE)
def test_theta_and_x_hold_every_element_once(name):
    case, read = SHELF[name], read_case(name)
    start = start_of(read.model)
    sampled = [rv for rv in read.model.free_RVs if rv.name in case.latent | case.theta]
    sizes = [np.size(start[read.model.rvs_to_values[rv].name]) for rv in sampled]
    assert read.size + read.dim_theta == sum(sizes)


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_nothing_else_is_integrated_out_of_a_look_alike(name):
    case = SHELF[name]
    allowed = [case.latent, *case.also]
    try:
        read = read_case(name)
    except UnsupportedModelError:
        assert not case.latent, "something of this model can be integrated out"
    else:
        assert frozenset(read.split()["latent"]) in allowed
        assert most_predictors(read) <= case.predictors


def test_a_function_that_looks_straight_has_a_predictor_of_its_own():
    # Read as linear they would have one predictor a term.
    for name in ("softplus_far_from_its_bend", "nearly_straight_function", "kinked_effect"):
        assert most_predictors(read_case(name)) == 2
    assert read_case("barrier_far_away").structure.quadratic == []


def test_equal_predictors_are_one():
    # Twelve data of four groups, written with an index.
    assert len(read_case("non_centred").start) == 2
    assert read_case("jump_at_an_unknown_time").at(np.zeros(2)).predictor.size == 12
    assert read_case("regression").at(np.zeros(1)).predictor.size == 12


@pytest.mark.parametrize("name", READ)
def test_log_joint_density_is_the_sum_of_the_parts(name):
    # Near the start, and far from it, where theta switches on what was off.
    errors = identity_errors(read_case(name))
    assert errors.size >= 4
    assert errors.max() <= SINGLE_PRECISION


@pytest.mark.parametrize("name", READ)
def test_points_and_vectors_are_one_to_one(name):
    read = read_case(name)
    theta, x = random_vectors(read, 0.5, np.random.default_rng(1))
    point = whole_point(read, theta, x)
    start = start_of(read.model)
    assert {k: np.shape(v) for k, v in point.items()} == {k: np.shape(v) for k, v in start.items()}
    back = read.from_point(point)
    # A covariance with the jitter of PyMC has a condition number of 1e6 at most.
    np.testing.assert_allclose(back[0], theta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(back[1], x, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["correlated_slopes_centred", "location_and_scale"])
def test_compiled_parts_are_the_interpreted_ones(name):
    interpreted = read_case(name)
    compiled = type(interpreted)(interpreted.structure)
    theta, x = random_vectors(interpreted, 0.3, np.random.default_rng(5))
    parts = [read.log_joint(theta, x) for read in (compiled, interpreted)]
    np.testing.assert_allclose(parts[0], parts[1], rtol=1e-12)
