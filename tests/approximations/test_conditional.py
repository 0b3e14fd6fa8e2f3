"""The weights of q are exact, whatever q."""

import numpy as np
import pytest
from approximations.latent_models import (
    Fixed,
    Scaled,
    crossed_poisson,
    lattice_with_sum,
    three_classes,
    two_predictors,
)
from linalg.latent_problems import (
    AsymmetricLaplace,
    Bernoulli,
    HeteroskedasticNormal,
    Normal,
    Poisson,
    StudentT,
    gaussian_prior,
    random_walk,
    structures,
)
from scipy.integrate import dblquad, quad
from scipy.sparse import csr_array, eye_array
from scipy.stats import multivariate_normal
from stat_checks import LIMIT, z_of_independent

from pymc_pseudomarginal.approximations.conditional import Conditional
from pymc_pseudomarginal.approximations.target import LaplaceTarget
from pymc_pseudomarginal.linalg.factor import Plan, SparseWithRows
from pymc_pseudomarginal.linalg.latent import Predictor

MODELS = {
    "crossed Poisson": crossed_poisson,
    "two predictors": two_predictors,
    "softmax": three_classes,
    "lattice with a row": lambda: lattice_with_sum(
        Poisson(np.random.default_rng(0).poisson(2.0, 81))
    ),
}
EVERY_MODEL = pytest.mark.parametrize("name", MODELS)


def conditional(name, theta=None):
    model = MODELS[name]()
    return LaplaceTarget(model).at(np.full(model.dim_theta, -0.3) if theta is None else theta)


@pytest.mark.parametrize("n", [12, 70], ids=["dense", "sparse"])
def test_of_gaussian_data_every_weight_is_the_evidence(n):
    rng = np.random.default_rng(1)
    A = csr_array(eye_array(n))
    y = rng.standard_normal(n)
    model = Scaled(A, (n,), Normal(y, 0.7), mean=0.4)
    target = LaplaceTarget(model)
    theta = np.array([0.3])
    q = target.at(theta)
    assert isinstance(target._plan.form, SparseWithRows) is (n > 50)
    covariance = (np.exp(0.6) + 0.49) * np.eye(n)
    truth = multivariate_normal(np.full(n, 0.4), covariance).logpdf(y)
    found = q.log_weights(3.0 * rng.standard_normal((50, n)))
    np.testing.assert_allclose(found, truth, rtol=1e-11)
    assert q.log_weight(np.zeros(n)) == pytest.approx(truth, rel=1e-11)
    # A control: without log|P|, the weights miss the evidence by far.
    assert abs(found[0] + 0.5 * q.factor.log_determinant - truth) > 1.0


@pytest.mark.parametrize("name", structures())
def test_of_gaussian_data_weights_are_constant_for_every_structure(name):
    prior, predictor = structures()[name]
    rng = np.random.default_rng(2)
    q = LaplaceTarget(Fixed(prior, predictor, Normal(rng.standard_normal(predictor.size)))).at(
        np.zeros(0)
    )
    weights = q.log_weights(rng.standard_normal((20, q.size)))
    np.testing.assert_allclose(weights, weights[0], rtol=1e-10)


@EVERY_MODEL
def test_a_weight_is_the_ratio_of_the_joint_density_to_q(name):
    """Against the definition, with dense matrices and no identity used."""
    model = MODELS[name]()
    theta = np.full(model.dim_theta, -0.3)
    q, at = LaplaceTarget(model).at(theta), model.at(theta)
    T = q.factor.colour(np.eye(q.size)).T
    density = multivariate_normal(q.mean, T @ T.T)
    for u in np.random.default_rng(0).standard_normal((5, q.size)):
        x = q.latent(u)
        eta = at.predictor.matrix @ x + at.predictor.offset
        joint = at.likelihood.log_density(eta) + at.prior.log_density(x)
        assert q.log_weight(u) == pytest.approx(joint - density.logpdf(x), rel=1e-9, abs=1e-8)


def one_dimensional(likelihood):
    m = len(likelihood.y)
    return Scaled(np.ones((m, 1)), (1,), likelihood, mean=0.2)


