"""`certify`: figures against known values, verdicts on a good and a bad run, and every rule."""

import importlib
import re

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from inference_data import inference_data, run_of
from models import add_gp, constant_mean_probit, fixed_prior_probit, gp_probit, inputs, labels
from models import observe_probit as observe
from problems import exp_quad, orthant_log_probability
from stat_checks import assert_within

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.certificate import certify
from pymc_pseudomarginal.certificate import weights as weights_module
from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.numerics import APPROXIMATIONS

CHAINS, DRAWS = 2, 40
GIVEN = {"approximation": "ep", "n_importance": 4}


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(autouse=True, scope="module")
def models_are_read_once():
    """Reading a model takes most of the time here, and is tested elsewhere."""
    module = importlib.import_module("pymc_pseudomarginal.certificate.certify")
    known = {}

    def read(model):
        model = pm.modelcontext(model)
        if model not in known:
            known[model] = read_model(model)
        return known[model]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "read_single_latent", read)
        yield


def theta_draws(seed=1, shape=(CHAINS, DRAWS)):
    rng = np.random.default_rng(seed)
    return {"ls": rng.uniform(0.3, 1.5, shape), "sigma": rng.uniform(0.5, 4.0, shape)}


def checked(idata, model, **kwargs):
    options = GIVEN | {"samples": 200, "thetas": 4, "random_seed": 1, "progressbar": False}
    return certify(idata, model=model, **options | kwargs)


@pytest.fixture(scope="module")
def model(quick_to_compile):
    return gp_probit(4)


@pytest.fixture(scope="module")
def idata():
    f = np.random.default_rng(2).standard_normal((CHAINS, DRAWS, 4))
    return run_of(**theta_draws(), f=f)


# Two runs of the sampler


def sampled(model, **kwargs):
    options = {"tune": 200, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3}
    with model:
        return pm.sample(compute_convergence_checks=False, **options | kwargs)


def test_a_good_run_passes():
    K = exp_quad(inputs(), 0.5, 1.0)
    with pm.Model() as model:
        c = pm.Normal("c", 0.0, 1.0)
        observe(pm.MvNormal("f", mu=c * np.ones(8), cov=K), labels())
    step = pmpm.PseudoMarginalMH(approximation="ep", n_importance=16, annealing=0, model=model)
    idata = sampled(model, draws=600, step=step)
    as_run = {"approximation": None, "n_importance": None}
    found = checked(idata, model, **as_run, samples=1024, thetas=16)
    assert found.passed, str(found)
    assert found.findings == ()
    assert "Nothing speaks against these draws." in repr(found)
    dataset = found.dataset
    assert dataset.attrs["approximation"] == "ep"
    assert dataset.attrs["n_importance"] == 16
    expected = az.rhat(idata["posterior"]["c"].values)
    assert float(dataset["rhat"].sel(hyperparameter="c")) == pytest.approx(float(expected))
    assert dataset["latent_rhat"].shape == dataset["latent_ess_bulk"].shape == (8,)
    assert (dataset["log_estimate_sd"] < 0.2).all()
    accepted = idata["sample_stats"]["pm_accepted"].mean("draw")
    np.testing.assert_allclose(dataset["acceptance"], accepted)


def test_a_bad_approximation_is_flagged():
    n, d = 50, 10
    X = np.random.default_rng(1).standard_normal((n, d))
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 0.5)
        covariance = 50.0 * pm.gp.cov.ExpQuad(d, ls=ls)
        observe(add_gp(covariance, X, reparameterize=False), (X[:, 0] > 0).astype(int))
    settings = {"approximation": "laplace", "n_importance": 1, "annealing": 0}
    step = pmpm.PseudoMarginalMH(**settings, model=model)
    idata = sampled(model, draws=100, tune=50, step=step)
    found = checked(idata, model, **settings, thetas=8, samples=500)
    assert not found.passed
    whats = [finding.what for finding in found.findings]
    assert whats[:2] == ["tail of the weights", "noise"]
    assert 'approximation="ep"' in found.findings[0].remedy
    text = str(found)
    assert text.startswith("Certificate: not passed\n  2 × 100 draws of PseudoMarginalMH, Laplace")
    assert "What speaks against these draws:" in text
    assert all(finding.what in text for finding in found.findings)


# Figures with known values


def test_a_gaussian_likelihood_leaves_nothing_to_estimate():
    with pm.Model() as model:
        ls, sigma = pm.Gamma("ls", 2.0, 2.0), pm.Gamma("sigma", 2.0, 1.0)
        f = add_gp(sigma * pm.gp.cov.ExpQuad(1, ls=ls), inputs())
        pm.Normal("y", f, 0.5, observed=np.sin(3.0 * inputs()[:, 0]))
    idata = run_of(**theta_draws())
    for settings in ({"approximation": "laplace"}, {"approximation": "ep"}, {"annealing": 2}):
        dataset = checked(idata, model, **settings).dataset
        for name in ("log_weight_sd", "log_estimate_sd", "bias", "bias_error", "bias_sd"):
            np.testing.assert_allclose(dataset[name], 0.0, atol=1e-6, err_msg=name)
        assert (dataset["pareto_k"] == -np.inf).all()


