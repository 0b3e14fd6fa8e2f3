"""Every likelihood × approximation × parameterisation, against SciPy and quadrature."""

from contextlib import nullcontext
from itertools import product

import likelihood_cases
import numpy as np
import pymc as pm
import pytensor
import pytest
from likelihood_cases import CASES, PARAMETERISATIONS, at_parameters, log_marginal, read
from scipy.stats import norm
from stat_checks import LIMIT, z_of_independent

from pymc_pseudomarginal.model import closed_forms, read_model, stable_densities
from pymc_pseudomarginal.numerics import APPROXIMATIONS, importance_set, likelihoods

ALL = [(name, form) for name in CASES for form in PARAMETERISATIONS]
EPS = np.finfo(float).eps
COMPILED = "rooted"
FAR = np.array([-40.0, -30.0, -8.0, -1.0, 0.0, 0.3, 2.0, 9.0, 30.0, 40.0])


@pytest.fixture(params=ALL, ids=[f"{name}-{form}" for name, form in ALL])
def problem(request):
    """(name, case, n, prior, likelihood).

    Compiled for one parameterisation; interpreted for the others, where what is new
    is the prior.
    """
    name, form = request.param
    with compiled() if form == COMPILED else interpreted():
        yield name, CASES[name], PARAMETERISATIONS[form][0], *at_parameters(name, form)


def interpreted():
    return pytensor.config.change_flags(mode="FAST_COMPILE")


def compiled():
    return nullcontext()


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_estimate_is_unbiased(problem, approximation):
    name, _, n, prior, likelihood = problem
    q = APPROXIMATIONS[approximation](prior, likelihood)
    u = np.random.default_rng(5).standard_normal((2, 20_000, n))
    weights = np.exp(importance_set(q, likelihood, u).log_weights - log_marginal(name, n))
    if np.ptp(weights) < 1e-6:  # the Gaussian likelihood: every weight is the integral
        assert weights == pytest.approx(1.0, rel=1e-6)
    else:
        assert abs(z_of_independent(weights, 1.0)) < LIMIT


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_approximation_is_close(problem, approximation):
    # Not part of exactness; a wrong derivative or moment would show here.
    name, _, n, prior, likelihood = problem
    q = APPROXIMATIONS[approximation](prior, likelihood)
    assert q.converged
    assert (q.precision >= 0.0).all()
    bound = {"laplace": 0.25, "ep": 0.03}[approximation]
    assert abs(q.log_marginal - log_marginal(name, n)) < bound


def test_log_density_is_that_of_scipy(problem):
    _, case, n, _, likelihood = problem
    f = np.random.default_rng(3).uniform(-4.0, 4.0, (50, n))
    expected = case.log_density(f, case.y[:n]).sum(-1)
    np.testing.assert_allclose(likelihood.log_density(f), expected, rtol=1e-6, atol=1e-6)
    assert likelihood.log_density(f[0]) == pytest.approx(expected[0], rel=1e-6)


def difference(function, f, i, step):
    """Central difference of function(f) in f_i, and the bound of its rounding error."""
    high, low = f.copy(), f.copy()
    high[i] += step
    low[i] -= step
    above, below = function(high, i), function(low, i)
    return (above - below) / (2.0 * step), 4.0 * EPS * (abs(above) + abs(below)) / step


def check_derivatives(likelihood, values, largest=1.0):
    """All three derivatives at some f_i, the other two zero; `largest` of the data.

    A central difference is off by the third derivative times step²/6, and by rounding:
    of the values themselves, of terms as large as the data that cancel in them, and, in
    the tail of a normal distribution, of exp(f²/2) in terms as large as gradient².
    Constants of PyMC's graphs are in single precision.
    """
    step = 1e-4
    cancelled = 8.0 * EPS * largest / step

    def gradient(f, i):
        return likelihood.derivatives(f)[0][i]

    def curvature(f, i):
        return -likelihood.derivatives(f)[1][i]

    for i, value in product(range(3), values):
        f = np.zeros(3)
        f[i] = value
        g, W = (x[i] for x in likelihood.derivatives(f))
        third = likelihood.third_derivative(f)[i]
        truncation = step**2 * (abs(third) + abs(W) + 1.0)
        tail = 4.0 * EPS * (1.0 + value**2) * (1.0 + abs(g)) ** 2 / step
        found, rounding = difference(lambda f, i: likelihood.log_density(f), f, i, step)
        slack = truncation + rounding + cancelled
        assert g == pytest.approx(found, rel=2e-7, abs=slack)
        found, rounding = difference(gradient, f, i, step)
        slack = truncation + rounding + cancelled
        assert pytest.approx(max(-found, 0.0), rel=1e-6, abs=slack) == W
        if W > 0.0:
            found, rounding = difference(curvature, f, i, step)
            slack = 10.0 * truncation + rounding + cancelled + tail
            assert third == pytest.approx(found, rel=1e-5, abs=slack)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_finite_differences(name):
    _, likelihood = at_parameters(name, COMPILED)
    check_derivatives(likelihood, FAR[1:-1])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.extreme is not None])
