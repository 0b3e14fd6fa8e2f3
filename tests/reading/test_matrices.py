"""A, b, Q and the curvature against brute force on PyMC's own densities."""

import itertools

import numpy as np
import pytest
import shelf_constructions
import shelf_likelihoods
import shelf_structures
from model_shelf import TIME, N, X, on_shelf, read_case
from own_densities import own_log_density, random_vectors, sampled_names, whole_point

SHELVES = [shelf_structures, shelf_likelihoods, shelf_constructions]
# One of every kind of prior, and of every kind of predictor.
PRIORS = [
    "three_levels",
    "walk_with_drift",
    "stochastic_volatility",
    "local_linear_trend",
    "second_differences_as_potential",
    "penalty_that_is_off_at_the_start",
    "conditional_autoregression",
    "scaled_field_and_noise",
    "sums_to_zero",
    "correlated_responses",
]
PREDICTORS = [
    "missing_covariate",
    "location_and_scale",
    "softmax_of_three",
    "variable_of_theta_below_x",
    "item_response",
    "autoregression_by_a_matrix",
    "einsum_and_diagonal",
]


def names_in_prior(read):
    """Members of x and whatever is quadratic in them besides."""
    terms = read.structure.terms
    below = {factor.name for factor in read.structure.membership.factors}
    return read.split()["latent"] | (below - set(terms.predictors if terms is not None else ()))


def in_x(read, names, theta):
    """x -> PyMC's own log density of some variables."""
    own = own_log_density(read.model, names)
    return lambda x: own(whole_point(read, theta, x))


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def test_all_of_them_are_on_the_shelf():
    assert set(PRIORS + PREDICTORS) <= {name for shelf in SHELVES for name in on_shelf(shelf)}


@pytest.mark.parametrize("name", PRIORS)
def test_prior_of_x_is_the_second_difference_of_its_density(name):
    read = read_case(name)
    theta, _ = random_vectors(read, 0.5, np.random.default_rng(2))
    density, units = in_x(read, names_in_prior(read), theta), np.eye(read.size)
    zero, ones = density(0.0 * units[0]), np.array([density(e) for e in units])
    Q = np.empty((read.size, read.size))
    for i, j in itertools.combinations_with_replacement(range(read.size), 2):
        Q[i, j] = Q[j, i] = ones[i] + ones[j] - zero - density(units[i] + units[j])
    prior = read.at(theta).prior
    # The density is a polynomial of degree two: its differences are exact but for rounding.
    rounding = 1e-14 * np.abs(ones).max()
    np.testing.assert_allclose(dense(prior.precision), Q, rtol=1e-10, atol=rounding)
    np.testing.assert_allclose(prior.constant, zero, rtol=1e-10)
    np.testing.assert_allclose(prior.linear, ones - zero + np.diag(Q) / 2, atol=rounding)


@pytest.mark.parametrize("name", PREDICTORS)
def test_gradient_goes_through_the_predictors(name):
    read = read_case(name)
    theta, x = random_vectors(read, 0.5, np.random.default_rng(3))
    at = read.at(theta)
    A, b = dense(at.predictor.matrix), at.predictor.offset
    density = in_x(read, sampled_names(read) - names_in_prior(read), theta)
    step = 1e-5
    differences = [density(x + step * e) - density(x - step * e) for e in np.eye(read.size)]
    gradient = A.T @ at.likelihood.derivatives(A @ x + b).gradient
    # The error of a central difference is of order step^2, its rounding 1e-16 |log p| / step.
    np.testing.assert_allclose(np.array(differences) / (2 * step), gradient, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", PREDICTORS)
def test_curvature_is_the_difference_of_the_gradient(name):
    read = read_case(name)
    theta, x = random_vectors(read, 0.5, np.random.default_rng(4))
    at = read.at(theta)
    eta, step = at.predictor.matrix @ x + at.predictor.offset, 1e-5

    def gradient(eta):
        return at.likelihood.derivatives(eta).gradient

    units = np.eye(eta.size)
    rows = [(gradient(eta + step * e) - gradient(eta - step * e)) / (2 * step) for e in units]
    W = at.likelihood.derivatives(eta).curvature
    W = np.diag(W) if W.ndim == 1 else dense(W)
    np.testing.assert_allclose(-np.array(rows), W, rtol=1e-6, atol=1e-7)


def test_predictor_of_a_regression_is_its_design():
    predictor = read_case("regression").at(np.zeros(1)).predictor
    np.testing.assert_array_equal(dense(predictor.matrix), np.column_stack([np.ones(N), X]))
    np.testing.assert_array_equal(predictor.offset, np.zeros(N))


@pytest.mark.parametrize("tau", [0.02, 0.5, 0.98])
def test_hinge_moves_with_theta(tau):
    read = read_case("hinge_at_an_unknown_place")
    start = dict(zip(["tau", "s"], read.start, strict=True))
    theta = np.array([np.log(tau) - np.log1p(-tau), start["s"]])
    matrix = dense(read.at(theta).predictor.matrix)
    np.testing.assert_allclose(matrix, np.column_stack([np.ones(N), np.maximum(0, TIME - tau)]))


@pytest.mark.parametrize("log_ell", [-3.0, 0.0, 3.0, 6.0])
def test_kernel_is_not_frozen_where_it_vanished(log_ell):
    read = read_case("kernel_that_vanishes_at_the_start")
    matrix = dense(read.at(np.array([log_ell, 0.0])).predictor.matrix)
    distance = 60 * np.subtract.outer(TIME, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(matrix, np.exp(-0.5 * (distance / np.exp(log_ell)) ** 2))


def test_what_cannot_vary_is_computed_once():
    read = read_case("regression")
    first, second = (read.at(np.array([value])).predictor.matrix for value in (0.0, 1.0))
    assert first is second
