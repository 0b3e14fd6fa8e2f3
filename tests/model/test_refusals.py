"""What cannot be sampled exactly is refused at construction, by name."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from models import N, add_gp, gp_probit, inputs, labels, observe_probit
from pymc.distributions.transforms import ordered
from pymc.exceptions import ImputationWarning

from pymc_pseudomarginal import (
    EllipticalSlice,
    PseudoMarginalMH,
    UnsupportedModelError,
    estimate_log_marginal,
)
from pymc_pseudomarginal.model import read_model

ROUGH = pm.gp.cov.Matern52(1, ls=0.5)


@pytest.fixture(scope="module", autouse=True)
def interpreted():
    """Most models are refused before anything is worth a compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def model_of(observe, *, X=None, covariance=ROUGH):
    """A GP with the lengthscale fixed and f given to `observe`."""
    with pm.Model() as model:
        observe(add_gp(covariance, inputs() if X is None else X))
    return model


def no_latent():
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0)
        observe_probit(slope * inputs()[:, 0], labels())
    return model


def two_latents():
    with pm.Model() as model:
        f = add_gp(ROUGH, inputs())
        g = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, ls=2.0)).prior("g", X=inputs())
        observe_probit(f + g, labels())
    return model


def two_centred_latents():
    with pm.Model() as model:
        f = pm.MvNormal("f", np.zeros(N), cov=np.eye(N))
        g = pm.MvNormal("g", np.zeros(N), cov=np.eye(N))
        observe_probit(f + g, labels())
    return model


def nothing_observed():
    with pm.Model() as model:
        add_gp(ROUGH, inputs())
    return model


def observed_elsewhere():
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        add_gp(pm.gp.cov.ExpQuad(1, ls=ls), inputs())
        pm.Normal("measured", ls, 1.0, observed=0.5)
    return model


def differences():
    return model_of(lambda f: pm.Normal("rate", f[1:] - f[:-1], 1.0, observed=np.zeros(N - 1)))


def softmax():
    counts = np.arange(N)
    return model_of(
        lambda f: pm.Multinomial("counts", counts.sum(), pm.math.softmax(f), observed=counts)
    )


def discrete_variable():
    with pm.Model() as model:
        order = pm.Poisson("order", 3.0)
        observe_probit(add_gp((1.0 + order) * ROUGH, inputs()), labels())
    return model


def signs_as_labels():
    return model_of(lambda f: observe_probit(f, 2 * labels() - 1))


def inputs_with(value):
    X = inputs()
    X[3] = value
    return X


def constant_inputs_with_nan():
    return model_of(lambda f: observe_probit(f, labels()), X=inputs_with(np.nan))


def data_with_infinity():
    with pm.Model() as model:
        X = pm.Data("X", inputs_with(np.inf))
        observe_probit(add_gp(ROUGH, X), labels())
    return model


def data_with_nan():
    # pm.Data itself refuses NaN; pm.set_data masks it.
    with pm.Model() as model:
        X = pm.Data("X", inputs())
        observe_probit(add_gp(ROUGH, X), labels())
        pm.set_data({"X": inputs_with(np.nan)})
    return model


def indefinite():
    K = np.eye(N) - 0.5
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        observe_probit(pm.MvNormal("f", np.zeros(N), cov=scale * K), labels())
    return model


def indefinite_whitened():
    # A negative variance: K = -scale * Matern52 + jitter.
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        observe_probit(add_gp(-scale * ROUGH, inputs()), labels())
    return model


def asymmetric():
    K = np.eye(N)
    K[0, 1] = 0.5
    with pm.Model() as model:
        observe_probit(pm.MvNormal("f", np.zeros(N), cov=K), labels())
    return model


def free_variable_below():
    def observe(f):
        level = pm.Normal("level", f.mean(), 1.0)
        pm.Normal("measured", level, 1.0, observed=0.3)
        observe_probit(f, labels())

    return model_of(observe)


def potential_on_f():
    def observe(f):
        pm.Potential("monotone", -((f[1] - f[0]) ** 2))
        observe_probit(f, labels())

    return model_of(observe)


def too_few_labels():
    return model_of(lambda f: observe_probit(f, labels()[:-1]))


def too_few_labels_in_data():
    return model_of(lambda f: observe_probit(f, pm.Data("labels", labels()[:-1])))


def one_label():
    # PyMC repeats it for every element, without a word.
    return model_of(lambda f: observe_probit(f, pm.Data("labels", labels()[:1])))


def category_out_of_range():
    return model_of(
        lambda f: pm.OrderedProbit(
            "grade", eta=f, cutpoints=np.array([-1.0, 1.0]), observed=np.arange(N) % 4
        )
    )


def negative_count():
    return model_of(lambda f: pm.Poisson("y", pm.math.exp(f), observed=np.arange(N) - 1))


def coupled_by_a_coefficient():
    # At the initial point the coefficient is zero, and nothing seems to be coupled.
    with pm.Model() as model:
        f = add_gp(ROUGH, inputs())
        share = pm.Normal("share", 0.0, 1.0)
        pm.Normal("y", f + share * f[::-1], 1.0, observed=np.zeros(N))
    return model