@pytest.fixture(scope="module")
def exact(model, idata):
    """log p(y|theta) at the draws that are looked at, and log Z_q there for every q."""
    read = read_model(model)
    bound, exact = read.bind_data(), []
    log_z = {name: [] for name in APPROXIMATIONS}
    for chain, draw in [(0, 10), (0, 30), (1, 10), (1, 30)]:
        point = {name: idata["posterior"][name].values[chain, draw] for name in ("ls", "sigma")}
        K = exp_quad(inputs(4), point["ls"], point["sigma"])
        exact.append(orthant_log_probability(np.zeros(4), K, labels(4)))
        theta = read.theta_from_natural(point)
        for name, approximate in APPROXIMATIONS.items():
            log_z[name].append(approximate(read.prior(theta), bound(theta)).log_marginal)
    return np.array(exact), {name: np.array(values) for name, values in log_z.items()}


@pytest.mark.parametrize(
    "settings",
    [
        {"approximation": "laplace"},
        {"approximation": "ep"},
        {"approximation": "laplace", "annealing": 3, "samples": 400},
    ],
    ids=str,
)
def test_bias_and_its_error_against_the_orthant_probability(model, idata, exact, settings):
    dataset = checked(idata, model, **{"samples": 4000} | settings).dataset
    log_p, log_z = exact
    true_bias = log_z[settings["approximation"]] - log_p
    z = (dataset["bias"].values - true_bias) / dataset["bias_error"].values
    assert_within(dict(enumerate(z)))
    assert (dataset["bias_error"] < 0.05).all()
    expected = dataset["bias"].values.var(ddof=1) - np.mean(dataset["bias_error"].values ** 2)
    assert float(dataset["bias_sd"]) == pytest.approx(np.sqrt(max(expected, 0.0)))
    assert float(dataset["bias_range"]) == pytest.approx(np.ptp(dataset["bias"].values))


def test_laplace_is_further_off_than_ep(model, idata):
    laplace, ep = (checked(idata, model, approximation=name) for name in ("laplace", "ep"))
    for name in ("log_weight_sd", "bias"):
        assert (abs(laplace.dataset[name]) > abs(ep.dataset[name])).all()


def test_weights_in_blocks_have_the_same_law(model, idata, monkeypatch):
    whole = checked(idata, model, samples=2000).dataset
    monkeypatch.setattr(weights_module, "_BLOCK", 2 * 4 * 300)
    parts = checked(idata, model, samples=2000).dataset
    error = np.hypot(whole["bias_error"], parts["bias_error"])
    assert (abs(whole["bias"] - parts["bias"]) < 4.0 * error).all()
    np.testing.assert_allclose(parts["log_weight_sd"], whole["log_weight_sd"], rtol=0.3)


# Which draws, with which settings


def test_the_draws_are_spread_evenly_and_labelled(model, idata):
    dataset = checked(idata, model).dataset
    assert dataset["theta_chain"].values.tolist() == [0, 0, 1, 1]
    assert dataset["theta_draw"].values.tolist() == [10, 30, 10, 30]
    assert dataset["value"].dims == ("theta", "hyperparameter")
    posterior = idata["posterior"]
    for name in ("ls", "sigma"):
        expected = posterior[name].values[[0, 0, 1, 1], [10, 30, 10, 30]]
        np.testing.assert_array_equal(dataset["value"].sel(hyperparameter=name), expected)


def test_no_more_thetas_than_draws(model):
    few = run_of(**theta_draws(shape=(1, 5)))
    assert checked(few, model, thetas=16, samples=100).dataset.sizes["theta"] == 5


def test_elements_of_vectors_and_no_hyperparameters():
    rng = np.random.default_rng(1)
    shape = (CHAINS, DRAWS)
    vector = run_of(ls=rng.uniform(0.5, 1.0, (*shape, 2)), sigma=rng.uniform(0.5, 1.0, shape))
    dataset = checked(vector, gp_probit(4, 2, ard=True), thetas=2, samples=100).dataset
    assert dataset["hyperparameter"].values.tolist() == ["ls[0]", "ls[1]", "sigma"]
    fixed = run_of(f=rng.standard_normal((*shape, 8)))
    found = checked(fixed, fixed_prior_probit(), thetas=2, samples=100)
    assert found.dataset.sizes["hyperparameter"] == 0
    assert "R-hat of theta" in str(found)


def test_seeds_and_the_model_in_context(model, idata):
    first = checked(idata, model)
    with model:
        again = checked(idata, None)
    xr.testing.assert_identical(first.dataset, again.dataset)
    assert first.findings == again.findings
    other = checked(idata, model, random_seed=2).dataset
    assert not np.array_equal(first.dataset["bias"], other["bias"])


