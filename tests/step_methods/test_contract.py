"""What every step method promises: restart, seeds, processes, reuse, statistics."""

import multiprocessing
from functools import cache

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytest
from models import gp_probit, masked_counts
from step_chains import advance, assert_same_point, start_chain
from threadpoolctl import ThreadpoolController, threadpool_limits

import pymc_pseudomarginal as pmpm

# A new step method must be entered here: the last test of this file sees to it.
STEPS = {
    "automatic": lambda: pmpm.PseudoMarginalMH(),
    "ep": lambda: pmpm.PseudoMarginalMH(approximation="ep", n_importance=3),
    "fitted": lambda: pmpm.PseudoMarginalMH(approximation="fitted", delayed_acceptance=True),
    "single": lambda: pmpm.PseudoMarginalMH(n_importance=1, latent_moves=2),
    "retained": lambda: pmpm.PseudoMarginalMH(refresh=False, n_importance=4),
    "delayed": lambda: pmpm.PseudoMarginalMH(delayed_acceptance=True, n_importance=4),
    "annealed": lambda: pmpm.PseudoMarginalMH(n_importance=2, annealing=3),
    "quasi-random": lambda: pmpm.PseudoMarginalMH(n_importance=4, normals="qmc"),
    "correlated": lambda: pmpm.PseudoMarginalMH(n_importance=2, correlation=0.9),
    "hamiltonian": lambda: pmpm.PseudoMarginalHMC(n_importance=4, max_steps=4),
    "slice": lambda: pmpm.EllipticalSlice(moves=2),
    "hmc": lambda: pmpm.LatentHMC(steps=3),
    "whitened": lambda: pmpm.WhitenedMH(),
    "centred": lambda: pmpm.CentredMH(latent_moves=2),
    "surrogate": lambda: pmpm.SurrogateMH(),
    "approximate": lambda: pmpm.ApproximateMarginalMH(),
}
EVERY = pytest.mark.parametrize("make", STEPS.values(), ids=STEPS.keys())


