"""What `predict` says of the response, likelihood by likelihood, against formulas."""

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from inference_data import posterior
from models import N, labels
from prediction_cases import X_NEW, draws_of_f, gp_model, observe_labels, predict
from scipy import stats
from scipy.special import expit, ndtr


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Values are wanted here, not speed."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def by_quadrature(function, found):
    """E g(f) by 200 Gauss-Hermite nodes, enough for the smooth functions used here."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    f = found["f_mean"].values[..., None] + np.sqrt(found["f_var"].values)[..., None] * nodes
    return function(f) @ weights / np.sqrt(2.0 * np.pi)


def observe_scaled(f):
    pm.Bernoulli("y", p=pm.math.invprobit(2.0 * f - 0.5), observed=labels())


def observe_square(f):
    pm.Bernoulli("y", p=pm.math.invprobit(f**2), observed=labels())


def observe_logit(f):
    pm.Bernoulli("y", logit_p=f, observed=labels())


def observe_repeatedly(f):
    index = np.repeat(np.arange(N - 1), 2)
    pm.Bernoulli("y", p=pm.math.invlogit(f[index]), observed=labels()[index])


def observe_binomial(f):
    pm.Binomial("y", n=20, logit_p=f, observed=np.arange(N))


def observe_poisson(f):
    pm.Poisson("y", mu=1.5 * pm.math.exp(f), observed=np.arange(N))


def observe_negative_binomial(f):
    pm.NegativeBinomial("y", mu=pm.math.exp(f), alpha=2.0, observed=np.arange(N), shape=N)


def observe_normal(f):
    pm.Normal("y", f + 1.0, 0.5, observed=np.linspace(-1.0, 1.0, N))


RESPONSES = {
    "scaled probit": (
        observe_scaled,
        "p",
        lambda p: ndtr((2.0 * p["f_mean"] - 0.5) / np.sqrt(1.0 + 4.0 * p["f_var"])),
    ),
    "square in probit": (observe_square, "p", lambda p: by_quadrature(lambda f: ndtr(f**2), p)),
    "logit": (observe_logit, "p", lambda p: by_quadrature(expit, p)),
    "repeated": (observe_repeatedly, "p", lambda p: by_quadrature(expit, p)),
    "binomial": (observe_binomial, "mean", lambda p: 20.0 * by_quadrature(expit, p)),
    "poisson": (
        observe_poisson,
        "mean",
        lambda p: 1.5 * np.exp(p["f_mean"] + 0.5 * p["f_var"]),
    ),
    "negative binomial": (
        observe_negative_binomial,
        "mean",
        lambda p: np.exp(p["f_mean"] + 0.5 * p["f_var"]),
    ),
    "normal": (observe_normal, "mean", lambda p: p["f_mean"] + 1.0),
}


@pytest.mark.parametrize("case", RESPONSES)
def test_response_integrates_the_latent(case):
    observe, quantity, expected = RESPONSES[case]
    model, gp = gp_model(observe)
    found = predict(posterior(f=draws_of_f()), gp, model)
    draws = {"y"} if quantity == "mean" else set()
    assert set(found) == {"f_mean", "f_var", quantity} | draws
    np.testing.assert_allclose(found[quantity], expected(found), rtol=1e-6, atol=1e-8)
    if draws and case != "normal":
        assert found["y"].dtype.kind == "i"


def test_categories_of_an_ordinal_response():
    def observe(f):
        pm.OrderedProbit("y", eta=f, cutpoints=np.array([-0.5, 1.0]), observed=np.arange(N) % 3)

    model, gp = gp_model(observe)
    found = predict(posterior(f=draws_of_f()), gp, model)
    assert found["p"].dims == ("chain", "draw", "point", "category")
    scale = np.sqrt(1.0 + found["f_var"].values)
    low, high = (ndtr((c - found["f_mean"].values) / scale) for c in (-0.5, 1.0))
    expected = np.stack([low, high - low, 1.0 - high], axis=-1)
    np.testing.assert_allclose(found["p"], expected, atol=1e-5)  # PyMC's sqrt(2) is single


def test_parameters_of_the_likelihood_are_those_of_the_draw():
    def observe(f):
        shift, noise = pm.Normal("shift"), pm.HalfNormal("noise")
        pm.Normal("y", f + shift, noise, observed=np.linspace(-1.0, 1.0, N))

    model, gp = gp_model(observe)
    shift, noise = np.array([[-2.0, 3.0]]), np.array([[0.01, 1e-3]])
    idata = posterior(f=draws_of_f((1, 2)), shift=shift, noise=noise)
    found = predict(idata, gp, model)
    np.testing.assert_allclose(found["mean"], found["f_mean"] + shift[..., None], rtol=1e-8)


def test_predictive_draws_have_the_predictive_distribution():
    model, gp = gp_model(observe_poisson)
    f = np.repeat(draws_of_f((1, 1)), 4000, axis=1)
    found = predict(posterior(f=f), gp, model, random_seed=3)
    mean, f_var = (found[name].values[0, 0] for name in ("mean", "f_var"))
    counts = found["y"].values[0]
    for i in range(len(X_NEW)):
        # A Poisson count with a log-normal rate.
        variance = mean[i] + mean[i] ** 2 * np.expm1(f_var[i])
        z = (counts[:, i].mean() - mean[i]) / np.sqrt(variance / len(counts))
        assert abs(z) < 4.0
    p_zero = by_quadrature(lambda g: np.exp(-1.5 * np.exp(g)), found)[0, 0]
    for i in range(len(X_NEW)):
        zeros = int((counts[:, i] == 0).sum())
        assert stats.binomtest(zeros, len(counts), p_zero[i]).pvalue > 6e-5


def test_a_seed_reproduces_the_draws():
    model, gp = gp_model(observe_poisson)
    idata = posterior(f=draws_of_f((2, 40)))
    first, again, other = (predict(idata, gp, model, random_seed=s)["y"] for s in (1, 1, 2))
    xr.testing.assert_identical(first, again)
    assert not first.equals(other)


def test_a_name_that_is_taken_is_not_overwritten():
    model, gp = gp_model(lambda f: pm.Poisson("mean", pm.math.exp(f), observed=np.arange(N)))
    found = predict(posterior(f=draws_of_f()), gp, model)
    assert {"mean", "mean_draws"} < set(found)
    assert found["mean_draws"].dtype.kind == "i"


def observe_exposure(f):
    pm.Poisson("y", mu=np.arange(1.0, N + 1.0) * pm.math.exp(f), observed=np.arange(N))


def observe_potential(f):
    pm.Potential("fit", -0.5 * (f - 1.0) ** 2)


def observe_twice(f):
    observe_labels(f)
    pm.Poisson("counts", pm.math.exp(f), observed=np.arange(N))


def observe_censored(f):
    pm.Censored("y", pm.Normal.dist(f, 1.0), None, 1.0, observed=np.linspace(-1.0, 1.0, N))


@pytest.mark.parametrize(
    ("observe", "reason"),
    [
        (observe_exposure, "'y' differs from datum to datum"),
        (observe_potential, "'fit' .Potential."),
        (observe_twice, "Several variables.*'counts'"),
        (observe_censored, "mean of 'y' .Censored"),
    ],
)
def test_where_no_response_is_defined_the_latent_is_predicted(observe, reason):
    model, gp = gp_model(observe)
    with pytest.warns(UserWarning, match=f"Only the latent is predicted.*{reason}"):
        found = predict(posterior(f=draws_of_f()), gp, model)
    assert set(found) == {"f_mean", "f_var"}


def test_noise_that_differs_between_data_is_not_drawn_at_new_inputs():
    noise = np.linspace(0.1, 2.0, N)
    model, gp = gp_model(lambda f: pm.Normal("y", f + 1.0, noise, observed=np.zeros(N)))
    found = predict(posterior(f=draws_of_f()), gp, model)
    assert set(found) == {"f_mean", "f_var", "mean"}
    np.testing.assert_allclose(found["mean"], found["f_mean"] + 1.0, rtol=1e-8)
