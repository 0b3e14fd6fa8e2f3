"""Predictions from the Laplace and EP Gaussians, against the formulas of the paper."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from inference_data import posterior
from models import N, inputs, labels
from problems import exp_quad
from scipy.spatial.distance import cdist
from scipy.special import ndtr

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.numerics import APPROXIMATIONS, DensePrior
from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood

X_NEW = np.array([[-1.4], [0.3], [2.0]])
POINT = {"ls": 0.6, "sigma": 2.5}


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Values are wanted here, not speed."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="module")
def probit():
    with pm.Model() as model:
        ls, sigma = pm.Gamma("ls", 2.0, 2.0), pm.Gamma("sigma", 2.0, 1.0)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(1, ls=ls))
        pm.Bernoulli("y", p=pm.math.invprobit(gp.prior("f", X=inputs())), observed=labels())
    return model, gp


def predict(theta, probit, X_new=X_NEW, **kwargs):
    model, gp = probit
    return pmpm.predict_approximately(theta, gp, X_new, model=model, progressbar=False, **kwargs)


def formulas_of_the_paper(approximation, ls, sigma):
    """(m*, s²*, Phi(m* / sqrt(1 + s²*))) as section 2.1 writes them."""
    K = exp_quad(inputs(), ls, sigma)
    q = APPROXIMATIONS[approximation](
        DensePrior(np.zeros(N), K), ProbitLikelihood.from_labels(labels())
    )
    inverse = np.linalg.inv(K)
    Sigma = np.linalg.inv(inverse + np.diag(q.precision))
    k = sigma * np.exp(-0.5 * cdist(inputs(), X_NEW, "sqeuclidean") / ls**2)
    mean = k.T @ inverse @ q.mean
    variance = sigma - np.diag(k.T @ inverse @ k) + np.diag(k.T @ inverse @ Sigma @ inverse @ k)
    return mean, variance, ndtr(mean / np.sqrt(1.0 + variance))


@pytest.mark.parametrize("approximation", ["laplace", "ep"])
def test_at_a_given_theta_it_is_the_formula_of_the_paper(probit, approximation):
    found = predict(POINT, probit, approximation=approximation)
    expected = formulas_of_the_paper(approximation, **POINT)
    for name, values in zip(("f_mean", "f_var", "p"), expected, strict=True):
        assert found[name].dims == ("point",)
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-6)


def test_at_draws_of_theta_it_is_the_same_for_each(probit):
    ls, sigma = np.array([[0.6, 0.6, 1.1]]), np.array([[2.5, 2.5, 0.4]])
    idata = posterior(ls=ls, sigma=sigma)  # f is not needed
    found = predict(idata, probit)
    assert found["p"].dims == ("chain", "draw", "point")
    for i in range(3):
        expected = predict({"ls": ls[0, i], "sigma": sigma[0, i]}, probit)
        np.testing.assert_allclose(found["p"][0, i], expected["p"], rtol=1e-10)
    assert "predictions" not in idata


def test_a_fit_is_predicted_from_at_its_estimates(probit):
    fit = pmpm.fit_marginal(
        objective="map", n_starts=1, approximation="laplace", model=probit[0], progressbar=False
    )
    found = predict(fit, probit, approximation="laplace")
    expected = predict(fit.point, probit, approximation="laplace")
    np.testing.assert_array_equal(found["p"], expected["p"])


def test_bad_input(probit):
    with pytest.raises(ValueError, match=r"missing: \['sigma'\]"):
        predict({"ls": 0.6}, probit)
    with pytest.raises(ValueError, match=r"ls = -1.0 is outside its support"):
        predict({"ls": -1.0, "sigma": 1.0}, probit)
    with pytest.raises(ValueError, match=r"does not contain 'sigma'"):
        predict(posterior(ls=np.ones((1, 2))), probit)
    with pytest.raises(ValueError, match="approximation"):
        predict(POINT, probit, approximation="vb")
    with pytest.raises(TypeError, match="found float"):
        predict(0.6, probit)
    with pytest.raises(ValueError, match=r"found \(3, 2\)"):
        predict(POINT, probit, np.zeros((3, 2)))
