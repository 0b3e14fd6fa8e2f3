"""The Ops give what `numerics` gives, with gradients, under either linker."""

from functools import cache

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from models import inputs, labels
from problems import orthant_log_probability, probit_problem
from pytensor.compile.mode import Mode
from stat_checks import LIMIT, z_of_independent

from pymc_pseudomarginal.numerics import APPROXIMATIONS, DensePrior, importance_set
from pymc_pseudomarginal.ops import approximate_log_marginal, importance_log_marginal

N = 6
LINKERS = {"c": Mode(linker="cvm", optimizer="fast_run"), "numba": "NUMBA"}

TIGHT = {"laplace": 1e-18, "ep": 1e-9}  # the tolerances that the Ops take

# Laplace's B belongs to the iterate before the last Newton step, so that the value is
# smooth to the root of the tolerance only: 1e-9. With that noise, and third derivatives of
# order one, central differences with h = 1e-3 are good to about 1e-6.
STEP, TOLERANCE = 1e-3, 5e-6

both = pytest.mark.parametrize("approximation", APPROXIMATIONS)
either_linker = pytest.mark.parametrize("linker", LINKERS)


@cache
def compiled(approximation, linker="c"):
    """Value and gradients in mean and covariance, as a function of (mean, covariance, y)."""
    mean, covariance, y = pt.dvector("m"), pt.dmatrix("K"), pt.dvector("y")
    value = approximate_log_marginal(mean, covariance, y, approximation=approximation)
    outputs = [value, *pt.grad(value, [mean, covariance])]
    return pytensor.function([mean, covariance, y], outputs, mode=LINKERS[linker])


@cache
def compiled_importance(approximation, linker="c"):
    """The importance-sampled value as a function of (mean, covariance, y, u)."""
    arguments = [pt.dvector("m"), pt.dmatrix("K"), pt.dvector("y"), pt.dtensor3("u")]
    value = importance_log_marginal(*arguments, approximation=approximation)
    return pytensor.function(arguments, value, mode=LINKERS[linker])


def problem(seed=0):
    """m, K, y with K far from singular, so that K + h S stays positive definite."""
    m, K, y, _ = probit_problem(N, seed=seed, mean=0.5)
    return m, K + 0.1 * np.eye(N), y.astype(float)


def central_difference(function, direction):
    """d function(t direction) / dt at t = 0."""
    return (function(STEP * direction) - function(-STEP * direction)) / (2.0 * STEP)


def symmetric_direction(seed):
    A = np.random.default_rng(seed).standard_normal((N, N))
    return (A + A.T) / np.linalg.norm(A + A.T)


@both
@either_linker
def test_value_is_that_of_numerics(approximation, linker):
    m, K, y, likelihood = probit_problem(N, seed=3, mean=0.5)
    q = APPROXIMATIONS[approximation](DensePrior(m, K), likelihood, tolerance=TIGHT[approximation])
    value, _, _ = compiled(approximation, linker)(m, K, y)
    assert value == pytest.approx(q.log_marginal, abs=1e-12)


@either_linker
@pytest.mark.parametrize("seed", range(4))
def test_ep_is_close_to_the_orthant_probability(linker, seed):
    m, K, y, _ = probit_problem(N, seed=seed, variance=1.0, mean=0.5)
    value, _, _ = compiled("ep", linker)(m, K, y)
    assert value == pytest.approx(orthant_log_probability(m, K, y), abs=0.01)


@both
@either_linker
def test_gradient_in_the_mean(approximation, linker):
    m, K, y = problem()
    function = compiled(approximation, linker)
    _, gradient, _ = function(m, K, y)
    differences = [central_difference(lambda d: function(m + d, K, y)[0], e) for e in np.eye(N)]
    np.testing.assert_allclose(gradient, differences, atol=TOLERANCE)


@both
@either_linker
@pytest.mark.parametrize("seed", range(3))
def test_gradient_in_the_covariance(approximation, linker, seed):
    m, K, y = problem(seed)
    function = compiled(approximation, linker)
    _, _, gradient = function(m, K, y)
    direction = symmetric_direction(seed)
    difference = central_difference(lambda D: function(m, K + D, y)[0], direction)
    np.testing.assert_allclose(gradient, gradient.T, rtol=1e-12)
    assert np.sum(gradient * direction) == pytest.approx(difference, abs=TOLERANCE)


