"""Masked responses and the process at new inputs: drawn given f and theta."""

import inference_data
import numpy as np
import pymc as pm
import pytest
from models import N, add_gp, inputs, labels
from pymc.exceptions import ImputationWarning
from scipy.stats import norm
from stat_checks import assert_within, z_of_chains, z_of_difference

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.model import read_model

MISSING = np.arange(N) % 3 == 1
KEPT = np.flatnonzero(~MISSING)


def masked_model(observe, y):
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        f = add_gp(pm.gp.cov.Matern52(1, ls=ls), inputs())
        with pytest.warns(ImputationWarning):
            observe(f, np.ma.masked_array(y, MISSING))
    return model


def observe_normal(f, y):
    pm.Normal("y", f, 0.5, observed=y)


def observe_probit(f, y):
    pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)


def observe_gamma(f, y):
    pm.Gamma("y", alpha=2.0, beta=2.0 / pm.math.exp(f), observed=y)


def sample(model, step, draws=1500):
    with model:
        return pm.sample(
            draws,
            tune=300,
            chains=2,
            cores=1,
            step=step(),
            random_seed=5,
            progressbar=False,
            compute_convergence_checks=False,
        )["posterior"]


def missing_first(posterior):
    """The first missing response, its latent value and the other draws."""
    return posterior["y_unobserved"].values[..., 0], posterior["f"].values[..., np.argmax(MISSING)]


def test_missing_labels_follow_the_latent():
    model = masked_model(observe_probit, labels())
    posterior = sample(model, pmpm.PseudoMarginalMH)
    y, f = missing_first(posterior)
    assert set(np.unique(y)) == {0, 1}
    residual = y - norm.cdf(f)  # zero on average, whatever f is
    z = {name: z_of_chains(residual * g, 0.0) for name, g in {"1": 1.0, "f": f, "f²": f**2}.items()}
    assert_within(z)


def test_missing_positive_responses_follow_the_latent():
    # PyMC stores the logarithm of the missing responses.
    y = np.linspace(0.2, 3.0, N)
    posterior = sample(masked_model(observe_gamma, y), pmpm.PseudoMarginalMH)
    y, f = missing_first(posterior)
    ratio = y / np.exp(f)  # Gamma(2, 2): mean 1, variance 1/2
    assert_within(
        {
            "mean": z_of_chains(ratio, 1.0),
            "square": z_of_chains(ratio**2, 1.5),
            "with f": z_of_chains((ratio - 1.0) * f, 0.0),
        }
    )


def test_missing_gaussian_responses_are_not_taken_for_the_latent():
    read = read_model(masked_model(observe_normal, np.linspace(-1.0, 1.0, N)))
    assert read.latent.name == "f"
    assert [rv.name for rv in read.unobserved.rvs] == ["y_unobserved"]


def test_the_process_at_new_inputs_follows_the_latent():
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        gp = pm.gp.Latent(cov_func=pm.gp.cov.Matern52(1, ls=ls))
        observe_probit(gp.prior("f", X=inputs()), labels())
        new = np.array([[-1.5], [0.3]])
        gp.conditional("f_new", new)
    assert "unobserved  f_new, drawn given f" in repr(read_model(model))
    posterior = sample(model, pmpm.PseudoMarginalMH)
    draws = inference_data.posterior(ls=posterior["ls"].values, f=posterior["f"].values)
    expected = pmpm.predict(draws, gp, new, model=model, progressbar=False)
    z = ((posterior["f_new"].values - expected["f_mean"]) / np.sqrt(expected["f_var"])).values
    for i in range(2):
        assert_within(
            {
                "mean": z_of_chains(z[..., i], 0.0),
                "square": z_of_chains(z[..., i] ** 2, 1.0),
                "with ls": z_of_chains(z[..., i] * np.log(posterior["ls"].values), 0.0),
            }
        )


def test_the_posterior_is_that_of_the_rest():
    masked = sample(masked_model(observe_probit, labels()), pmpm.PseudoMarginalMH)
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        f = add_gp(pm.gp.cov.Matern52(1, ls=ls), inputs())
        pm.Bernoulli("y", p=pm.math.invprobit(f[KEPT]), observed=labels()[KEPT])
    kept = sample(model, lambda: pmpm.PseudoMarginalMH(approximation="ep"))
    quantities = [
        {"log ls": np.log(p["ls"].values), "f": p["f"].values[..., 0], "g": p["f"].values[..., 1]}
        for p in (masked, kept)
    ]
    assert_within({k: z_of_difference(quantities[0][k], quantities[1][k]) for k in quantities[0]})


def test_the_slice_step_draws_them_as_well():
    with masked_model(observe_probit, labels()) as model:
        step = pmpm.EllipticalSlice()
        assert {v.name for v in step.vars} == {"f_rotated_", "y_unobserved"}
    point, draws = model.initial_point(), []
    step.start_chain()
    for _ in range(40):
        point, _ = step.step(point)
        draws.append(point["y_unobserved"])
    assert point["y_unobserved"].dtype == np.int64
    assert 0.0 < np.mean(draws) < 1.0


def test_the_reader_says_what_is_missing():
    read = read_model(masked_model(observe_probit, labels()))
    assert [rv.name for rv in read.hyperparameters] == ["ls"]
    assert "unobserved  y_unobserved, drawn given f" in repr(read)


def test_what_is_missing_elsewhere_is_a_hyperparameter():
    # It does not depend on f, and may not be drawn without looking at what depends on it.
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        with pytest.warns(ImputationWarning):
            pm.Normal("side", ls, 0.1, observed=np.ma.masked_array([0.5, 0.0], [False, True]))
        observe_probit(add_gp(pm.gp.cov.Matern52(1, ls=ls), inputs()), labels())
    read = read_model(model)
    assert [rv.name for rv in read.hyperparameters] == ["ls", "side_unobserved"]
    assert read.unobserved.rvs == ()
    theta = np.array([0.1, 0.4])
    point = read.hyper_point(theta) | {"f_rotated_": np.zeros(N)}
    terms = model.point_logps(point, round_vals=12)
    assert read.log_prior(theta) == pytest.approx(
        terms["ls"] + terms["side_observed"] + terms["side_unobserved"], abs=1e-6
    )
