"""Expectations of functions of a normal variable, against closed forms and SciPy's quad."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import norm

from pymc_pseudomarginal.numerics import gaussian_expectation

MEAN = np.array([[-3.0, 0.0, 0.4], [1.0, 2.5, 7.0]])


@pytest.mark.parametrize("sd", [0.0, 0.03, 1.0, 6.0, 40.0])
def test_probit_has_a_closed_form(sd):
    found = gaussian_expectation(ndtr, MEAN, np.full(MEAN.shape, sd**2))
    np.testing.assert_allclose(found, ndtr(MEAN / np.sqrt(1.0 + sd**2)), atol=1e-9)


@pytest.mark.parametrize("sd", [0.0, 0.5, 2.0, 5.0])
def test_exponential_is_the_mean_of_a_log_normal(sd):
    found = gaussian_expectation(np.exp, MEAN, np.full(MEAN.shape, sd**2))
    np.testing.assert_allclose(found, np.exp(MEAN + 0.5 * sd**2), rtol=1e-8)


@pytest.mark.parametrize("steepness", [1.0, 25.0])
@pytest.mark.parametrize("sd", [0.2, 3.0, 30.0])
def test_a_steep_function_of_a_wide_normal(steepness, sd):
    # Gauss-Hermite nodes would lie to both sides of the step, and miss where it is.
    def density(f, mean):
        return expit(steepness * f) * norm.pdf(f, mean, sd)

    found = gaussian_expectation(lambda f: expit(steepness * f), MEAN, np.array(sd**2))
    for mean, value in zip(MEAN.ravel(), found.ravel(), strict=True):
        ends = mean - 10 * sd, mean + 10 * sd
        truth = quad(density, *ends, args=(mean,), points=[0.0, mean], limit=500)[0]
        assert value == pytest.approx(truth, abs=1e-7)


def test_gauss_hermite_nodes_miss_a_step():
    # Why they are not used: as many nodes as EP has, and a normal with sd 20.
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)
    mean = np.linspace(-20.0, 20.0, 41)
    by_nodes = expit(mean[:, None] + 20.0 * nodes) @ weights / np.sqrt(2.0 * np.pi)
    error = np.abs(by_nodes - gaussian_expectation(expit, mean, np.full(41, 400.0)))
    assert 0.03 < error.max() < 0.05


def test_several_values_at_once():
    found = gaussian_expectation(lambda f: np.stack([f, f**2], axis=-1), MEAN, np.array(4.0))
    assert found.shape == (2, 3, 2)
    np.testing.assert_allclose(found, np.stack([MEAN, MEAN**2 + 4.0], axis=-1), atol=1e-8)


def test_many_values_go_in_blocks():
    mean = np.linspace(-2.0, 2.0, 50_000)
    sizes = []

    def function(f):
        sizes.append(f.size)
        return ndtr(f)

    found = gaussian_expectation(function, mean, np.array(1.0))
    np.testing.assert_allclose(found, ndtr(mean / np.sqrt(2.0)), atol=1e-9)
    assert max(sizes) <= 2**18