MODELS = {
    "whitened": lambda: gp_probit(n=12, d=2, ard=True),
    "centred": lambda: gp_probit(n=12, d=2, ard=True, reparameterize=False),
    "masked counts": lambda: masked_counts(n=12),
}


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """The promises do not depend on how fast the compiled functions are."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


# All on one model, and on the others a few that differ in what they do with f.
EVERY_ON_SOME_MODEL = pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(model, make, id=f"{model}-{step}")
        for model in MODELS
        for step, make in STEPS.items()
        if model == "whitened" or step in ("automatic", "retained", "slice", "surrogate")
    ],
)


@pytest.fixture(scope="module")
def models():
    """Name -> model, made once."""
    return cache(lambda name: MODELS[name]())


@pytest.fixture(scope="module")
def whitened():
    return gp_probit(n=12, d=2, ard=True)


@EVERY_ON_SOME_MODEL
@pytest.mark.parametrize("tuning", [True, False], ids=["tuning", "tuned"])
def test_a_restored_state_gives_the_identical_next_draws(models, name, make, tuning):
    model = models(name)
    with model:
        step, other = make(), make()
    start_chain(step, 1)
    point, _ = advance(step, model.initial_point(), 15)
    if not tuning:
        step.stop_tuning()
        point, _ = advance(step, point, 5)
    state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
    point = {name: value.copy() for name, value in point.items()}
    expected, expected_stats = advance(step, point, 6)
    start_chain(other, 77)
    advance(other, model.initial_point(), 3)  # what it remembers of this must not matter
    other.stop_tuning()
    advance(other, model.initial_point(), 3)
    other.sampling_state = state
    found, found_stats = advance(other, point, 6)
    assert_same_point(found, expected)
    assert found_stats == expected_stats


@EVERY_ON_SOME_MODEL
def test_a_point_keeps_its_order_shapes_and_old_values(models, name, make):
    model = models(name)
    with model:
        step = make()
    start_chain(step, 1)
    before = model.initial_point()
    copies = {name: value.copy() for name, value in before.items()}
    after, (stats,) = step.step(before)
    assert_same_point(before, copies)
    assert list(after) == list(before)
    for name, value in after.items():
        assert isinstance(value, np.ndarray)
        assert value.shape == before[name].shape
        assert value.dtype == before[name].dtype
        assert np.isfinite(value).all()
    assert set(stats) == set(step.stats_dtypes_shapes)
    for name, (dtype, _) in step.stats_dtypes_shapes.items():
        if name != "warning":  # an object, or None
            assert np.can_cast(np.asarray(stats[name]).dtype, dtype)
            assert not np.isnan(stats[name])


@EVERY
def test_a_later_change_of_the_point_does_not_reach_into_the_step(whitened, make):
    """Worker processes hand the step views of memory that they overwrite."""
    with whitened:
        step, other = make(), make()
    results = []
    for s, spoil in ((step, False), (other, True)):
        start_chain(s, 1)
        point = whitened.initial_point()
        for _ in range(5):
            given = {name: value.copy() for name, value in point.items()}
            point, _ = s.step(given)
            point = {name: value.copy() for name, value in point.items()}
            if spoil:
                for value in given.values():
                    value[...] = np.nan
        results.append(point)
    assert_same_point(*results)


def draws_of(idata):
    names = ("ls", "sigma", "f_rotated_")
    return np.concatenate([idata["posterior"][n].values.reshape(2, -1) for n in names], axis=1)


def sample(step, **kwargs):
    options = {"draws": 30, "tune": 30, "chains": 2, "cores": 1, "random_seed": 5}
    return pm.sample(
        **(options | kwargs), step=step, progressbar=False, compute_convergence_checks=False
    )


def test_same_seed_same_draws_on_one_or_two_cores_forked_or_spawned(whitened):
    make = STEPS["automatic"]
    with whitened:
        reference = draws_of(sample(make()))
        for context in ("fork", "spawn"):
            idata = sample(make(), cores=2, mp_ctx=context)
            np.testing.assert_array_equal(draws_of(idata), reference)
        assert not np.array_equal(draws_of(sample(make(), random_seed=6)), reference)
    assert not np.array_equal(reference[0], reference[1])


def test_same_draws_whatever_threads_blas_may_use():
    # At this size a Cholesky factor on two threads differs from one on a single thread.
    with gp_probit(n=220, d=2):
        draws = []
        for threads in (1, 2):
            with threadpool_limits(threads, user_api="blas"):
                idata = sample(STEPS["automatic"](), draws=8, tune=8, blas_cores=None)
                draws.append(draws_of(idata))
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("reparameterize", [True, False])
def test_a_large_latent_that_pymc_will_compute_anew_is_told_of(caplog, reparameterize):
    caplog.set_level("INFO", logger="pymc")
    with gp_probit(n=200, d=2, reparameterize=reparameterize):
        STEPS["automatic"]()
    assert ("reparameterize=False) avoids that" in caplog.text) == reparameterize


def test_a_process_made_for_a_chain_has_one_blas_thread(whitened):
    with whitened:
        step = pmpm.PseudoMarginalMH()
    fork = multiprocessing.get_context("fork")
    threads = {}
    for name in ("worker_chain_0", "somebody_else"):
        queue = fork.Queue()
        process = fork.Process(target=threads_of_a_chain, args=(step, queue), name=name)
        with threadpool_limits(2, user_api="blas"):
            process.start()
        threads[name] = queue.get(timeout=60)
        process.join()
    assert threads == {"worker_chain_0": {1}, "somebody_else": {2}}


def threads_of_a_chain(step, queue):
    start_chain(step, 1)
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    queue.put({library.num_threads for library in libraries})


@pytest.mark.parametrize("compound", [False, True], ids=["alone", "in-a-list"])
def test_a_reused_step_tunes_again(whitened, compound):
    with whitened:
        step = pmpm.PseudoMarginalMH()
        steps = [step, pmpm.EllipticalSlice()] if compound else step
        first = sample(steps)
        assert not step.tune
        np.testing.assert_array_equal(draws_of(sample(steps)), draws_of(first))


def test_nothing_adapts_after_tuning(whitened):
    with whitened:
        step = pmpm.PseudoMarginalMH()
    start_chain(step, 1)
    point, _ = advance(step, whitened.initial_point(), 20)
    step.stop_tuning()
    before = step.adaptation, step.warm_start
    advance(step, point, 10)
    assert step.adaptation is before[0]
    assert step.warm_start is before[1]
    assert step.warm_start.prediction is not None
    assert step.adaptation.updates == 20


def test_the_step_size_of_trajectories_is_frozen_too(whitened):
    with whitened:
        step = STEPS["hamiltonian"]()
    start_chain(step, 1)
    point, _ = advance(step, whitened.initial_point(), 20)
    tuned = [advance(step, point, 1)[1][0]["pm_step_size"] for _ in range(5)]
    assert len(set(tuned)) == 5
    step.stop_tuning()
    found = [advance(step, point, 1)[1][0]["pm_step_size"] for _ in range(5)]
    assert set(found) == {float(step.step_size.current(tune=False))}
    assert step.adaptation.updates == 25


def test_trajectories_leave_alone_what_belongs_to_other_steps(whitened):
    with whitened:
        step = pmpm.PseudoMarginalHMC(["sigma"], n_importance=2)
    start_chain(step, 1)
    before = whitened.initial_point()
    after, _ = advance(step, before, 5)
    np.testing.assert_array_equal(after["ls_log__"], before["ls_log__"])
    assert after["sigma_log__"] != before["sigma_log__"]


def test_sampling_without_tuning_works(whitened):
    with whitened:
        idata = sample(pmpm.PseudoMarginalMH(), tune=0)
    assert idata["posterior"].sizes["draw"] == 30


def test_new_data_are_seen_by_a_step_made_before():
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        X, y = pm.Data("X", rng.uniform(size=(10, 1))), pm.Data("labels", np.zeros(10, dtype=int))
        ls = pm.Gamma("ls", 2.0, 2.0)
        f = pm.gp.Latent(cov_func=9 * pm.gp.cov.ExpQuad(1, ls=ls)).prior("f", X=X)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)
        step = pmpm.PseudoMarginalMH()
        assert sample(step)["posterior"]["f"].mean() < 0
        pm.set_data({"labels": np.ones(10, dtype=int)})
        assert sample(step)["posterior"]["f"].mean() > 0
        assert model["X"].get_value().shape == (10, 1)


def test_proposals_without_a_factor_are_rejected_and_counted():
    """A covariance that loses its factor on half of theta's range."""
    with pm.Model():
        a = pm.Normal("a", 0.0, 3.0)
        # Positive definite for a < 1 only.
        f = pm.MvNormal("f", mu=np.zeros(2), cov=pm.math.stack([[1.0, a], [a, 1.0]]))
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=[1, 0])
        idata = sample(pmpm.PseudoMarginalMH(), draws=300)
    assert int(idata["sample_stats"]["pm_failed"].sum()) > 10
    assert (np.abs(idata["posterior"]["a"].values) < 1).all()
    assert np.isfinite(idata["posterior"]["f"].values).all()