def basis_functions():
    with pm.Model() as model:
        z = pm.Normal("z", 0.0, 1.0, shape=3)
        basis = np.stack([inputs()[:, 0] ** k for k in range(3)], axis=1)
        pm.Normal("y", pm.math.dot(basis, z), 1.0, observed=np.zeros(N))
    return model


def laplace_regression():
    # Piecewise linear in the latent: no curvature anywhere.
    return regression(lambda eta: pm.Laplace("y", eta, 1.0, observed=np.arange(N) / 4.0))


def asymmetric_laplace_regression():
    return regression(
        lambda eta: pm.AsymmetricLaplace("y", kappa=1.3, mu=eta, b=1.0, observed=np.arange(N) / 4.0)
    )


def laplace_regression_on_large_data():
    # Where f is small no residual changes its sign.
    return regression(lambda eta: pm.Laplace("y", eta, 1.0, observed=1e5 + np.arange(N)))


def regression(observe):
    """Independent coefficients behind a dense design."""
    X = np.random.default_rng(2).standard_normal((N, 3))
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, pm.HalfNormal("scale", 1.0), shape=3)
        observe(pm.math.dot(X, b))
    return model


def summed_laplace_differences():
    return model_of(lambda f: pm.Potential("rough", -pm.math.sum(abs(f[1:] - f[:-1]))))


def order_constraint():
    def observe(f):
        pm.Potential("order", pm.math.switch(f[0] < f[1] + 1.0, 0.0, -np.inf))
        observe_probit(f, labels())

    return model_of(observe)


def whitened_variable_observed():
    def observe(f):
        observe_probit(f, labels())
        z = pm.modelcontext(None)["f_rotated_"]
        pm.Normal("strange", z, 1.0, observed=np.zeros(N))

    return model_of(observe)