@both
@either_linker
def test_gradient_through_a_covariance_function(approximation, linker):
    log_ls = pt.dscalar("log_ls")
    K = pm.gp.cov.ExpQuad(1, ls=pt.exp(log_ls))(inputs(N)) + 0.1 * np.eye(N)
    value = approximate_log_marginal(np.zeros(N), K, labels(N), approximation=approximation)
    function = pytensor.function([log_ls], [value, pt.grad(value, log_ls)], mode=LINKERS[linker])
    difference = central_difference(lambda d: function(-0.7 + d)[0], 1.0)
    assert function(-0.7)[1] == pytest.approx(difference, abs=TOLERANCE)


def marginal_model(approximation):
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        level = pm.Normal("level", 0.0, 1.0)
        y = pm.Data("y", labels(N))
        K = pm.gp.cov.ExpQuad(1, ls=ls)(inputs(N)) + 1e-6 * np.eye(N)
        mean = pt.full((N,), level)
        value = approximate_log_marginal(mean, K, y, approximation=approximation)
        pm.Potential("marginal", value)
    return model


@both
def test_a_potential_has_a_density_and_a_gradient(approximation):
    model = marginal_model(approximation)
    log_density, gradient = model.compile_logp(), model.compile_dlogp()
    point = {"ls_log__": np.array(-0.4), "level": np.array(0.3)}
    differences = [
        central_difference(lambda d, name=name: log_density(point | {name: point[name] + d}), 1.0)
        for name in point
    ]
    np.testing.assert_allclose(gradient(point), differences, atol=TOLERANCE)


@both
def test_a_potential_counts_the_marginal_once(approximation):
    model = marginal_model(approximation)
    point = {"ls_log__": np.array(-0.4), "level": np.array(0.3)}
    prior = model.compile_logp(vars=model.free_RVs)(point)
    scaled = inputs(N) / np.exp(-0.4)
    K = np.exp(-0.5 * (scaled - scaled.T) ** 2) + 1e-6 * np.eye(N)
    marginal, _, _ = compiled(approximation)(np.full(N, 0.3), K, labels(N))
    assert model.compile_logp()(point) == pytest.approx(prior + marginal, abs=1e-6)


def test_nuts_runs_on_a_potential():
    with marginal_model("laplace"):
        idata = pm.sample(tune=50, draws=50, chains=1, cores=1, random_seed=1, progressbar=False)
    ls = idata["posterior"]["ls"].values
    assert ls.shape == (1, 50)
    assert np.isfinite(ls).all()
    assert len(np.unique(ls)) > 25


@both
@either_linker
def test_importance_value_is_that_of_numerics(approximation, linker):
    m, K, y, likelihood = probit_problem(N, seed=3, mean=0.5)
    u = np.random.default_rng(0).standard_normal((2, 5, N))
    q = APPROXIMATIONS[approximation](DensePrior(m, K), likelihood, tolerance=TIGHT[approximation])
    expected = importance_set(q, likelihood, u).log_estimate
    value = compiled_importance(approximation, linker)(m, K, y, u)
    assert value == pytest.approx(expected, abs=1e-12)


@both
@either_linker
def test_importance_estimate_is_unbiased(approximation, linker):
    m, K, y = problem(4)
    rng = np.random.default_rng(0)
    function = compiled_importance(approximation, linker)
    estimates = [function(m, K, y, rng.standard_normal((2, 4, N))) for _ in range(500)]
    truth = np.exp(orthant_log_probability(m, K, y))
    assert abs(z_of_independent(np.exp(estimates), truth)) < LIMIT


def entry(value, i=0, j=2):
    """K with one entry (and its mirror image) replaced."""
    _, K, _ = problem()
    K[i, j] = K[j, i] = value
    return K


@both
@either_linker
@pytest.mark.parametrize(
    "covariance",
    [
        pytest.param(-5.0 * np.eye(N), id="negative"),
        pytest.param(problem()[1] - 0.5 * np.eye(N), id="indefinite"),
        pytest.param(np.zeros((N, N)), id="zero"),
        pytest.param(entry(np.nan), id="nan"),
        pytest.param(entry(np.inf), id="infinite-entry"),
        pytest.param(np.full((N, N), np.inf), id="infinite"),
    ],
)
def test_a_covariance_that_is_not_positive_definite(approximation, linker, covariance):
    m, _, y = problem()
    value, *gradients = compiled(approximation, linker)(m, covariance, y)
    assert value == -np.inf
    np.testing.assert_array_equal(gradients[0], np.zeros(N))
    np.testing.assert_array_equal(gradients[1], np.zeros((N, N)))
    u = np.zeros((2, 3, N))
    assert compiled_importance(approximation, linker)(m, covariance, y, u) == -np.inf


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_mean_that_is_not_finite(approximation, bad):
    m, K, y = problem()
    m[1] = bad
    value, *gradients = compiled(approximation)(m, K, y)
    assert value == -np.inf
    assert not np.any(gradients[0])
    assert not np.any(gradients[1])


