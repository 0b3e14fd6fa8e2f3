"""Newton's method arrives, or ends, from wherever it starts."""

import numpy as np
import pytest
from approximations.latent_models import Fixed, crossed_poisson, three_classes, two_predictors
from linalg.latent_problems import (
    AsymmetricLaplace,
    Bernoulli,
    Poisson,
    StudentT,
    gaussian_prior,
    structures,
)
from scipy.sparse import csc_array, eye_array

from pymc_pseudomarginal.approximations.laplace import laplace
from pymc_pseudomarginal.approximations.target import LaplaceTarget
from pymc_pseudomarginal.linalg.factor import plan
from pymc_pseudomarginal.linalg.latent import GaussianPrior, Predictor
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation, NumericalFailure

NONE = np.zeros(0)


def fit(model, start=None, theta=NONE, **options):
    at = model.at(theta)
    eta = at.predictor.matrix @ np.zeros(model.size) + at.predictor.offset
    with np.errstate(all="ignore"):
        curvature = at.likelihood.derivatives(eta).curvature
    made = plan(at.prior, at.predictor, curvature)
    return at, laplace(at, made, np.zeros(model.size) if start is None else start, **options)


def gradient_at(at, x):
    eta = at.predictor.matrix @ x + at.predictor.offset
    return at.predictor.matrix.T @ at.likelihood.derivatives(eta).gradient + at.prior.gradient(x)


@pytest.mark.parametrize("model", [crossed_poisson, two_predictors, three_classes])
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_is_a_mode(model, seed):
    model = model(seed)
    at, found = fit(model, theta=np.full(model.dim_theta, -0.2))
    assert found.converged
    # In standard deviations of q: the step is the error left.
    left = found.factor.colour_back(gradient_at(at, found.mean))
    assert np.linalg.norm(left) < 1e-4
    # The site's gradient balances the prior's exactly.
    balance = at.predictor.matrix.T @ found.gradient + at.prior.gradient(found.mean)
    np.testing.assert_allclose(balance, 0.0, atol=1e-8)


def test_a_far_start_leads_to_the_same_mode():
    model, theta = crossed_poisson(), np.array([-0.2, -0.2])
    _, near = fit(model, theta=theta)
    rng = np.random.default_rng(0)
    for scale in (1.0, 10.0, 100.0):
        start = scale * rng.standard_normal(model.size)
        _, far = fit(model, start, theta)
        np.testing.assert_allclose(far.mean, near.mean, atol=1e-5)


@pytest.mark.parametrize("name", structures())
@pytest.mark.parametrize("kind", [StudentT, AsymmetricLaplace, Bernoulli])
def test_densities_that_are_not_log_concave_or_smooth_end(name, kind):
    prior, predictor = structures()[name]
    rng = np.random.default_rng(1)
    m = predictor.size
    y = rng.integers(0, 2, m) if kind is Bernoulli else 3.0 * rng.standard_t(2, m)
    _, found = fit(Fixed(prior, predictor, kind(y)))
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.factor.log_determinant)
    assert found.iterations < 100


@pytest.mark.parametrize("precision", [0.0, 0.01], ids=["flat", "proper"])
@pytest.mark.parametrize("quantile", [0.5, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_regression_on_quantiles_has_a_usable_q(seed, quantile, precision):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(150), rng.standard_normal((150, 3))])
    y = X @ [1.0, 0.5, -1.0, 0.0] + 0.7 * rng.laplace(size=150)
    prior = GaussianPrior(0.0, np.zeros(4), csc_array(precision * np.eye(4)))
    model = Fixed(prior, Predictor(X, np.zeros(150)), AsymmetricLaplace(y, quantile, 0.35))
    q = LaplaceTarget(model).at(NONE)
    # An independent draw is accepted well up to a standard deviation of about one.
    assert q.log_weights(rng.standard_normal((2000, 4))).std() < 0.9


def test_saturated_terms_are_no_kinks():
    # At 50 the Bernoulli's curvature is zero in floating point, and its slope is one.
    prior = gaussian_prior(csc_array(eye_array(3)), np.random.default_rng(0))
    model = Fixed(prior, Predictor(np.eye(3), np.zeros(3)), Bernoulli(np.array([0, 1, 0])))
    _, near = fit(model)
    _, far = fit(model, np.array([800.0, -800.0, 800.0]))
    assert far.converged
    np.testing.assert_allclose(far.mean, near.mean, atol=1e-6)


def test_terms_without_curvature_and_far_outliers_keep_a_factor():
    # All data where the Student t is convex, under a flat prior.
    prior = GaussianPrior(0.0, np.zeros(1), csc_array(np.zeros((1, 1))))
    y = np.array([50.0, 51.0, 49.5])
    _, found = fit(Fixed(prior, Predictor(np.ones((3, 1)), np.zeros(3)), StudentT(y)))
    assert 49.0 < found.mean[0] < 51.0


class PositiveOnly(Poisson):
    """Identity link: zero density unless every predictor is positive."""

    def terms(self, eta):
        return np.where(eta > 0.0, self.y * np.log(np.where(eta > 0.0, eta, 1.0)) - eta, -np.inf)

    def slopes(self, eta):
        return self.y / eta - 1.0, self.y / eta**2


def test_a_start_outside_the_support_is_replaced_by_the_mean_of_the_prior():
    mean, precision = 3.0, 4.0
    prior = GaussianPrior(0.0, np.full(2, mean * precision), csc_array(precision * np.eye(2)))
    model = Fixed(prior, Predictor(np.eye(2), np.zeros(2)), PositiveOnly(np.array([2, 5])))
    at, found = fit(model, np.array([-1.0, 2.0]))
    assert np.linalg.norm(gradient_at(at, found.mean)) < 1e-4


def test_no_support_is_a_typed_failure():
    prior = GaussianPrior(0.0, np.full(2, -9.0), csc_array(np.eye(2)))
    model = Fixed(prior, Predictor(np.eye(2), np.zeros(2)), PositiveOnly(np.array([2, 5])))
    with pytest.raises(NoFiniteApproximation):
        fit(model)


def test_a_flat_prior_without_data_is_a_typed_failure():
    prior = GaussianPrior(0.0, np.zeros(2), csc_array(np.diag([1.0, 0.0])))
    A = np.array([[1.0, 0.0]])
    model = Fixed(prior, Predictor(A, np.zeros(1)), Poisson(np.array([1])))
    with pytest.raises(NumericalFailure):
        fit(model)