@EVERY
def test_a_start_that_fails_is_reported_before_any_draw(make):
    with gp_probit():
        step = make()
        point = step.latent_model.initial_point | {"sigma_log__": np.array(800.0)}
        with pytest.raises(pm.exceptions.SamplingError, match=r"cannot start at .*sigma_log__"):
            step.step(point)


@EVERY
def test_where_another_step_leads_astray_the_draw_is_kept_and_counted(make):
    with gp_probit():
        step = make()
        point, _ = step.step(step.latent_model.initial_point)
        astray = point | {"sigma_log__": np.array(800.0)}
        after, (stats,) = step.step(astray)
    assert_same_point(after, astray)
    assert stats.get("pm_failed", 1) == 1
    assert set(stats) == set(step.stats_dtypes_shapes)


@EVERY
def test_a_resumed_chain_is_under_way(make):
    """What a chain that goes on survives must not end one that is restored."""
    with gp_probit():
        step, other = make(), make()
        point, _ = step.step(step.latent_model.initial_point)
        start_chain(other, 7)
        other.sampling_state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
        astray = point | {"sigma_log__": np.array(800.0)}
        after, (stats,) = other.step(astray)
        assert_same_point(after, astray)
        assert stats.get("pm_failed", 1) == 1
        # The state of a chain that has not begun says so too.
        start_chain(step, 7)
        other.sampling_state = step.sampling_state
        with pytest.raises(pm.exceptions.SamplingError, match="cannot start"):
            other.step(astray)


