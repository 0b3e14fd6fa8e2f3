"""`fit_marginal` against closed forms, scikit-learn and optimisation without gradients."""

import re

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from models import (
    add_gp,
    fixed_prior_probit,
    gp_probit,
    hierarchical_probit,
    inputs,
    labels,
    observe_probit,
)
from problems import exp_quad
from scipy.optimize import minimize
from scipy.stats import gamma, multivariate_normal

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.fit import fit_marginal
from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.numerics import APPROXIMATIONS, NoFiniteApproximation, NumericalFailure


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def run(model, **kwargs):
    options = {"n_starts": 2, "random_seed": 1, "progressbar": False} | kwargs
    return fit_marginal(model=model, **options)


def gaussian_log_marginal(x, y, ls, noise):
    K = exp_quad(x, ls, 1.0) + noise**2 * np.eye(len(y))
    return multivariate_normal(np.zeros(len(y)), K).logpdf(y)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_gaussian_regression_is_that_of_the_closed_form(approximation):
    X = inputs(20)
    y = np.sin(4.0 * X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(20)
    with pm.Model() as model:
        ls, noise = pm.Gamma("ls", 2.0, 2.0), pm.HalfNormal("noise", 1.0)
        pm.Normal("y", add_gp(pm.gp.cov.ExpQuad(1, ls=ls), X), noise, observed=y)
    fit = run(model, approximation=approximation)
    options = {"xatol": 1e-8, "fatol": 1e-12}
    searches = [
        minimize(
            lambda t: -gaussian_log_marginal(X, y, *np.exp(t)),
            start,
            method="Nelder-Mead",
            options=options,
        )
        for start in ([0.0, 0.0], [-1.0, -1.0], [-2.0, -2.0])
    ]
    direct = min(searches, key=lambda search: search.fun)
    assert fit.log_marginal == pytest.approx(-direct.fun, abs=1e-8)
    assert fit.log_objective == pytest.approx(fit.log_marginal)
    np.testing.assert_allclose(fit.theta, direct.x, atol=1e-5)
    np.testing.assert_allclose([fit.point["ls"], fit.point["noise"]], np.exp(direct.x), rtol=1e-5)
    assert fit.starts["converged"].all()
    assert fit.unbounded == ()


def test_laplace_is_that_of_scikit_learn():
    """scikit-learn has no jitter; with 1e-10 ours changes log Z by about as much."""
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    kernels = gaussian_process.kernels
    rng = np.random.default_rng(3)
    X = rng.uniform(-3.0, 3.0, (40, 1))
    y = (rng.random(40) < 1.0 / (1.0 + np.exp(-3.0 * np.sin(1.5 * X[:, 0])))).astype(int)
    kernel = kernels.ConstantKernel(1.0, (1e-3, 1e5)) * kernels.RBF(1.0, (1e-2, 1e2))
    reference = gaussian_process.GaussianProcessClassifier(kernel, random_state=0).fit(X, y)
    with pm.Model() as model:
        variance, ls = pm.Gamma("variance", 2.0, 0.5), pm.Gamma("ls", 2.0, 2.0)
        f = add_gp(variance * pm.gp.cov.ExpQuad(1, ls=ls), X, jitter=1e-10)
        pm.Bernoulli("y", logit_p=f, observed=y)
    fit = run(model, approximation="laplace", n_starts=1)
    # Its Newton stops at a change of 1e-10 and its optimiser at a gradient of 1e-5.
    assert fit.log_marginal == pytest.approx(reference.log_marginal_likelihood_value_, abs=1e-8)
    np.testing.assert_allclose(fit.theta, reference.kernel_.theta, atol=1e-4)


@pytest.fixture(scope="module")
def map_fit(quick_to_compile):
    return run(gp_probit(), objective="map")


def test_map_is_that_of_a_search_without_gradients(map_fit):
    model = gp_probit()
    read = read_model(model)
    likelihood = read.bind_data()(map_fit.theta)

    def parts(theta):
        q = APPROXIMATIONS["ep"](read.prior(theta), likelihood, tolerance=1e-9)
        ls, sigma = np.exp(theta)
        return q.log_marginal, gamma(2.0, scale=0.5).logpdf(ls) + gamma(2.0).logpdf(sigma)

    options = {"xatol": 1e-6, "fatol": 1e-11}
    direct = minimize(lambda t: -sum(parts(t)), [0.0, 0.0], method="Nelder-Mead", options=options)
    assert map_fit.log_objective == pytest.approx(-direct.fun, abs=1e-6)
    np.testing.assert_allclose(map_fit.theta, direct.x, atol=1e-4)
    assert map_fit.log_marginal == pytest.approx(parts(map_fit.theta)[0], abs=1e-6)


def test_standard_errors_of_a_normal_sample():
    """y_i ~ N(mu, s² + 1): the observed information is known."""
    y = 3.0 + 2.0 * np.linspace(-1.5, 1.5, 30) ** 3
    with pm.Model() as model:
        mu, s = pm.Normal("mu", 0.0, 5.0), pm.HalfNormal("s", 5.0)
        pm.Normal("y", pm.Normal("f", mu, s, shape=y.size), 1.0, observed=y)
    fit = run(model, approximation="laplace")
    v = y.var()
    assert fit.point["mu"] == pytest.approx(y.mean(), abs=1e-5)
    assert fit.point["s"] == pytest.approx(np.sqrt(v - 1.0), rel=1e-5)
    errors = fit.standard_errors
    assert errors["mu"] == pytest.approx(np.sqrt(v / y.size), rel=1e-4)
    # Var(v) = 2 v²/n and ds/dv = 1/(2 s).
    assert errors["s"] == pytest.approx(
        np.sqrt(2.0 / y.size) * v / (2.0 * fit.point["s"]), rel=1e-4
    )
    on_log_scale = errors["s"] / fit.point["s"]
    np.testing.assert_allclose(
        np.sqrt(np.diagonal(fit.covariance)), [errors["mu"], on_log_scale], rtol=1e-6
    )


def two_explanations():
    """A slope with much noise, or fast waves: two optima of the lengthscale."""
    x = np.linspace(-3.0, 3.0, 10)
    with pm.Model() as model:
        ls = pm.LogNormal("ls", 0.5, 1.0, initval=0.8)
        f = add_gp(pm.gp.cov.ExpQuad(1, ls=ls), x[:, None])
        pm.Normal("y", f, 0.5, observed=0.6 * np.sin(3.0 * x) + 0.4 * x)
    return model


def test_several_starts_find_the_better_of_two_optima():
    model = two_explanations()
    alone, several = run(model, n_starts=1), run(model, n_starts=6)
    assert alone.point["ls"] == pytest.approx(0.84, abs=0.02)
    assert several.point["ls"] == pytest.approx(3.6, abs=0.02)
    reached = several.starts["log_objective"]
    assert float(reached[0]) == pytest.approx(alone.log_objective)
    assert float(reached.max()) == several.log_objective > alone.log_objective + 1.0
    agreed = int((reached > several.log_objective - 0.01).sum())
    assert 1 <= agreed < 6
    assert f"{agreed} of 6 starts arrived here, 0 failed" in repr(several)


def test_separable_labels_leave_the_variance_unbounded():
    with pytest.warns(UserWarning, match="does not bound sigma: it is as high at the edge"):
        fit = run(gp_probit())
    assert fit.unbounded == ("sigma",)
    assert fit.point["sigma"] > 1e3
    assert np.isnan(fit.standard_errors["sigma"])
    assert np.isfinite(fit.standard_errors["ls"])
    assert np.isnan(fit.covariance).tolist() == [[False, True], [True, True]]
    assert "not bounded by the objective: sigma" in repr(fit)


def test_what_the_likelihood_does_not_see_is_named():
    with pytest.warns(UserWarning, match="does not bound centre, spread:"):
        fit = run(hierarchical_probit())
    assert fit.unbounded == ("centre", "spread")
    assert np.isfinite(fit.standard_errors["ls"]).all()


def test_a_ridge_of_optima_has_no_standard_errors():
    """Two factors of which only the product counts."""
    with pm.Model() as model:
        first, second = pm.HalfNormal("first", 1.0), pm.HalfNormal("second", 1.0)
        K = first * second * pm.gp.cov.ExpQuad(1, ls=0.3)(inputs()) + 0.1 * np.eye(8)
        pm.Normal(
            "y", pm.MvNormal("f", np.zeros(8), cov=K), 0.1, observed=np.sin(5 * inputs()[:, 0])
        )
    with pytest.warns(UserWarning, match="the standard errors are NaN"):
        fit = run(model, approximation="laplace")
    assert fit.unbounded == ()
    assert all(np.isnan(error) for error in fit.standard_errors.values())
    product = fit.point["first"] * fit.point["second"]
    again = pmpm.estimate_log_marginal({"first": 1.0, "second": product}, model=model)
    assert again.log_approximation == pytest.approx(fit.log_marginal, abs=1e-8)


def test_dims_coords_and_predictions():
    with pm.Model(coords={"feature": ["a", "b"]}) as model:
        ls = pm.Gamma("ls", 2.0, 2.0, dims="feature")
        gp = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(2, ls=ls))
        observe_probit(gp.prior("f", X=inputs(d=2)), labels())
    fit = run(model, objective="map")
    assert fit.estimates["ls"].dims == ("statistic", "feature")
    assert fit.estimates["feature"].values.tolist() == ["a", "b"]
    assert fit.estimates["statistic"].values.tolist() == ["estimate", "standard_error"]
    assert fit.point["ls"].shape == fit.standard_errors["ls"].shape == (2,)
    np.testing.assert_allclose(fit.point["ls"], np.exp(fit.theta))
    assert fit.starts["element"].values.tolist() == ["ls_log__[0]", "ls_log__[1]"]
    assert re.search(r"ls\[1\] +[\d.]+ +[\d.]+\n", repr(fit))
    found = pmpm.predict_approximately(fit.point, gp, inputs(5, 2), model=model, progressbar=False)
    assert found["p"].dims == ("point",)
    assert ((found["p"] > 0.0) & (found["p"] < 1.0)).all()


