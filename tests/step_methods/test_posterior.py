"""The step methods, through `pm.sample`, against exact posteriors."""

from functools import partial

import exchangeable
import gp_truth
import numpy as np
import pymc as pm
import pytest
from stat_checks import LIMIT, assert_within, z_of_chains

import pymc_pseudomarginal as pmpm


def sample(step, draws, *, tune=500, **kwargs):
    return pm.sample(
        draws,
        tune=tune,
        chains=2,
        cores=2,
        step=step,
        random_seed=3,
        progressbar=False,
        compute_convergence_checks=False,
        **kwargs,
    )


def assert_grid_posterior(idata):
    posterior = idata["posterior"]
    draws = gp_truth.quantities(
        *(posterior[name].values for name in ("ls", "sigma")), posterior["f"].values[..., 0]
    )
    truth = gp_truth.expectations()
    assert_within({name: z_of_chains(values, truth[name]) for name, values in draws.items()})


def assert_grid_predictions(idata, model, gp):
    found = pmpm.predict(idata, gp, gp_truth.X_NEW, model=model, progressbar=False)["p"]
    truth = gp_truth.expectations()
    assert_within(
        {
            f"p at {x}": z_of_chains(found.sel(point=i), truth[f"p at {x}"])
            for i, x in enumerate(gp_truth.X_NEW)
        }
    )


def test_gp_posterior_equals_the_grid():
    """With nothing chosen by hand: by fitted proposals."""
    model, gp = gp_truth.gp_model()
    with model:
        idata = sample(pmpm.PseudoMarginalMH(), 1500)
    assert_grid_posterior(idata)
    assert_grid_predictions(idata, model, gp)
    statistics = idata["sample_stats"]
    assert float(statistics["pm_failed"].sum()) == 0
    assert statistics["pm_fitted"].values.all()
    assert float(statistics["pm_accepted"].mean()) > 0.4


def test_gp_posterior_by_a_random_walk_equals_the_grid():
    model, gp = gp_truth.gp_model(reparameterize=False)
    with model:
        step = pmpm.PseudoMarginalMH(approximation="ep", n_importance=16, proposal="random-walk")
        idata = sample(step, 2000)
    assert_grid_posterior(idata)
    assert_grid_predictions(idata, model, gp)
    # Tuned to 0.25 on the approximate marginal; noise and skewness take a little.
    assert 0.12 < float(idata["sample_stats"]["pm_accepted"].mean()) < 0.35


def test_gp_posterior_by_a_walk_past_a_fitted_density_equals_the_grid():
    model, _ = gp_truth.gp_model(reparameterize=False)
    with model:
        step = pmpm.PseudoMarginalMH(
            approximation="fitted", proposal="random-walk", delayed_acceptance=True
        )
        idata = sample(step, 4000)
    assert_grid_posterior(idata)
    statistics = idata["sample_stats"]
    assert statistics["pm_fitted_sites"].values.all()
    # Several steps lie behind what is put to the estimates; one alone is tuned to 0.25.
    assert float(statistics["pm_acceptance"].mean()) > 0.6


def test_hamiltonian_proposals_equal_the_grid():
    with gp_truth.gp_model()[0]:
        idata = sample(pmpm.PseudoMarginalHMC(), 800, tune=200)
    assert_grid_posterior(idata)
    statistics = idata["sample_stats"]
    # The energy accepts what it was tuned to, and EP's marginal is so good that most of it passes.
    assert 0.65 < float(statistics["pm_stage_one_acceptance"].mean()) < 0.95
    assert float(statistics["pm_accepted"].mean()) > 0.6


WALK = partial(pmpm.PseudoMarginalMH, n_importance=16, proposal="random-walk", latent_moves=0)
RIVALS = {
    "whitened": (lambda: pmpm.WhitenedMH(latent_moves=5), 4000),
    "surrogate": (lambda: pmpm.SurrogateMH(latent_moves=5), 4000),
    "hmc": (lambda: [WALK(), pmpm.LatentHMC(steps=5)], 1500),
}


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_equal_the_grid(name):
    make, draws = RIVALS[name]
    model, _ = gp_truth.gp_model()
    with model:
        idata = sample(make(), draws)
    assert_grid_posterior(idata)
    statistics = idata["sample_stats"]
    assert float(statistics["pm_failed"].sum()) == 0
    # Tuned to 0.25; the width of p(theta|f, y) changes with f.
    assert 0.15 < float(statistics["pm_accepted"].mean()) < 0.35