SMALL = {
    "poisson": lambda: one_dimensional(Poisson(np.array([3, 0, 2]))),
    "bernoulli": lambda: one_dimensional(Bernoulli(np.array([1, 1]))),
    "student": lambda: one_dimensional(StudentT(np.array([-4.0, 0.3, 1.0]))),
    "kinks": lambda: one_dimensional(AsymmetricLaplace(np.array([-0.4, 0.3, 1.0]), 0.3)),
    # Enough data that the weights have a variance, of which z-scores need one.
    "two predictors": lambda: Scaled(
        np.tile(np.eye(2), (6, 1)), (2,), HeteroskedasticNormal(np.array([0.8, -1, 0.3, 2, 0, -2]))
    ),
}


def evidence(model, theta):
    """The integral of p(y, x|theta) over x, of one or two dimensions, by quadrature."""
    at = model.at(theta)

    def joint(*x):
        x = np.array(x)
        eta = at.predictor.matrix @ x + at.predictor.offset
        return np.exp(at.likelihood.log_density(eta) + at.prior.log_density(x))

    if model.size == 1:
        return quad(joint, -12, 12, points=[-4, -1, 0, 1], epsabs=1e-12, limit=300)[0]
    return dblquad(joint, -8, 8, -8, 8, epsabs=1e-8)[0]


@pytest.mark.parametrize("name", SMALL)
def test_weights_are_unbiased(name):
    model, theta = SMALL[name](), np.array([0.1])
    truth = evidence(model, theta)
    q = LaplaceTarget(model).at(theta)
    log_weights = q.log_weights(np.random.default_rng(3).standard_normal((40_000, q.size)))
    weights = np.exp(log_weights)
    assert abs(z_of_independent(weights, truth)) < LIMIT
    wrong = np.exp(log_weights + 0.5 * q.factor.log_determinant)
    assert abs(z_of_independent(wrong, truth)) > LIMIT


@EVERY_MODEL
def test_the_gradient_is_that_of_differences(name):
    q = conditional(name)
    rng = np.random.default_rng(4)
    u = rng.standard_normal(q.size)
    value, gradient = q.log_weight_and_gradient(u)
    assert value == pytest.approx(q.log_weight(u), rel=1e-12)
    for direction in rng.standard_normal((4, q.size)):
        h = 1e-5
        difference = (q.log_weight(u + h * direction) - q.log_weight(u - h * direction)) / (2 * h)
        # Differences are off by h^2 and by rounding over h.
        assert direction @ gradient == pytest.approx(difference, rel=1e-5, abs=1e-5)


@EVERY_MODEL
def test_rows_of_noise_are_taken_one_by_one(name):
    q = conditional(name)
    u = np.random.default_rng(5).standard_normal((6, q.size))
    np.testing.assert_allclose(q.log_weights(u), [q.log_weight(row) for row in u], rtol=1e-12)
    np.testing.assert_allclose(q.latent(u), [q.latent(row) for row in u], rtol=1e-12, atol=1e-14)


@EVERY_MODEL
def test_noise_inverts_latent(name):
    q = conditional(name)
    u = np.random.default_rng(6).standard_normal(q.size)
    np.testing.assert_allclose(q.noise(q.latent(u)), u, rtol=1e-10, atol=1e-11)


def test_dense_and_sparse_forms_have_the_same_marginal():
    rng = np.random.default_rng(7)
    n = 90
    prior = gaussian_prior(random_walk(n), rng)
    model = Fixed(
        prior, Predictor(csr_array(eye_array(n)), np.zeros(n)), Poisson(rng.poisson(3.0, n))
    )
    sparse, dense = LaplaceTarget(model), LaplaceTarget(model)
    q = sparse.at(np.zeros(0))
    dense._plan = Plan(sparse._plan.curvature_form, sparse._plan.form._dense)
    p = dense.at(np.zeros(0))
    assert type(p.factor) is not type(q.factor)
    np.testing.assert_allclose(p.mean, q.mean, rtol=1e-9, atol=1e-10)
    zero = np.zeros(n)
    assert p.log_weight(zero) == pytest.approx(q.log_weight(zero), rel=1e-11)


def test_a_weight_that_does_not_exist_is_zero():
    class Bounded(Poisson):
        def terms(self, eta):
            return np.where(eta > 1.0, np.nan, super().terms(eta))

    model = one_dimensional(Bounded(np.array([1])))
    q: Conditional = LaplaceTarget(model).at(np.array([0.0]))
    u = np.array([[0.0], [50.0], [1e300]])
    log_weights = q.log_weights(u)
    assert np.isfinite(log_weights[0])
    assert list(log_weights[1:]) == [-np.inf, -np.inf]
    assert q.log_weight(u[1]) == q.log_weight_and_gradient(u[1])[0] == -np.inf