def two_independent_effects():
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0, shape=2)
        b = pm.Normal("b", 0.0, pm.HalfNormal("scale", 1.0), shape=4)
        rate = pm.math.exp(a[np.arange(N) % 2] + b[np.arange(N) // 2])
        pm.Poisson("y", rate, observed=np.ones(N, dtype=int))
    return model


def discrete_below():
    def observe(f):
        state = pm.Bernoulli("state", p=pm.math.invprobit(f))
        pm.Normal("y", state, 1.0, observed=np.zeros(N))

    return model_of(observe)


def missing_response_used_again():
    y = np.ma.masked_array(np.ones(N), np.arange(N) == 2)

    def observe(f):
        with pytest.warns(ImputationWarning):
            first = pm.Exponential("first", scale=pm.math.exp(f), observed=y)
        pm.Normal("second", first.sum(), 1.0, observed=0.0)

    return model_of(observe)


def transformed_latent():
    # PyMC then stores another vector under the name f_ordered__.
    with pm.Model() as model:
        f = pm.MvNormal(
            "f", np.zeros(N), cov=np.eye(N), transform=ordered, initval=np.linspace(-1.0, 1.0, N)
        )
        observe_probit(f, labels())
    return model


def start_outside_the_support():
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        pm.Potential("bound", pm.math.switch(ls > 100.0, 0.0, -np.inf))
        observe_probit(add_gp(pm.gp.cov.ExpQuad(1, ls=ls), inputs()), labels())
    return model


REFUSED = [
    (no_latent, "No latent Gaussian.*slope"),
    (two_latents, "2 latent Gaussian variables, 'f' and 'g'"),
    (two_centred_latents, "2 latent Gaussian variables, 'f' and 'g'"),
    (nothing_observed, "No observed variable depends on the latent 'f'"),
    (observed_elsewhere, "No observed variable depends on the latent 'f'.*measured"),
    (differences, "'rate' .Normal. couples elements of the latent 'f'"),
    (softmax, "'counts' .Multinomial. couples elements of the latent 'f'"),
    (discrete_variable, "'order' is discrete"),
    (signs_as_labels, "'y': Probit labels must be 0 or 1; found the values -1, 1"),
    (constant_inputs_with_nan, r"prior of 'f'.*NaN.*shape \(8, 1\)"),
    (data_with_infinity, "prior of 'f'.*infinite.*X of shape"),
    (data_with_nan, "prior of 'f'.*NaN.*X of shape"),
    (indefinite, "covariance of the latent 'f' cannot be factorised.*scale_log__.*jitter"),
    (indefinite_whitened, "covariance of the latent 'f' cannot be factorised.*scale_log__"),
    (asymmetric, "covariance of 'f' is not symmetric.*0.5"),
    (free_variable_below, "'level' depends on the latent 'f'"),
    (potential_on_f, "'monotone' .Potential. couples elements of the latent 'f'"),
    (too_few_labels, r"the latent has shape \(8,\) and the data y \(7,\)"),
    (too_few_labels_in_data, r"the latent has shape \(8,\) and the data y \(7,\)"),
    (one_label, r"the latent has shape \(8,\) and the data y \(1,\)"),
    (category_out_of_range, "'grade': Categories must be 0 to 2; found the values 0, 1, 2, 3"),
    (negative_count, "log p.'y'.f. is not finite.*inside the support"),
    (coupled_by_a_coefficient, "'y' .Normal. couples elements of the latent 'f'"),
    (basis_functions, "'y' .Normal. couples elements of the latent 'z'"),
    (laplace_regression, "'y' .Laplace. couples elements of the latent 'b'"),
    (asymmetric_laplace_regression, "'y' .AsymmetricLaplace. couples elements of the latent 'b'"),
    (laplace_regression_on_large_data, "'y' .Laplace. couples elements of the latent 'b'"),
    (summed_laplace_differences, "'rough' .Potential. couples elements of the latent 'f'"),
    (order_constraint, "'order' .Potential. couples elements of the latent 'f'"),
    (whitened_variable_observed, "couples elements of the latent 'f_rotated_'"),
    (two_independent_effects, "2 latent Gaussian variables, 'a' and 'b'"),
    (discrete_below, "'state' is discrete"),
    (missing_response_used_again, "'first_unobserved' depends on the latent 'f'"),
    (transformed_latent, "'f'.*ordered"),
    (start_outside_the_support, "log prior .* not finite at the initial point.*ls_log__"),
]


@pytest.mark.parametrize(
    ("build", "message"), REFUSED, ids=[build.__name__ for build, _ in REFUSED]
)
def test_a_model_is_refused_by_name(build, message):
    model = build()
    with pytest.raises(UnsupportedModelError, match=message):
        read_model(model)


@pytest.mark.parametrize(
    "use", [PseudoMarginalMH, EllipticalSlice, estimate_log_marginal], ids=lambda f: f.__name__
)
def test_everything_that_reads_a_model_refuses_it(use):
    model = softmax()
    with pytest.raises(UnsupportedModelError, match="'counts'"):
        use(model=model)


def test_new_labels_of_the_wrong_length_are_refused():
    model = model_of(lambda f: observe_probit(f, pm.Data("labels", labels())))
    read = read_model(model)
    pm.set_data({"labels": labels()[:-2]}, model=model)
    with pytest.raises(UnsupportedModelError, match=r"shape \(8,\) and the data y \(6,\)"):
        read.bind_data()


def test_a_refusal_is_a_value_error():
    assert issubclass(UnsupportedModelError, ValueError)


def test_the_plain_model_is_not_refused():
    read_model(gp_probit())


Y = np.linspace(-2.0, 2.0, N)
SEPARABLE = {
    "laplace": lambda f: -pm.math.sum(abs(Y - f)),
    "quartic": lambda f: -pm.math.sum((Y - f) ** 4),
    # Overflows at large f, and cancels against a constant.
    "poisson": lambda f: pm.math.sum(np.arange(N) * f - pm.math.exp(f)) + 1e3,
    # The sum hides terms of both signs.
    "linear": lambda f: pm.math.sum(1e6 * Y * f),
    "expanded square": lambda f: -0.5 * (1e6 * (Y @ Y) - 2e3 * pt.dot(Y, f) + pt.dot(f, f)),
    "half-line": lambda f: pm.math.sum(pm.math.switch(f > -100.0, -abs(f), -np.inf)),
}


@pytest.mark.parametrize("name", SEPARABLE)
def test_a_summed_potential_that_comes_apart_is_not_refused(name):
    read_model(model_of(lambda f: pm.Potential("y", SEPARABLE[name](f))))


def test_an_orthogonal_design_comes_apart_in_a_normal_sum_and_not_in_another():
    """The first by arithmetic, up to rounding; the curvature of the second is zero as well."""
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((N, 3)))[0]

    def observed(distribution):
        with pm.Model() as model:
            b = pm.Normal("b", 0.0, pm.HalfNormal("scale", 1.0), shape=3)
            distribution("y", pm.math.dot(Q, b), 1.0, observed=Y)
        return model

    read_model(observed(pm.Normal))
    with pytest.raises(UnsupportedModelError, match=r"'y' .Laplace. couples"):
        read_model(observed(pm.Laplace))


@pytest.mark.parametrize(
    "build", [laplace_regression, asymmetric_laplace_regression, summed_laplace_differences]
)
def test_curvature_alone_would_not_tell(build):
    """The control: these Hessians are diagonal wherever they exist, and the models are coupled."""
    model = build()
    latent = model.rvs_to_values[model.free_RVs[-1]]
    data = [model.logp(var, sum=True) for var in (*model.observed_RVs, *model.potentials)]
    gradient = pt.grad(sum(data), latent)
    hessian = pt.jacobian(gradient, latent, disconnected_inputs="ignore")
    function = model.compile_fn(hessian, inputs=[latent], on_unused_input="ignore")
    for scale in (0.1, 1.0, 10.0):
        f = scale * np.random.default_rng(4).standard_normal(latent.type.shape[0] or N)
        H = function({latent.name: f})
        np.testing.assert_allclose(H, np.diag(np.diagonal(H)), atol=1e-12)
