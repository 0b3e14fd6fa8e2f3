"""`predict`: the latent against PyMC's own conditional, blocks, coordinates, bad input."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr
from inference_data import posterior
from models import N, inputs, labels
from prediction_cases import FIXED, X_NEW, draws_of_f, gp_model, observe_labels, predict
from pymc.pytensorf import compile as compile_graph
from scipy.special import ndtr

from pymc_pseudomarginal.model import LatentGaussianModel
from pymc_pseudomarginal.prediction import integration


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Values are wanted here, not speed."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


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