def test_derivatives_at_extreme_data(name):
    case, model = CASES[name], read(name, COMPILED).model
    pm.set_data({"data": case.extreme}, model=model)
    try:
        _, likelihood = at_parameters.__wrapped__(name, COMPILED)  # with the new data
        check_derivatives(likelihood, FAR[1:-1], np.abs(case.extreme).max())
        f = np.random.default_rng(3).uniform(-4.0, 4.0, (5, 3))
        expected = case.log_density(f, case.extreme).sum(-1)
        np.testing.assert_allclose(likelihood.log_density(f), expected, rtol=1e-6)
    finally:
        pm.set_data({"data": case.y}, model=model)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_nan_at_forty(name):
    _, likelihood = at_parameters(name, COMPILED)
    for value in FAR:
        f = np.full(3, value)
        results = [likelihood.log_density(f), *likelihood.derivatives(f)]
        assert all(np.isfinite(x).all() for x in [*results, likelihood.third_derivative(f)])
        np.testing.assert_allclose(
            results[0], CASES[name].log_density(f, CASES[name].y).sum(-1), rtol=1e-6
        )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variance", [0.05, 1.0, 30.0])
def test_tilted_moments_are_those_of_quadrature(name, variance):
    case = CASES[name]
    _, likelihood = at_parameters(name, COMPILED)
    mean, variances = np.array([-1.0, 0.5, 2.0]), np.full(3, variance)
    tilted = likelihood.tilted_moments(mean, variances)
    z = np.linspace(-12.0, 12.0, 6001)[:, None]
    f = mean + np.sqrt(variance) * z
    terms = np.exp(case.log_density(f, case.y) - 0.5 * z**2) / np.sqrt(2.0 * np.pi)
    total = terms.sum(0) * (z[1] - z[0])
    first = (terms * f).sum(0) / terms.sum(0)
    second = (terms * (f - first) ** 2).sum(0) / terms.sum(0)
    # Gauss-Hermite nodes are too far apart for a step in a wide cavity: EP is then a
    # little worse, which exactness does not notice.
    tolerance = 1e-6 if variance < 10.0 else 0.02
    np.testing.assert_allclose(np.exp(tilted.log_normaliser), total, rtol=tolerance)
    np.testing.assert_allclose(
        tilted.mean, first, atol=tolerance * np.sqrt(second.max()), rtol=tolerance
    )
    np.testing.assert_allclose(tilted.variance, second, rtol=2 * tolerance)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_differences_take_the_place_of_derivatives_that_are_nan(approximation):
    # PyMC's Truncated has NaN for second derivatives at any f.
    y, noise = np.array([0.4, 1.7]), 0.6
    with pm.Model() as model:
        f = pm.MvNormal("f", np.zeros(2), cov=np.array([[0.6, 0.2], [0.2, 0.5]]))
        pm.Truncated("y", pm.Normal.dist(f, noise), lower=0.0, observed=y)
    read = read_model(model)
    prior, likelihood = read.prior(np.empty(0)), read.bind_data()(np.empty(0))
    assert not np.isfinite(likelihood.functions.derivatives(np.zeros(2))[1]).any()

    def log_density(f):
        return norm.logpdf(y, f, noise) - norm.logcdf(f / noise)

    at = np.array([-0.7, 0.9])
    step = 1e-5
    expected = (log_density(at + step) - log_density(at - step)) / (2.0 * step)
    np.testing.assert_allclose(likelihood.derivatives(at)[0], expected, rtol=1e-5)

    z = np.linspace(-8.0, 8.0, 161)
    grid = np.stack(np.meshgrid(z, z), axis=-1).reshape(-1, 2)
    terms = log_density(grid @ prior.cholesky.T).sum(-1) - 0.5 * (grid**2).sum(-1)
    truth = np.logaddexp.reduce(terms) + 2.0 * np.log(0.1 / np.sqrt(2.0 * np.pi))
    q = APPROXIMATIONS[approximation](prior, likelihood)
    u = np.random.default_rng(5).standard_normal((2, 20_000, 2))
    weights = np.exp(importance_set(q, likelihood, u).log_weights - truth)
    assert abs(z_of_independent(weights, 1.0)) < LIMIT


def test_every_likelihood_has_a_case():
    found, ops = set(), set()
    for name in CASES:
        _, likelihood = at_parameters(name, COMPILED)
        found |= {type(likelihood), type(getattr(likelihood, "base", likelihood))}
        ops |= {type(rv.owner.op) for rv in read(name, COMPILED).model.observed_RVs}
    public = {getattr(likelihoods, name) for name in likelihoods.__all__}
    classes = {c for c in public if isinstance(c, type) and hasattr(c, "from_labels")}
    classes |= {
        c for c in public if hasattr(c, "tilted_moments") and c is not likelihoods.Likelihood
    }
    assert classes <= found
    assert set(stable_densities.FAMILIES) | set(closed_forms.FAMILIES) <= ops


def test_a_wrong_likelihood_is_noticed(monkeypatch):
    # The control: one count too many in the oracle's data.
    case = CASES["poisson"]
    wrong = likelihood_cases.LikelihoodCase(case.observe, case.y + 1, case.log_density)
    prior, likelihood = at_parameters("poisson", "centred")
    monkeypatch.setitem(CASES, "wrong poisson", wrong)
    q = APPROXIMATIONS["ep"](prior, likelihood)
    u = np.random.default_rng(5).standard_normal((2, 20_000, 1))
    weights = np.exp(
        importance_set(q, likelihood, u).log_weights - log_marginal("wrong poisson", 1)
    )
    assert abs(z_of_independent(weights, 1.0)) > 2 * LIMIT
