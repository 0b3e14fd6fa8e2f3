"""The spread of estimates against `estimate_log_marginal` and known densities."""

import re

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from models import add_gp, gp_probit, inputs, labels, observe_probit
from scipy.stats import gamma
from stat_checks import assert_within, z_of_independent

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal import spread as spread_module
from pymc_pseudomarginal.spread import estimator_spread

LENGTHSCALES = np.array([0.9, 0.2, 0.5])
POINT = {"ls": 1.0, "sigma": 2.0}
REPEATS = 400


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="module")
def model(quick_to_compile):
    return gp_probit()


def run(model, name="ls", values=LENGTHSCALES, point=POINT, **kwargs):
    options = {"repeats": REPEATS, "random_seed": 1, "progressbar": False} | kwargs
    return estimator_spread(name, values, point, model=model, **options)


@pytest.fixture(scope="module")
def spread(model):
    return run(model)


def test_shape_and_coordinates(spread):
    assert spread["log_estimate"].dims == ("n_importance", "repeat", "ls")
    assert spread.sizes == {"n_importance": 2, "repeat": REPEATS, "ls": 3}
    assert spread["n_importance"].values.tolist() == [1, 64]
    np.testing.assert_array_equal(spread["ls"], LENGTHSCALES)
    assert spread["log_approximation"].dims == spread["log_prior"].dims == ("ls",)
    assert spread.attrs["approximation"] == "laplace"


def test_log_prior_is_that_of_the_natural_scale(spread):
    expected = gamma(2.0, scale=0.5).logpdf(LENGTHSCALES)
    np.testing.assert_allclose(spread["log_prior"], expected, rtol=1e-7)


@pytest.mark.parametrize("approximation", ["laplace", "ep"])
def test_estimates_are_those_of_estimate_log_marginal(model, approximation):
    found = run(model, values=[0.5], approximation=approximation)
    reference = pmpm.estimate_log_marginal(
        POINT | {"ls": 0.5},
        approximation=approximation,
        n_importance=100_000,
        random_seed=2,
        model=model,
    )
    assert float(found["log_approximation"][0]) == pytest.approx(reference.log_approximation)
    ratio = np.exp(found["log_estimate"].sel(ls=0.5) - reference.log_estimate)
    assert_within({N: z_of_independent(ratio.sel(n_importance=N), 1.0) for N in (1, 64)})


def test_more_importance_samples_spread_less(spread):
    sd = spread["log_estimate"].std("repeat")
    ratio = sd.sel(n_importance=1) / sd.sel(n_importance=64)
    assert ((ratio > 5.0) & (ratio < 13.0)).all()  # eight up to the skewness of N = 1


def test_repeats_and_values_are_independent(spread):
    estimates = spread["log_estimate"].values
    assert len(np.unique(estimates)) == estimates.size
    correlations = np.corrcoef(estimates[0].T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 4.0 / np.sqrt(REPEATS)


def test_small_blocks_give_estimates_of_the_same_law(model, spread, monkeypatch):
    monkeypatch.setattr(spread_module, "_BLOCK", 2 * 8 * 10)  # ten draws of eight values
    found = run(model, values=[0.5], n_importance=[3, 64], repeats=101, random_seed=5)
    expected = spread["log_estimate"].sel(n_importance=64, ls=0.5)
    ratio = np.exp(found["log_estimate"].sel(ls=0.5)) / np.exp(expected).mean()
    assert_within({N: z_of_independent(ratio.sel(n_importance=N), 1.0) for N in (3, 64)})
    sd = found["log_estimate"].sel(n_importance=64, ls=0.5).std()
    assert 0.7 < float(sd / expected.std()) < 1.4


def test_seed_model_in_context_and_points(model):
    first = run(model, point=None, n_importance=4, repeats=5)
    with model:
        again = run(None, point=None, n_importance=[4], repeats=5)
    xr.testing.assert_identical(first, again)
    assert not first.equals(run(model, point=None, n_importance=4, repeats=5, random_seed=2))
    xr.testing.assert_identical(
        run(model, point={"sigma": 2.0}, repeats=5), run(model, point=POINT, repeats=5)
    )
    start = model.initial_point()
    default = pmpm.estimate_log_marginal(
        {"ls": 0.5, "sigma": float(np.exp(start["sigma_log__"]))}, model=model
    )
    found = float(first["log_approximation"].sel(ls=0.5))
    assert found == pytest.approx(default.log_approximation)


def test_numerical_failures_are_nan_and_counted(model):
    with pytest.warns(UserWarning, match=r"failed at 1 of 3 values of sigma \(1e\+308\)"):
        found = run(model, "sigma", [1.0, 1e308, 2.0], repeats=10)
    assert np.isnan(found["log_estimate"].sel(sigma=1e308)).all()
    assert np.isnan(found["log_approximation"].sel(sigma=1e308))
    assert np.isfinite(found.sel(sigma=[1.0, 2.0])["log_estimate"]).all()
    assert np.isfinite(found["log_prior"]).all()


def bounded_probit():
    """ls lies below another hyper-parameter, on which its transform depends."""
    with pm.Model() as model:
        top = pm.HalfNormal("top", 2.0)
        ls = pm.Uniform("ls", 0.0, top)
        observe_probit(add_gp(pm.gp.cov.ExpQuad(1, ls=ls), inputs()), labels())
    return model


def test_others_stay_on_their_natural_scale():
    model = bounded_probit()
    point = {"top": 3.0, "ls": 0.5}
    found = run(model, "top", [1.0, 2.0], point, repeats=2)
    expected = pmpm.estimate_log_marginal(point, model=model).log_approximation
    np.testing.assert_allclose(found["log_approximation"], expected)
    along_ls = run(model, "ls", [0.5, 1.5], point, repeats=2)
    np.testing.assert_allclose(along_ls["log_prior"], -np.log(3.0))
    with pytest.raises(ValueError, match=re.escape("put another hyper-parameter outside its own")):
        run(model, "top", [0.3, 1.0], point)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "lengthscale"}, "'lengthscale' is no hyper-parameter. Scalar"),
        ({"name": "f"}, "Scalar hyper-parameters: ls, sigma."),
        ({"values": [0.1, -1.0]}, "1 of 2 values of ls are outside its support"),
        ({"values": []}, "values must be a vector"),
        ({"values": [np.inf]}, "values must be a vector of finite numbers"),
        ({"values": 0.5}, "values must be a vector"),
        ({"n_importance": 0}, "n_importance must be a whole number of at least 1; found 0"),
        ({"n_importance": ()}, "different whole numbers"),
        ({"n_importance": (4, 4)}, "different whole numbers; found (4, 4)"),
        ({"repeats": 0}, "repeats must be a whole number"),
        ({"approximation": "vb"}, "Unknown approximation 'vb'"),
        ({"point": {"ls": 1.0}}, "missing: ['sigma']"),
        ({"point": {"sigma": 1.0, "tau": 2.0}}, "unknown: ['tau']"),
    ],
)
def test_bad_arguments_are_named(model, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        run(model, **arguments)


def test_a_vector_is_refused_and_the_scalars_are_named():
    with pytest.raises(ValueError, match=r"ls has the shape \(2,\).*hyper-parameters: sigma\."):
        run(gp_probit(d=2, ard=True), point=None)


def test_the_progress_bar_can_be_silenced(model, capsys):
    run(model, repeats=2)
    assert not capsys.readouterr().out
    run(model, repeats=2, progressbar=True)
    assert "Estimates along ls" in capsys.readouterr().out
