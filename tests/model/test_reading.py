"""`read_model` understands a model as PyMC and NumPy do."""

from functools import cache
from types import SimpleNamespace

import models
import numpy as np
import pymc as pm
import pytensor
import pytest
from models import N, gp_probit, inputs, labels
from problems import exp_quad
from pytensor.compile.mode import Mode
from reading_cases import ARD, CASES
from scipy.stats import gamma, multivariate_normal, norm

from pymc_pseudomarginal.model import read_model

# The oracles are evaluated a few times only: not worth a compilation.
ORACLE = Mode(linker="py", optimizer=None)

# pm.math.invprobit takes sqrt(2) in single precision, so that PyMC's log p(y|f) of a
# few labels is off by up to about 1e-6.
INVPROBIT_ERROR = 5e-6

# Constants of PyMC's log densities are in single precision, too.
PRIOR_ERROR = 1e-7


@pytest.fixture(scope="module", autouse=True)
def interpreted():
    """Values are asked for here, not speed: nothing is worth a compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@cache
def read_case(name):
    """What is read of a case's model, which no test modifies."""
    return read_model(CASES[name].build())


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A case with what was read of it, theta at its values, and a random point nearby."""
    _, natural, moments, whitened = CASES[request.param]
    read = read_case(request.param)
    model = read.model
    rng = np.random.default_rng(1)
    at_values = read.theta_from_natural(natural)
    theta = at_values + 0.3 * rng.standard_normal(at_values.shape)
    point = read.hyper_point(theta) | {read.latent_value.name: rng.standard_normal(N)}
    return SimpleNamespace(**locals())


@pytest.fixture(scope="module")
def gp():
    """What is read of the GP probit model with ARD."""
    return read_case("ard")


def log_probit(f, y):
    return norm.logcdf((2 * y - 1) * f).sum()


def test_theta_and_f_are_told_apart(case):
    assert [rv.name for rv in case.read.hyperparameters] == list(case.natural)
    assert case.read.latent.name == "f"
    assert case.read.latent.whitened is case.whitened
    assert case.read.latent_value.name in (("f_rotated_", "z") if case.whitened else ("f",))
    assert case.read.size == N


def test_prior_has_the_mean_and_covariance_of_numpy(case):
    prior = case.read.prior(case.at_values)
    mean, covariance = case.moments(**case.natural)
    np.testing.assert_allclose(prior.mean, np.broadcast_to(mean, N), atol=1e-12)
    # MvNormal(chol=) squares the factor of K, and PyMC takes distances from |x|² - 2xx' + |x'|²:
    # both lose a few digits.
    np.testing.assert_allclose(prior.covariance, covariance, rtol=1e-9, atol=1e-9)


def test_log_prior_is_that_of_pymc(case):
    factors = [*case.read.hyperparameters, *case.model.potentials]
    factors += [rv for rv in case.model.observed_RVs if rv.name != "y"]
    expected = case.model.compile_logp(vars=factors, mode=ORACLE)(case.point) if factors else 0.0
    np.testing.assert_allclose(case.read.log_prior(case.theta), expected, rtol=1e-10)


def test_log_densities_add_up_to_that_of_pymc(case):
    prior = case.read.prior(case.theta)
    f, stored = case.read.f(case.point, prior), case.point[case.read.latent_value.name]
    if case.whitened:
        log_latent = norm.logpdf(stored).sum()
    else:
        log_latent = multivariate_normal.logpdf(f, prior.mean, prior.covariance)
    total = (
        case.read.log_prior(case.theta)
        + log_latent
        + case.read.bind_data()(case.theta).log_density(f)
    )
    expected = case.model.compile_logp(mode=ORACLE)(case.point)
    assert total == pytest.approx(expected, rel=1e-8, abs=INVPROBIT_ERROR)


def test_f_is_that_of_pymc_and_can_be_stored_again(case):
    prior = case.read.prior(case.theta)
    f = case.read.f(case.point, prior)
    stored = case.read.stored_latent(f, prior)
    np.testing.assert_allclose(stored, case.point[case.read.latent_value.name], atol=1e-6)
    (graph,) = case.model.replace_rvs_by_values([case.model["f"]])
    in_pymc = case.model.compile_fn(
        graph, inputs=case.model.value_vars, mode=ORACLE, on_unused_input="ignore"
    )
    np.testing.assert_allclose(f, in_pymc(case.point), atol=1e-9)
    np.testing.assert_allclose(
        case.read.bind_data()(case.theta).log_density(f), log_probit(f, labels()), rtol=1e-12
    )


def test_log_prior_has_the_jacobian(gp):
    ls, sigma = np.array([0.4, 1.2]), 1.5
    theta = np.log([*ls, sigma])
    densities = gamma.logpdf(ls, 2.0, scale=0.5).sum() + gamma.logpdf(sigma, 2.0)
    assert gp.log_prior(theta) == pytest.approx(densities + theta.sum(), abs=PRIOR_ERROR)


def test_side_data_and_potentials_count_in_the_log_prior():
    ls, sigma = 0.4, 1.5
    expected = gamma.logpdf(ls, 2.0, scale=0.5) + gamma.logpdf(sigma, 2.0) + np.log(ls * sigma)
    expected += norm.logpdf([0.5, 0.6], ls, 0.1).sum() - sigma**2
    read = read_case("side-data")
    assert read.log_prior(np.log([ls, sigma])) == pytest.approx(expected, abs=PRIOR_ERROR)


def test_the_model_is_taken_from_the_context_and_left_alone():
    with gp_probit() as model:
        names, values = list(model.named_vars), dict(model.rvs_to_values)
        assert read_model().model is model
    assert list(model.named_vars) == names
    assert dict(model.rvs_to_values) == values


def test_no_model_in_the_context_is_an_error():
    with pytest.raises(TypeError, match="context"):
        read_model()


def test_natural_values_become_theta_in_the_order_of_the_model(gp):
    theta = gp.theta_from_natural({"sigma": 2.0, "ls": [0.5, 3.0]})
    np.testing.assert_allclose(theta, np.log([0.5, 3.0, 2.0]), rtol=1e-12)


def test_no_values_mean_the_initial_point(gp):
    np.testing.assert_array_equal(gp.theta_from_natural(None), gp.theta(gp.model.initial_point()))


def test_a_simplex_loses_a_dimension():
    theta = read_case("dirichlet").theta_from_natural({"w": np.array([0.2, 0.5, 0.3])})
    np.testing.assert_allclose(np.diff(theta), np.log(0.5 / 0.2), rtol=1e-12)
    assert theta.shape == (2,)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ls": [0.5, 3.0]}, r"missing: \['sigma'\]"),
        ({"ls": [0.5, 3.0], "sigma": 2.0, "tau": 1.0}, r"unknown: \['tau'\]"),
        ({"ls": [0.5, 3.0], "sigma_log__": 2.0}, r"unknown: \['sigma_log__'\]"),
        ({"ls": [0.5, 3.0], "sigma": -2.0}, "sigma .*outside its support"),
        ({"ls": [0.5, 0.0], "sigma": 2.0}, "ls .*outside its support"),
        ({"ls": [0.5, np.nan], "sigma": 2.0}, "ls .*outside its support"),
        # The next three FAIL: a TypeError from inside PyTensor.
        ({"ls": [0.5, 3.0, 1.0], "sigma": 2.0}, "ls .*shape"),
        ({"ls": 0.5, "sigma": 2.0}, "ls .*shape"),
        ({"ls": [0.5, 3.0], "sigma": [2.0]}, "sigma .*shape"),
    ],
    ids=str,
)
def test_bad_natural_values_are_named(gp, values, message):
    with pytest.raises(ValueError, match=message):
        gp.theta_from_natural(values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("many-priors", {"share": 1.2}),
        ("many-priors", {"level": -0.6}),
        ("dirichlet", {"w": np.array([1.2, 0.2, -0.4])}),
        ("many-priors", {"rough": 2.5}),
        ("dirichlet", {"w": np.array([0.2, 0.2, 0.2])}),
    ],
    ids=["unit", "interval", "negative-weight", "untransformed", "off-the-simplex"],
)
def test_values_outside_the_support_are_named(name, values):
    (variable,) = values
    with pytest.raises(ValueError, match=f"{variable} .*outside its support"):
        read_case(name).theta_from_natural(CASES[name].natural | values)


def test_new_labels_are_seen_by_the_likelihood():
    model = models.data_probit()
    read = read_model(model)
    f, theta = np.linspace(-1.0, 2.0, N), read.theta(read.initial_point)
    assert read.bind_data()(theta).log_density(f) == pytest.approx(log_probit(f, labels()))
    pm.set_data({"labels": 1 - labels()}, model=model)
    assert read.bind_data()(theta).log_density(f) == pytest.approx(log_probit(f, 1 - labels()))


def test_new_inputs_are_seen_by_the_prior():
    model = models.data_probit()
    read = read_model(model)
    theta = read.theta_from_natural({"ls": ARD})
    pm.set_data({"X": 2.0 * inputs(d=2)}, model=model)
    np.testing.assert_allclose(
        read.prior(theta).covariance, exp_quad(2.0 * inputs(d=2), ARD, 1.0), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "theta", "f", "prior"),
    [
        (
            "ard",
            "ls(2,) ~ Gamma [log], sigma ~ Gamma [log]",
            "f (8,), stored whitened as f_rotated_",
            "K; ls, sigma",
        ),
        ("centred", "ls ~ Gamma [log], sigma ~ Gamma [log]", "f (8,)", "K; ls, sigma"),
        (
            "hierarchical",
            "centre ~ Normal, spread ~ HalfNormal [log], ls(2,) ~ LogNormal [log]",
            "f (8,), stored whitened as f_rotated_",
            "K; centre, spread, ls",
        ),
        ("fixed-prior", "none", "f (8,), stored whitened as f_rotated_", "K"),
    ],
)
def test_repr_says_what_was_understood(name, theta, f, prior):
    assert repr(read_case(name)).splitlines() == [
        "LatentGaussianModel",
        f"  theta       {theta}",
        f"  f           {f}",
        f"  prior       f ~ Normal(m, {prior}), K dense",
        "  likelihood  y | f ~ Bernoulli (probit)",
    ]
