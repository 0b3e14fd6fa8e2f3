"""The choice of approximation, samples and temperatures from weights with a known spread."""

import numpy as np
import pytest

from pymc_pseudomarginal.transitions.effort import (
    SIZES,
    Effort,
    choose_effort,
    pareto_shape,
)


def lognormal(sds, *, group=1):
    """Weights of log-normal spread, by (approximation, temperatures)."""
    rng = np.random.default_rng(1)
    asked = []

    def weights(name, temperatures):
        asked.append((name, temperatures))
        sd = sds.get((name, temperatures))
        return None if sd is None else sd * rng.standard_normal((8, 128, group))

    return weights, asked


def choose(weights, n=200, **options):
    rng = np.random.default_rng(5)
    return choose_effort(rng, weights, n, **{"approximations": ("laplace", "ep")} | options)


def test_good_weights_of_laplace_need_nothing_else():
    weights, asked = lognormal({("laplace", 0): 0.1})
    found = choose(weights)
    assert asked == [("laplace", 0)]
    assert found.effort.approximation == "laplace"
    assert found.quiet
    assert found.reliable


def test_ep_where_laplace_is_spread():
    weights, asked = lognormal({("laplace", 0): 4.0, ("ep", 0): 0.5})
    found = choose(weights)
    assert asked == [("laplace", 0), ("ep", 0)]
    assert found.effort.approximation == "ep"
    assert found.effort.annealing == 0


def test_annealing_where_both_are_and_not_more_than_needed():
    weights, asked = lognormal(
        {("laplace", 0): 9.0, ("ep", 0): 6.0, ("ep", 4): 3.0, ("ep", 16): 0.6, ("ep", 64): 0.1}
    )
    assert choose(weights).effort.annealing == 16
    assert asked[-1] == ("ep", 16)


def test_what_is_never_reliable_is_said_to_be_so():
    weights, _ = lognormal({("laplace", 0): 9.0, ("ep", 0): 8.0})
    found = choose(weights, temperatures=(0,))
    assert not found.reliable
    assert found.effort.approximation == "ep"


def test_an_approximation_without_weights_is_passed_over():
    assert choose(lognormal({("ep", 0): 0.5})[0]).effort.approximation == "ep"
    assert choose(lognormal({})[0]) is None


def test_noise_is_that_of_the_mean_of_n_weights():
    """For log-normal weights the relative variance of a mean of N is (exp(sd²) - 1)/N."""
    weights, _ = lognormal({("laplace", 0): 0.6})
    found = choose(weights, sizes=(16,))
    assert found.effort == Effort("laplace", 16, 0)
    expected = np.sqrt(np.log1p(np.expm1(0.36) / 16))
    np.testing.assert_allclose(found.log_estimate_sd, expected, rtol=0.1)


def test_pairs_that_cancel_count_as_such():
    rng = np.random.default_rng(1)

    def weights(name, temperatures):
        half = 0.6 * rng.standard_normal((8, 128))
        return np.log1p(np.tanh(np.stack([half, -half], axis=2)))  # a pair has the mean 1

    assert choose(weights).log_estimate_sd < 1e-6


def test_more_spread_takes_more_samples_and_a_dear_sample_fewer():
    sizes = [
        choose(lognormal({("laplace", 0): sd})[0], approximations=("laplace",)).effort.n_importance
        for sd in (0.2, 0.8, 1.5)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    # From n = 50 to 2000 the cost of a sample falls relative to that of the rest.
    weights = lognormal({("laplace", 0): 1.0})[0]
    small, large = (
        choose(weights, n, approximations=("laplace",)).effort.n_importance for n in (50, 20_000)
    )
    assert small <= large
    assert {small, large, *sizes} <= set(SIZES)


def test_a_retained_estimate_is_given_more_samples():
    weights = lognormal({("laplace", 0): 1.0})[0]
    anew, retained = (
        choose(weights, approximations=("laplace",), retained=kept).effort.n_importance
        for kept in (False, True)
    )
    assert retained > anew


@pytest.mark.parametrize(("sd", "published"), [(0.25, 1.4), (0.5, 2.0), (0.92, 4.54)])
def test_inefficiency_of_a_retained_estimate(sd, published):
    """Pitt et al. (2012) have 4.54 for the sd of 0.92 that they recommend."""
    rng = np.random.default_rng(1)

    def weights(name, temperatures):
        return sd * rng.standard_normal((8, 4000, 1))

    found = choose(weights, sizes=(1,), approximations=("laplace",), retained=True)
    np.testing.assert_allclose(found.inefficiency, published, rtol=0.15)


def test_weights_that_do_not_vary_cost_nothing():
    found = choose(lambda name, temperatures: np.zeros((8, 64, 1)), sizes=(1, 2))
    assert found.inefficiency == 1.0
    assert found.log_estimate_sd == 0.0
    assert found.effort.n_importance == 1


@pytest.mark.parametrize("shape", [0.2, 0.9])
def test_the_shape_of_a_tail(shape):
    values = np.random.default_rng(3).pareto(1.0 / shape, 4000)
    assert abs(pareto_shape(values) - shape) < 0.2


def test_values_that_hardly_differ_have_no_tail():
    assert pareto_shape(np.ones(100)) == -np.inf
    assert pareto_shape(np.ones(3)) == -np.inf


def test_draws_of_many_approximations_are_worth_more_samples():
    sizes = [
        choose(lognormal({("laplace", 0): 1.5})[0], evaluations=evaluations).effort.n_importance
        for evaluations in (1.0, 20.0)
    ]
    assert sizes[0] < sizes[1]
