"""`predict` against PyMC's own conditional, and response by response against formulas."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr
from inference_data import posterior
from models import N, inputs, labels
from pymc.pytensorf import compile as compile_graph
from scipy import stats
from scipy.special import expit, ndtr

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.model import LatentGaussianModel
from pymc_pseudomarginal.prediction import integration

X_NEW = np.array([[-1.4], [-0.2], [0.3], [2.0]])
FIXED = pm.gp.cov.ExpQuad(1, ls=0.6)


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Values are wanted here, not speed."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def gp_model(observe, *, covariance=FIXED, mean=None, X=None, **kwargs):
    """(model, gp) with the observed variables that `observe(f)` adds."""
    X = inputs() if X is None else X
    with pm.Model() as model:
        gp = pm.gp.Latent(mean_func=mean or pm.gp.mean.Zero(), cov_func=covariance)
        observe(gp.prior("f", X=X, **kwargs))
    return model, gp


def observe_labels(f):
    pm.Bernoulli("y", p=pm.math.invprobit(f), observed=labels())


def draws_of_f(shape=(2, 3), seed=0):
    """A few draws of a smooth f, shape (*shape, N)."""
    levels = np.random.default_rng(seed).standard_normal((*shape, 1))
    return levels * np.sin(2.0 * inputs()[:, 0]) + 0.3


def predict(idata, gp, model, X_new=X_NEW, **kwargs):
    return pmpm.predict(idata, gp, X_new, model=model, progressbar=False, **kwargs)


def free_gp():
    """A probit model with free length-scales and mean, and a posterior with repeated draws."""
    rng = np.random.default_rng(1)
    X = inputs(d=2)
    with pm.Model(coords={"feature": ["a", "b"]}) as model:
        ls = pm.Gamma("ls", 2.0, 2.0, dims="feature")
        share = pm.Beta("share", 2.0, 2.0)
        level = pm.Normal("level")
        kernel = share * pm.gp.cov.ExpQuad(2, ls=ls) + (1.0 - share) * pm.gp.cov.Matern32(2, ls=1.0)
        gp = pm.gp.Latent(mean_func=pm.gp.mean.Constant(level), cov_func=kernel)
        observe_labels(gp.prior("f", X=X))
    theta = {
        "ls": rng.gamma(2.0, 0.5, (2, 4, 2)),
        "share": rng.beta(2.0, 2.0, (2, 4)),
        "level": rng.standard_normal((2, 4)),
    }
    for values in theta.values():
        values[:, 2] = values[:, 1]  # a rejected proposal
    return model, gp, posterior(f=draws_of_f((2, 4)), **theta)


@pytest.fixture(scope="module")
def free():
    """A model with free hyper-parameters, which takes longer to read."""
    return free_gp()


@pytest.fixture
def plain():
    model, gp = gp_model(observe_labels)
    return model, gp, posterior(f=draws_of_f((2, 4)))


def test_latent_moments_equal_those_of_gp_conditional(free):
    model, gp, idata = free
    X_new = np.random.default_rng(2).uniform(-1.5, 1.5, (4, 2))
    with model:
        conditional = gp.conditional("f_new", X_new)
    found = predict(idata, gp, model, X_new)
    mu, cov = conditional.owner.op.dist_params(conditional.owner)
    names = ["ls", "share", "level", "f"]
    function = compile_graph([model[name] for name in names], [mu, cov])
    for chain in range(2):
        for draw in range(4):
            at = {"chain": chain, "draw": draw}
            values = [idata["posterior"][name].isel(at).values for name in names]
            mean, covariance = function(*values)
            np.testing.assert_allclose(found["f_mean"].isel(at), mean, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(found["f_var"].isel(at), np.diag(covariance), rtol=1e-6)


def test_draws_with_the_same_theta_are_factorised_once(free, monkeypatch):
    model, gp, idata = free
    calls = []
    prior = LatentGaussianModel.prior
    predict(idata, gp, model, np.zeros((1, 2)))
    monkeypatch.setattr(
        LatentGaussianModel, "prior", lambda self, theta: calls.append(theta) or prior(self, theta)
    )
    whole = predict(idata, gp, model, np.ones((5, 2)))
    assert len(calls) == 6
    assert not np.array_equal(whole["f_mean"][0, 1], whole["f_mean"][0, 2])


def test_what_is_remembered_of_a_model_follows_its_changes():
    with pm.Model() as model:
        X, y = pm.Data("X", inputs()), pm.Data("labels", labels())
        gp = pm.gp.Latent(cov_func=FIXED)
        f = gp.prior("f", X=X)
        shift = pm.Data("shift", np.zeros(N))
        pm.Bernoulli("y", p=pm.math.invprobit(f + shift), observed=y)
    idata = posterior(f=draws_of_f())
    before = predict(idata, gp, model)
    pm.set_data({"X": inputs() + 1.0, "shift": np.full(N, 0.5)}, model=model)
    after = predict(idata, gp, model, X_NEW + 1.0)
    np.testing.assert_allclose(after["f_mean"], before["f_mean"], rtol=1e-6, atol=1e-9)
    scale = np.sqrt(1.0 + after["f_var"])
    np.testing.assert_allclose(after["p"], ndtr((after["f_mean"] + 0.5) / scale), rtol=1e-6)
    pm.set_data({"shift": np.arange(N) / N}, model=model)
    with pytest.warns(UserWarning, match="'y' differs from datum to datum"):
        predict(idata, gp, model)
    pm.set_data({"X": inputs()[:5], "labels": labels()[:5], "shift": np.zeros(5)}, model=model)
    with pytest.raises(ValueError, match=r"'f' has the shape \(8,\).*\(5,\)"):
        predict(idata, gp, model)
    assert predict(posterior(f=draws_of_f()[..., :5]), gp, model)["p"].shape == (2, 3, 4)


def test_blocks_of_points_change_nothing(plain, monkeypatch):
    model, gp, idata = plain
    X_new = np.random.default_rng(3).uniform(-1.0, 1.0, (5, 1))
    whole = predict(idata, gp, model, X_new)
    monkeypatch.setattr(integration, "_NUMBERS_AT_ONCE", 2 * N)
    xr.testing.assert_allclose(predict(idata, gp, model, X_new), whole, rtol=1e-12)


def test_predictions_become_a_group_of_the_inference_data(plain):
    model, gp, idata = plain
    for m in (1, 3):  # the second replaces the first
        found = predict(idata, gp, model, np.zeros((m, 1)))
        group = idata["predictions"]
        assert found["p"].dims == ("chain", "draw", "point")
        np.testing.assert_array_equal(group["p"].values, found["p"].values)
    assert found.attrs["inference_library"] == "pymc_pseudomarginal"


def test_coordinates_are_those_of_the_user(plain):
    model, gp, idata = plain
    thinned = idata.sel(draw=slice(1, None, 2))
    frame = pd.DataFrame(np.zeros((2, 1)), index=["Oslo", "Bergen"])
    found = predict(thinned, gp, model, frame)
    assert found["point"].values.tolist() == ["Oslo", "Bergen"]
    assert found["draw"].values.tolist() == [1, 3]
    array = xr.DataArray(np.zeros((2, 1)), dims=("town", "feature"), coords={"town": [7, 9]})
    assert predict(idata, gp, model, array)["point"].values.tolist() == [7, 9]
    many = frame.set_index([[1, 1], [2, 3]])
    assert predict(idata, gp, model, many)["point"].values.tolist() == [0, 1]


def test_data_containers_centred_latents_and_sums_of_processes():
    with pm.Model() as model:
        X = pm.Data("X", inputs())
        gp = pm.gp.Latent(cov_func=FIXED) + pm.gp.Latent(
            mean_func=pm.gp.mean.Linear(coeffs=np.array([0.5])),
            cov_func=pm.gp.cov.Matern52(1, ls=1.0),
        )
        observe_labels(gp.prior("f", X=X, reparameterize=False))
    f = draws_of_f()
    found = predict(posterior(f=f), gp, model)

    def kernel(a, b):
        r = np.sqrt(5.0) * np.abs(a - b.T)
        return np.exp(-0.5 * (a - b.T) ** 2 / 0.36) + (1.0 + r + r**2 / 3.0) * np.exp(-r)

    K = kernel(inputs(), inputs()) + 1e-6 * np.eye(N)
    weights = np.linalg.solve(K, kernel(inputs(), X_NEW))
    mean = 0.5 * X_NEW[:, 0] + (f - 0.5 * inputs()[:, 0]) @ weights
    np.testing.assert_allclose(found["f_mean"], mean, rtol=1e-5, atol=1e-6)


def test_a_kronecker_process():
    Xs = [np.array([[0.0], [1.0]]), np.linspace(0.0, 2.0, N // 2)[:, None]]
    covariances = [pm.gp.cov.ExpQuad(1, ls=1.5), pm.gp.cov.Matern52(1, ls=0.5)]
    with pm.Model() as model:
        gp = pm.gp.LatentKron(cov_funcs=covariances)
        observe_labels(gp.prior("f", Xs=Xs))
    f = draws_of_f()
    grid = pm.math.cartesian(*Xs)
    found = predict(posterior(f=f), gp, model, np.vstack([grid[3], [9.0, 9.0]]))
    np.testing.assert_allclose(found["f_mean"][..., 0], f[..., 3], atol=1e-4)
    np.testing.assert_allclose(found["f_var"][..., 1], 1.0, atol=1e-6)


# --- responses ---------------------------------------------------------------------------


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


# --- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X_new", "message"),
    [
        (np.zeros((3, 2)), r"shape \(m, 1\).*found \(3, 2\)"),
        (np.zeros(3), r"found \(3,\).*Xnew\[:, None\]"),
        (np.zeros((0, 1)), r"found \(0, 1\)"),
        (np.array([[0.0], [np.nan]]), "NaN or infinite values in 1 of 2 rows.*row 1"),
        (np.array([["a"]]), "matrix of numbers"),
    ],
)
def test_bad_new_inputs(plain, X_new, message):
    model, gp, idata = plain
    with pytest.raises(ValueError, match=message):
        predict(idata, gp, model, X_new)


def test_a_foreign_process(plain):
    model, _, idata = plain
    other = gp_model(observe_labels)[1]
    with pytest.raises(ValueError, match=r"not the process of this model.*model="):
        predict(idata, other, model)
    with pytest.raises(ValueError, match="no prior yet"):
        predict(idata, pm.gp.Latent(cov_func=FIXED), model)
    with pytest.raises(TypeError, match="found Marginal"):
        predict(idata, pm.gp.Marginal(cov_func=FIXED), model)


def test_bad_inference_data():
    def observe(f):
        shift = pm.Normal("shift")
        pm.Bernoulli("y", p=pm.math.invprobit(f + shift), observed=labels())

    model, gp = gp_model(observe)
    f, shift = draws_of_f((1, 3)), np.zeros((1, 3))
    without_f = posterior(shift=shift)
    with pytest.raises(ValueError, match=r"does not contain 'f'.*it contains 'shift'.*var_names"):
        predict(without_f, gp, model)
    with pytest.raises(ValueError, match="does not contain 'shift'"):
        predict(posterior(f=f), gp, model)
    with pytest.raises(ValueError, match=r"'f' has the shape \(5,\).*\(8,\)"):
        predict(posterior(f=f[..., :5], shift=shift), gp, model)
    with pytest.raises(ValueError, match="'shift' contain NaN"):
        predict(posterior(f=f, shift=np.nan * shift), gp, model)
    with pytest.raises(TypeError, match=r"posterior group.*found ndarray"):
        predict(f, gp, model)
    assert "predictions" not in without_f