def test_the_seed_reproduces_and_the_first_start_is_the_initial_point(map_fit):
    model = gp_probit()
    with model:
        again = run(None, objective="map")
    xr.testing.assert_identical(again.starts, map_fit.starts)
    xr.testing.assert_identical(again.estimates, map_fit.estimates)
    other = run(model, objective="map", random_seed=np.random.default_rng(5))
    initial = read_model(model).theta_from_natural(None)
    for fit in (map_fit, other):
        np.testing.assert_array_equal(fit.starts["initial"][0], initial)
    assert (other.starts["initial"][1:] != map_fit.starts["initial"][1:]).all()
    assert other.log_objective == pytest.approx(map_fit.log_objective, abs=1e-8)


def scaled(prior):
    """A GP whose variance is a function of a prior, called in the model."""
    with pm.Model() as model:
        observe_probit(add_gp(prior() * pm.gp.cov.Matern52(1, ls=0.5), inputs(30)), labels(30))
    return model


def infinite_below(limit):
    v = pm.Normal("v", 0.0, 3.0)
    return pm.math.switch(v < limit, np.inf, pm.math.exp(v))


def test_starts_that_fail_are_recorded():
    fit = run(scaled(lambda: infinite_below(-1.0)), n_starts=6)
    starts = fit.starts
    failed = starts["initial"].squeeze("element") < -1.0
    assert 0 < int(failed.sum()) < 6
    np.testing.assert_array_equal(starts["log_objective"].isnull(), failed)
    np.testing.assert_array_equal(starts["converged"], ~failed)
    assert f"{int(failed.sum())} failed" in repr(fit)


