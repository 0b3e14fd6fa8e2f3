"""Models that bambi writes from formulas are read and sampled as they are."""

import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_pseudomarginal as pmpm

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    bmb = pytest.importorskip("bambi")

N, GROUPS, SITES = 120, 8, 5


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.standard_normal(N),
            "z": rng.uniform(size=N),
            "g": rng.integers(GROUPS, size=N).astype(str),
            "h": rng.integers(SITES, size=N).astype(str),
        }
    )
    group = 0.6 * rng.standard_normal(GROUPS)[frame.g.astype(int)]
    site = 0.4 * rng.standard_normal(SITES)[frame.h.astype(int)]
    eta = 0.3 + 0.5 * frame.x + group + site
    frame["count"] = rng.poisson(np.exp(eta))
    frame["yes"] = (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    frame["y"] = eta + 0.5 * rng.standard_normal(N)
    frame["grade"] = pd.Categorical(np.digitize(frame.y, [-0.5, 0.8]), ordered=True)
    frame["kind"] = np.array(list("abc"))[rng.integers(3, size=N)]
    return frame


def built(formula, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = bmb.Model(formula, data, **options)
        model.build()
    return model


# Formula, family, x (non-centred), theta, and predictors a term.
CASES = {
    "random intercepts": (
        "count ~ x + (1|g)",
        "poisson",
        {"Intercept", "x", "1|g_offset"},
        {"1|g_sigma"},
        1,
    ),
    "random slopes": (
        "yes ~ x + (x|g)",
        "bernoulli",
        {"Intercept", "x", "1|g_offset", "x|g_offset"},
        {"1|g_sigma", "x|g_sigma"},
        1,
    ),
    "crossed": (
        "count ~ x + (1|g) + (1|h)",
        "negativebinomial",
        {"Intercept", "x", "1|g_offset", "1|h_offset"},
        {"1|g_sigma", "1|h_sigma", "alpha"},
        1,
    ),
    "nested": (
        "count ~ x + (1|g/h)",
        "poisson",
        {"Intercept", "x", "1|g_offset", "1|g:h_offset"},
        {"1|g_sigma", "1|g:h_sigma"},
        1,
    ),
    "spline": (
        "y ~ bs(z, df=6) + (1|g)",
        "gaussian",
        {"Intercept", "bs(z, df=6)", "1|g_offset"},
        {"1|g_sigma", "sigma"},
        1,
    ),
    "hsgp": (
        "count ~ hsgp(z, m=10, c=1.5)",
        "poisson",
        {"Intercept", "hsgp(z, m=10, c=1.5)_weights_raw"},
        {"hsgp(z, m=10, c=1.5)_ell", "hsgp(z, m=10, c=1.5)_sigma"},
        1,
    ),
    "ordinal": (
        "grade ~ x + (1|g)",
        "cumulative",
        {"x", "1|g_offset"},
        {"1|g_sigma", "threshold"},
        1,
    ),
    "softmax": (
        "kind ~ x + (1|g)",
        "categorical",
        {"Intercept", "x", "1|g_offset"},
        {"1|g_sigma"},
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_formulas_are_read(name, data):
    formula, family, latent, theta, predictors = CASES[name]
    read = pmpm.read_model(built(formula, data, family=family))
    assert read.split() == {"latent": latent, "theta": theta, "unobserved": set()}
    assert read.structure.terms.counts.max() == predictors


def test_effects_that_are_centred_are_read_too(data):
    read = pmpm.read_model(built("count ~ x + (1|g)", data, family="poisson", noncentered=False))
    assert read.split()["latent"] == {"Intercept", "x", "1|g"}


def test_a_scale_with_a_formula_is_a_second_predictor(data):
    read = pmpm.read_model(built(bmb.Formula("y ~ x + (1|g)", "sigma ~ x"), data))
    assert {"sigma_Intercept", "sigma_x"} <= read.split()["latent"]
    assert read.structure.terms.counts.max() == 2


def test_a_crossed_model_is_sampled_with_its_names(data):
    model = built("count ~ x + (1|g) + (1|h)", data, family="poisson")
    with model.backend.model:
        idata = pm.sample(
            400,
            tune=50,
            chains=2,
            cores=1,
            step=pmpm.PseudoMarginal(),
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    posterior = idata["posterior"]
    assert posterior["1|g"].sizes == {"chain": 2, "draw": 400, "g__factor_dim": GROUPS}
    assert {"Intercept", "x", "1|g_sigma", "1|h_sigma", "1|h"} <= set(posterior.data_vars)
    # The slope that made the data, within four posterior standard deviations.
    slope = posterior["x"].values
    assert abs(slope.mean() - 0.5) < 4.0 * slope.std()
    assert idata["sample_stats"]["pm_accepted"].values.mean() > 0.3