def test_progress_bar_of_the_rivals_shows_acceptance():
    columns, fields = pmpm.SurrogateMH._progressbar_config(2)
    assert (len(columns), list(fields)) == (1, ["acceptance"])
    (update,) = pmpm.SurrogateMH._make_progressbar_update_functions()
    update({"pm_acceptance": 0.0})
    assert update({"pm_acceptance": 1.0}) == {"acceptance": 0.5}


def test_progress_bar_shows_acceptance_and_spread():
    columns, fields = pmpm.PseudoMarginalMH._progressbar_config(2)
    assert len(columns) == 2
    assert set(fields) == {"acceptance", "spread"}
    (update,) = pmpm.PseudoMarginalMH._make_progressbar_update_functions()
    update({"pm_acceptance": 0.0, "pm_log_weight_sd": 1.0})
    assert update({"pm_acceptance": 1.0, "pm_log_weight_sd": 2.0}) == {
        "acceptance": 0.5,
        "spread": 1.5,
    }
    # A draw without importance samples has no spread to count.
    assert update({"pm_acceptance": 0.5, "pm_log_weight_sd": 0.0}) == {
        "acceptance": 0.5,
        "spread": 1.5,
    }


def test_sampling_with_the_progress_bar_works(whitened):
    with whitened:
        pm.sample(
            5,
            tune=5,
            chains=1,
            step=pmpm.PseudoMarginalMH(),
            random_seed=1,
            progressbar=True,
            compute_convergence_checks=False,
        )


def test_reprs_explain_themselves(whitened):
    with whitened:
        assert repr(pmpm.PseudoMarginalMH(["ls"])).startswith(
            "PseudoMarginalMH([ls, f], approximation='auto', n_importance='auto'"
        )
        assert repr(pmpm.PseudoMarginalHMC()).startswith(
            "PseudoMarginalHMC([ls, sigma, f], approximation='ep', n_importance='auto', path_"
        )
        assert repr(pmpm.EllipticalSlice()) == "EllipticalSlice(f, moves=1)"
        assert repr(pmpm.LatentHMC()).startswith("LatentHMC(f, steps=10, moves=1")
        assert repr(pmpm.WhitenedMH(["sigma"])) == (
            "WhitenedMH([sigma, f], latent_moves=1, target_accept=0.25)"
        )
        assert "# not exact" in repr(pmpm.ApproximateMarginalMH())


def test_many_hyperparameters_are_warned_of_by_name(caplog):
    with pm.Model():
        effects = pm.Normal("effects", 0.0, 0.5, shape=25)
        f = pm.MvNormal("f", np.zeros(3), cov=np.eye(3) + 1.0)
        pm.Normal("y", f + effects.mean(), 1.0, observed=np.zeros(3))
        pmpm.PseudoMarginalMH()
    assert "moves 25 hyper-parameters" in caplog.text
    assert "effects" in caplog.text


def test_every_step_method_is_under_this_contract():
    covered = set()
    with gp_probit():
        covered = {type(make()).__name__ for make in STEPS.values()}
    # PseudoMarginal is a function that returns one of them, and what serves all models has a
    # contract of its own, over models of every kind (test_pseudo_marginal_step.py).
    assert covered | {"PseudoMarginal", "PseudoMarginalStep"} == set(pmpm.step_methods.__all__)