def test_the_approximate_marginal_equals_the_grid_of_its_own():
    model, _ = gp_truth.gp_model()
    with model:
        idata = sample(pmpm.ApproximateMarginalMH(approximation="laplace"), 6000)
    posterior = idata["posterior"]
    draws = gp_truth.quantities(
        *(posterior[name].values for name in ("ls", "sigma")), posterior["f"].values[..., 0]
    )
    approximate = gp_truth.laplace_expectations()
    z = {name: z_of_chains(draws[name], truth) for name, truth in approximate.items()}
    assert_within(z)
    # Of f, Laplace has the mode and not the mean: the exact posterior is another one.
    assert abs(z_of_chains(draws["f²"], gp_truth.expectations()["f²"])) > LIMIT


def test_algorithm_1_of_the_paper_equals_the_grid():
    with gp_truth.gp_model()[0]:
        assert_grid_posterior(sample(pmpm.PseudoMarginalMH(refresh=False), 2000))


def test_posterior_stays_right_when_another_step_moves_part_of_theta():
    with gp_truth.gp_model()[0] as model:
        steps = [pmpm.PseudoMarginalMH(vars=["ls"]), pm.Slice([model["sigma"]])]
        assert_grid_posterior(sample(steps, 1500, tune=300))


def exchangeable_model():
    """The model of `exchangeable` in PyMC: s, f and five positive labels."""
    with pm.Model() as model:
        s = pm.LogNormal("s", 0.0, exchangeable.THETA_SD)
        covariance = s * exchangeable.CORRELATION
        f = pm.MvNormal("f", mu=np.zeros(exchangeable.N_LATENT), cov=covariance)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=exchangeable.LABELS)
    return model


def assert_exchangeable_posterior(idata):
    posterior = idata["posterior"]
    draws = exchangeable.test_functions(np.log(posterior["s"].values), posterior["f"].values)
    truth = exchangeable.posterior_expectations()
    assert_within({name: z_of_chains(draws[name], value) for name, value in truth.items()})


@pytest.mark.parametrize(("approximation", "n_importance"), [("laplace", 16), ("ep", 1)])
def test_latent_and_its_variance_are_jointly_exact(approximation, n_importance):
    with exchangeable_model():
        step = pmpm.PseudoMarginalMH(approximation=approximation, n_importance=n_importance)
        assert_exchangeable_posterior(sample(step, 3000))


def test_theta_given_f_itself_is_exact():
    """On a model where it mixes: on the GP a length-scale may stay for thousands of draws."""
    with exchangeable_model():
        idata = sample(pmpm.CentredMH(latent_moves=2), 6000)
    assert_exchangeable_posterior(idata)
    statistics = idata["sample_stats"]
    assert float(statistics["pm_failed"].sum()) == 0
    assert 0.15 < float(statistics["pm_accepted"].mean()) < 0.35


def test_more_moves_of_the_latent_behind_the_pseudo_marginal_step():
    with exchangeable_model():
        steps = [pmpm.PseudoMarginalMH(), pmpm.EllipticalSlice(moves=3)]
        idata = sample(steps, 2000)
    assert_exchangeable_posterior(idata)
    assert (idata["sample_stats"]["slice_evaluations"].values >= 4).all()


def test_elliptical_slice_with_another_step_on_the_hyperparameters():
    with exchangeable_model() as model:
        idata = sample([pmpm.EllipticalSlice(moves=2), pm.Slice([model["s"]])], 8000)
    assert_exchangeable_posterior(idata)


@pytest.mark.slow
def test_elliptical_slice_with_nuts_on_the_hyperparameters():
    with exchangeable_model():
        assert_exchangeable_posterior(sample(pmpm.EllipticalSlice(moves=2), 8000))