def test_priors_that_cannot_be_drawn_from():
    flat, proper = (
        run(scaled(prior), n_starts=3)
        for prior in (lambda: pm.HalfFlat("v"), lambda: pm.Gamma("v", 2.0, 0.5))
    )
    assert flat.point["v"] == pytest.approx(proper.point["v"], rel=1e-4)
    assert len(np.unique(flat.starts["initial"])) == 3


def test_no_finite_start_is_an_error(monkeypatch):
    def fails(*args, **kwargs):
        raise NoFiniteApproximation("never")

    monkeypatch.setitem(APPROXIMATIONS, "ep", fails)
    with pytest.raises(NumericalFailure, match="None of 2 starts has a finite objective"):
        run(gp_probit())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"approximation": "vb"}, "Unknown approximation 'vb'"),
        ({"objective": "bayes"}, "Unknown objective 'bayes'; expected 'ml' or 'map'"),
        ({"n_starts": 0}, "n_starts must be a whole number of at least 1; found 0"),
        ({"n_starts": 2.5}, "n_starts must be a whole number"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        run(gp_probit(), **arguments)


def test_a_model_without_hyper_parameters_is_refused():
    with pytest.raises(ValueError, match="no hyper-parameters to fit"):
        run(fixed_prior_probit())


def test_the_progress_bar_can_be_silenced(capsys):
    model = two_explanations()
    run(model, n_starts=1)
    assert not capsys.readouterr().out
    run(model, n_starts=1, progressbar=True)
    assert "Starts of the optimiser" in capsys.readouterr().out