@pytest.mark.parametrize(
    ("name", "bad"), [("mean", 0.0), ("covariance", np.ones(N)), ("y", np.ones((N, 1)))]
)
@pytest.mark.parametrize("op", [approximate_log_marginal, importance_log_marginal])
def test_a_wrong_number_of_dimensions_is_named(op, name, bad):
    m, K, y = problem()
    arguments = {"mean": m, "covariance": K, "y": y, name: bad}
    if op is importance_log_marginal:
        arguments["u"] = np.zeros((2, 3, N))
    with pytest.raises(ValueError, match=f"{name} must have"):
        op(**arguments)


def test_normals_of_a_wrong_number_of_dimensions_are_named():
    with pytest.raises(ValueError, match=r"u must have the shape \(2, N, n\)"):
        importance_log_marginal(*problem(), np.zeros((2, N)))


@either_linker
@pytest.mark.parametrize("length", [1, N - 1])
@pytest.mark.parametrize("name", ["mean", "y"])
def test_a_wrong_length_is_named(linker, name, length):
    m, K, y = problem()
    arguments = {"mean": m, "covariance": K, "y": y}
    arguments[name] = arguments[name][:length]
    with pytest.raises(ValueError, match=rf"{name} .*\({length},\)"):
        compiled("laplace", linker)(*arguments.values())


MINUS_ONE = r"labels must be 0 or 1; found the values -1\.0, 1\.0"


@both
@either_linker
def test_labels_of_minus_one_are_refused(approximation, linker):
    m, K, y = problem()
    with pytest.raises(ValueError, match=MINUS_ONE):
        compiled(approximation, linker)(m, K, 2.0 * y - 1.0)
    with pytest.raises(ValueError, match=MINUS_ONE):
        compiled_importance(approximation, linker)(m, K, 2.0 * y - 1.0, np.zeros((2, 3, N)))


@pytest.mark.parametrize("op", [approximate_log_marginal, importance_log_marginal])
def test_an_unknown_approximation_is_named(op):
    u = [np.zeros((2, 3, N))] if op is importance_log_marginal else []
    with pytest.raises(ValueError, match="'vb'; expected 'laplace' or 'ep'"):
        op(*problem(), *u, approximation="vb")


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool", "float32"])
def test_labels_may_have_any_type(dtype):
    m, K, y = problem()
    value = approximate_log_marginal(m, K, pytensor.shared(y.astype(dtype)))
    assert value.eval(mode=LINKERS["c"]) == compiled("laplace")(m, K, y)[0]


def test_gradients_have_the_static_shapes_of_their_inputs():
    mean, K = pt.vector("m", shape=(N,)), pt.matrix("K", shape=(N, N))
    value = approximate_log_marginal(mean, K, labels(N))
    estimate = importance_log_marginal(mean, K, labels(N), np.zeros((2, 3, N)))
    assert value.type.shape == estimate.type.shape == ()
    assert [g.type.shape for g in pt.grad(value, [mean, K])] == [(N,), (N, N)]


def test_ops_are_equal_if_their_approximations_are():
    first, second, other = (
        approximate_log_marginal(*problem(), approximation=name).owner.op
        for name in ("ep", "ep", "laplace")
    )
    assert first == second
    assert hash(first) == hash(second)
    assert first != other


def test_labels_have_no_gradient():
    m, K, _ = problem()
    y = pt.dvector("y")
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        pt.grad(approximate_log_marginal(m, K, y), y)


@both
@either_linker
def test_a_compiled_function_survives_pickling(approximation, linker):
    function = compiled(approximation, linker)
    copy = cloudpickle.loads(cloudpickle.dumps(function))
    for output, again in zip(function(*problem()), copy(*problem()), strict=True):
        np.testing.assert_array_equal(output, again)
