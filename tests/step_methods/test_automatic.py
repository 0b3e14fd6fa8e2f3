"""What is "auto": chosen at the end of tuning, said, recorded and frozen."""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytest
from models import gp_probit
from problems import exp_quad
from step_chains import advance, assert_same_point, start_chain

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.transitions.effort import Effort

CHOSEN = ("pm_n_importance", "pm_ep", "pm_fitted_sites", "pm_annealing", "pm_fitted")


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="module")
def model():
    return gp_probit(n=12, d=2, ard=True)


def hard_model():
    """Ten separable labels with a variance of about 200: the weights of Laplace are far apart."""
    X = np.random.default_rng(1).standard_normal((10, 2))
    with pm.Model() as model:
        sigma = pm.LogNormal("sigma", np.log(200.0), 0.1)
        K = sigma * exp_quad(X, 3.0, 1.0)
        f = pm.MvNormal("f", np.zeros(10), cov=K)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=(X[:, 0] > 0).astype(int))
    return model


def tuned(model, seed=1, draws=150, kind=pmpm.PseudoMarginalMH, **settings):
    """A step at the end of its tuning, and where it is."""
    with model:
        step = kind(**settings)
    start_chain(step, seed)
    point, _ = advance(step, model.initial_point(), draws)
    step.stop_tuning()
    return step, point


def test_choices_are_recorded_and_frozen(model):
    step, point = tuned(model, seed=2)
    assert step.effort.approximation == "fitted"
    found = []
    for _ in range(5):
        point, (stats,) = step.step(point)
        found.append({name: stats[name] for name in CHOSEN})
    effort = step.effort
    expected = (effort.n_importance, True, True, effort.annealing, step.fitted is not None)
    assert found == [dict(zip(CHOSEN, expected, strict=True))] * 5
    fitted = step.fitted
    step.stop_tuning()  # once more changes nothing
    assert step.effort is effort
    assert step.fitted is fitted


def test_a_seed_gives_the_same_choices_and_draws(model):
    """No clock has a say."""
    ends = [advance(*tuned(model), 10)[0] for _ in range(2)]
    assert_same_point(*ends)


@pytest.mark.parametrize("proposal", ["fitted", "random-walk"])
def test_a_restored_state_has_the_choices(model, proposal):
    step, point = tuned(model, draws=300, proposal=proposal)
    assert (step.fitted is not None) == (proposal == "fitted")
    state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
    expected, expected_stats = advance(step, point, 6)
    other, _ = tuned(model, seed=5, draws=20, proposal=proposal)
    other.sampling_state = state
    found, found_stats = advance(other, point, 6)
    assert_same_point(found, expected)
    assert found_stats == expected_stats


def test_what_is_given_stays(model):
    step, _ = tuned(model, approximation="ep", n_importance=3, annealing=2, draws=30)
    assert step.effort == Effort("ep", 3, 2)
    step, _ = tuned(model, approximation="ep", draws=30)
    assert step.effort.approximation == "ep"


def test_trajectories_choose_their_samples_too(model):
    step, point = tuned(model, draws=60, kind=pmpm.PseudoMarginalHMC)
    assert step.effort.n_importance >= 16
    state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
    expected, (first,) = advance(step, point, 1)
    assert first["pm_n_importance"] == step.effort.n_importance
    assert "Hamiltonian trajectories" in first["warning"].message
    other, _ = tuned(model, seed=5, draws=20, kind=pmpm.PseudoMarginalHMC)
    other.sampling_state = state
    assert_same_point(advance(other, point, 1)[0], expected)
    told = [step._tell(accepted=False) for _ in range(450)]
    assert sum(message is not None for message in told) == 1


def test_without_tuning_there_is_nothing_to_choose_from(model):
    step, point = tuned(model, draws=0)
    _, (stats,) = step.step(point)
    assert (stats["pm_n_importance"], stats["pm_fitted"]) == (16, False)


def test_sites_are_fitted_and_beyond_the_fit_found_by_ep():
    step, point = tuned(hard_model())
    assert step.effort.approximation == "fitted"
    prediction = step.warm_start.prediction
    assert prediction.level.shape == (2, 10)  # sites, not a mode
    _, (stats,) = advance(step, point, 3)
    assert stats["pm_fitted_sites"]
    assert not stats["pm_failed"]
    centre, reach = prediction.centre, prediction.reach
    inside, outside = (step._evaluate(centre + by * reach).approximation for by in (0.3, 9.0))
    np.testing.assert_array_equal(inside.anchor, step.sites(centre + 0.3 * reach))
    assert (inside.iterations, inside.prior.cubic_operations) == (0, 1)
    assert step.sites(centre + 9.0 * reach) is None
    assert outside.iterations >= 1


def test_with_many_hyperparameters_sites_are_predicted_linearly():
    model = gp_probit(n=12, d=6, ard=True)
    step, point = tuned(model, draws=250, approximation="fitted", n_importance=4)
    assert step.sites is None
    theta = step.warm_start.prediction.centre
    near = step._evaluate(theta).approximation
    np.testing.assert_array_equal(near.anchor, step.warm_start.prediction(theta))
    assert step._evaluate(theta + 9.0).approximation.iterations >= 1
    advance(step, point, 2)