def told(**settings):
    """Statistics that tell the settings, an array of shape (chain,) each, at the last draw."""
    return {
        f"pm_{name}": np.concatenate([np.zeros((CHAINS, DRAWS - 1)), np.c_[last]], axis=1)
        for name, last in settings.items()
    }


def test_settings_are_read_from_the_run(model):
    stats = told(ep=[True, True], n_importance=[32, 8], annealing=[2, 3])
    idata = run_of(stats, **theta_draws())
    as_run = {"approximation": None, "n_importance": None, "samples": 100}
    attrs = checked(idata, model, **as_run).dataset.attrs
    assert (attrs["approximation"], attrs["n_importance"], attrs["annealing"]) == ("ep", 8, 2)
    attrs = checked(idata, model, **as_run | {"n_importance": 3, "annealing": 0}).dataset.attrs
    assert (attrs["approximation"], attrs["n_importance"], attrs["annealing"]) == ("ep", 3, 0)
    mixed = run_of(told(ep=[True, False], n_importance=[4, 4]), **theta_draws())
    attrs = checked(mixed, model, **as_run).dataset.attrs
    assert (attrs["approximation"], attrs["annealing"]) == ("laplace", 0)


def test_a_latent_that_was_not_recorded(model):
    found = checked(run_of(**theta_draws()), model)
    assert "latent_rhat" not in found.dataset
    assert re.search(r"R-hat of f +not recorded", str(found))


def test_figures_are_missing_where_the_numerics_fail(model):
    draws = theta_draws()
    draws["sigma"][0, 10] = 1e308
    found = checked(run_of(**draws), model)
    assert np.isnan(found.dataset["bias"].values).tolist() == [True, False, False, False]
    assert found.findings[0].what == "failed approximation"
    assert np.isfinite(found.dataset["bias_sd"])
    draws["sigma"][:] = 1e308
    nowhere = checked(run_of(**draws), model)
    assert np.isnan(nowhere.dataset["bias_sd"])
    assert re.search(r"sd of the log weights +- +- +-", str(nowhere))


# Refusals


def as_dataset(idata, group):
    found = idata[group]
    return found if isinstance(found, xr.Dataset) else found.to_dataset()


def test_no_inference_data(model, idata):
    for found in (None, as_dataset(idata, "posterior"), {}):
        with pytest.raises(TypeError, match=r"groups posterior and sample_stats.*found"):
            checked(found, model)
    only = inference_data(posterior=as_dataset(idata, "posterior"))
    with pytest.raises(TypeError, match="without sample_stats"):
        checked(only, model)


def test_other_samplers_are_refused(model, idata):
    posterior = as_dataset(idata, "posterior")
    stats = as_dataset(idata, "sample_stats")[["pm_accepted", "pm_failed"]]
    other = inference_data(posterior=posterior, sample_stats=stats)
    with pytest.raises(ValueError, match=r"not made by PseudoMarginalMH.* pm_accepted, pm_failed"):
        checked(other, model)


def test_groups_of_different_runs_and_too_few_draws(model, idata):
    posterior, stats = (as_dataset(idata, name) for name in ("posterior", "sample_stats"))
    cut = inference_data(posterior=posterior.isel(draw=slice(10)), sample_stats=stats)
    with pytest.raises(ValueError, match=r"has 2 × 10 draws and sample_stats 2 × 40"):
        checked(cut, model)
    with pytest.raises(ValueError, match="Found 3 draws per chain"):
        checked(run_of(**theta_draws(shape=(2, 3))), model)


def test_a_model_that_does_not_fit(model, idata):
    with pytest.raises(ValueError, match="does not contain 'c'"):
        checked(idata, constant_mean_probit())
    with pytest.raises(ValueError, match=r"'f' has the shape \(4,\) in the posterior and \(8,\)"):
        checked(idata, gp_probit())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"approximation": None}, "does not tell its approximation: its statistics are pm_acc"),
        ({"approximation": None, "n_importance": None}, "its approximation and n_importance"),
        ({"approximation": "vb"}, "Unknown approximation 'vb'"),
        ({"n_importance": 0}, "n_importance must be a whole number of at least 1"),
        ({"annealing": -1}, "annealing must be a whole number of at least 0"),
        ({"thetas": 1}, "thetas must be a whole number of at least 2"),
        ({"samples": 99}, "samples must be a whole number of at least 100"),
    ],
)
def test_bad_arguments_are_named(model, idata, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        checked(idata, model, **arguments)


def test_the_progress_bar_can_be_silenced(model, idata, capsys):
    checked(idata, model)
    assert not capsys.readouterr().out
    checked(idata, model, progressbar=True)
    assert "Weights at posterior draws" in capsys.readouterr().out