def test_fitted_sites_are_those_of_ep(model):
    """Their weights are as little spread, at thetas where the chain is."""
    step, point = tuned(model, draws=400, approximation="fitted", n_importance=4)
    spreads = {}
    for name in ("fitted", "ep", "laplace"):
        thetas = step.latent_model.theta(point)[None] + 0.3 * np.eye(3)
        weights = step._log_weights(thetas, name, 0)
        spreads[name] = np.mean(np.std(weights.reshape(3, -1), axis=1))
    assert spreads["fitted"] < 1.3 * spreads["ep"]
    assert spreads["fitted"] < spreads["laplace"]


def test_laplace_where_ep_cannot_take_the_likelihood_apart():
    X = np.linspace(0.0, 1.0, 8)[:, None]
    with pm.Model() as model:
        sigma = pm.LogNormal("sigma", 0.0, 0.5)
        f = pm.MvNormal("f", np.zeros(8), cov=sigma * exp_quad(X, 0.3, 1.0))
        pm.Potential("y", -0.5 * pm.math.sum((f - 1.0) ** 4))
    step, point = tuned(model, draws=60)
    assert step.effort.approximation == "laplace"
    advance(step, point, 3)


def test_the_rest_of_the_tuning_follows_the_new_approximation():
    model = hard_model()
    with model:
        step = pmpm.PseudoMarginalMH()
    start_chain(step, 1)
    point, (stats,) = advance(step, model.initial_point(), 199)
    assert not stats["pm_ep"]
    point, (stats,) = advance(step, point, 10)
    assert step.tune
    assert stats["pm_ep"]
    assert step.warm_start.prediction.level.shape == (2, 10)


def test_the_choice_is_logged_once_and_trouble_every_time(model, caplog):
    caplog.set_level("INFO", logger="pymc")
    step, point = tuned(model, seed=2)
    _, (first,) = step.step(point)
    _, (second,) = step.step(point)
    assert first["warning"].level == "info"
    assert "PseudoMarginalMH: fitted sites of ep, " in first["warning"].message
    assert second["warning"] is None
    told = [step._tell(accepted=False) for _ in range(450)]
    assert sum(message is not None for message in told) == 1
    with model:
        pm.sample(
            **{"draws": 3, "tune": 30, "chains": 1, "cores": 1, "random_seed": 1},
            step=pmpm.PseudoMarginalMH(),
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert "importance samples (sd of the log estimate" in caplog.text


def test_another_step_for_part_of_theta_leaves_the_walk(model):
    step, _ = tuned(model, vars=["sigma"])
    assert step.fitted is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"approximation": "vb"}, "Unknown approximation 'vb'; expected 'auto' or 'laplace' or"),
        ({"n_importance": "many"}, "\"auto\" or a whole number of at least 1; found 'many'"),
        ({"annealing": -1}, '"auto" or a whole number of at least 0; found -1'),
        ({"proposal": "gibbs"}, "Unknown proposal 'gibbs'"),
    ],
)
def test_bad_settings_are_named(model, settings, message):
    with model, pytest.raises(ValueError, match=message):
        pmpm.PseudoMarginalMH(**settings)


@pytest.mark.parametrize(
    ("ard", "d", "vars", "picked"),
    [
        (False, 8, None, pmpm.PseudoMarginalMH),
        (True, 8, None, pmpm.PseudoMarginalHMC),
        (True, 8, ["sigma"], pmpm.PseudoMarginalMH),
    ],
)
def test_the_sampler_is_picked_by_the_number_of_hyperparameters(ard, d, vars, picked, caplog):
    caplog.set_level("INFO", logger="pymc")
    with gp_probit(n=8, d=d, ard=ard):
        step = pmpm.PseudoMarginal(vars, latent_moves=2)
    assert type(step) is picked
    assert step.latent_moves == 2
    assert f"PseudoMarginal: {picked.__name__} for" in caplog.text


def test_a_first_stage_by_a_fitted_density_needs_few_hyperparameters():
    with gp_probit(n=8, d=8, ard=True), pytest.raises(ValueError, match="up to 5 hyper-parameters"):
        pmpm.PseudoMarginalMH(approximation="fitted", delayed_acceptance=True)
    step, _ = tuned(gp_probit(n=8, d=6, ard=True), draws=210, delayed_acceptance=True)
    assert step.effort.approximation in ("laplace", "ep")


def test_a_walk_past_a_fitted_density_evaluates_only_where_it_leads(model, monkeypatch):
    step, point = tuned(model, draws=300, proposal="random-walk", delayed_acceptance=True)
    assert step.fitted is not None
    point, _ = step.step(point)
    evaluated, evaluate, accepted = [], step._evaluate, 0
    monkeypatch.setattr(step, "_evaluate", lambda theta: evaluated.append(theta) or evaluate(theta))
    for _ in range(100):
        point, (stats,) = step.step(point)
        accepted += stats["pm_accepted"]
        assert not stats["pm_fitted"]
    assert len(evaluated) <= 100
    assert accepted > 60  # a step of the walk by itself is tuned to 25
