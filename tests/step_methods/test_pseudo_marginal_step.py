"""What `PseudoMarginalStep` promises on every kind of model: restart, seeds, points, statistics."""

from dataclasses import replace
from functools import cache

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytest
from latent_gaussian_cases import MODELS
from step_chains import advance, assert_same_point, start_chain

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.numerics.errors import NumericalFailure
from pymc_pseudomarginal.step_methods.pseudo_marginal_step import PseudoMarginalStep

EVERY = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """The promises do not depend on how fast the compiled functions are."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


# The second instance has compiled functions of its own here; elsewhere it shares the reading.
READ_TWICE = ("intercepts", "process")


@cache
def case(name):
    """A model and two steps."""
    model = MODELS[name]()
    with model:
        step = pmpm.PseudoMarginal()
        other = pmpm.PseudoMarginal(model=None if name in READ_TWICE else step.latent_model)
        return model, step, other


@cache
def after_three_draws(name):
    """The state of a chain and where it is."""
    model, step, _ = case(name)
    start_chain(step, 1)
    point, _ = advance(step, model.initial_point(), 3)
    return cloudpickle.dumps(step.sampling_state), point


def under_way(name, step):
    """Put a step into the chain that has made three draws: the state and the point."""
    state, point = after_three_draws(name)
    step.sampling_state = state = cloudpickle.loads(state)
    return state, {key: value.copy() for key, value in point.items()}


def assert_same_statistics(found, expected):
    for first, second in zip(found, expected, strict=True):
        assert list(first) == list(second)
        np.testing.assert_array_equal(list(first.values()), list(second.values()))


@EVERY
def test_a_restored_state_gives_the_identical_next_draws(name):
    """Where the chain went on by itself, in its own instance and in another one."""
    model, step, other = case(name)
    start_chain(step, 1)
    point, _ = advance(step, model.initial_point(), 3)
    expected, expected_stats = advance(step, point, 8)
    for restored in (step, other):
        _, same = under_way(name, restored)
        assert_same_point(same, point)
        found, stats = advance(restored, same, 8)
        assert_same_point(found, expected)
        assert_same_statistics(stats, expected_stats)


@EVERY
def test_the_state_is_made_of_arrays_and_kept_as_it_is(name):
    _, step, other = case(name)
    state, point = under_way(name, step)
    assert state.var_names == [v.name for v in step.vars]
    for key, value in state.chain.items():
        assert type(key) is str
        assert type(value) is np.ndarray
        assert value.dtype.kind in "fbi"
    # Of a chain that has gone on, and of one that has not.
    for n in (0, 1):
        advance(step, point, n)
        other.sampling_state = step.sampling_state
        assert_same_point(other.sampling_state.chain, step.sampling_state.chain)
    start_chain(other, 3)
    assert other.sampling_state.chain == {}


@EVERY
def test_a_point_keeps_its_order_shapes_and_old_values(name):
    model, step, _ = case(name)
    _, before = under_way(name, step)
    assert list(before) == list(model.initial_point())
    copies = {key: value.copy() for key, value in before.items()}
    after, (stats,) = step.step(before)
    assert_same_point(before, copies)
    assert list(after) == list(before)
    for key, value in after.items():
        assert type(value) is np.ndarray
        assert value.shape == before[key].shape
        assert value.dtype == before[key].dtype
        assert np.isfinite(value).all()
    assert np.isfinite(model.compile_logp()(after))
    assert set(stats) == set(step.stats_dtypes_shapes)
    for key, (dtype, _) in step.stats_dtypes_shapes.items():
        assert np.asarray(stats[key]).shape == ()
        assert np.can_cast(np.asarray(stats[key]).dtype, dtype)


def log_stretch(read, theta):
    """log |dv/dx| of the variables that PyMC stores: MvNormal is kept whitened."""
    latent = [read.model.rvs_to_values[read.model[n]].name for n in sorted(read.split()["latent"])]

    def stored(x):
        point = read.to_point(theta, x)
        return np.concatenate([point[name].ravel() for name in latent])

    origin = stored(np.zeros(read.size))
    stretch = np.stack([stored(e) - origin for e in np.eye(read.size)])
    return np.linalg.slogdet(stretch)[1]


@EVERY
def test_the_log_weight_is_that_of_the_point(name):
    """log p(theta) + log w(theta, u) + log q(x) is PyMC's log density of the point."""
    model, step, _ = case(name)
    point, (stats,) = step.step(under_way(name, step)[1])
    read = step.latent_model
    theta, x = read.from_point(point)
    conditional = step._chain.target.at(theta)
    u = conditional.noise(x)
    log_q = 0.5 * (conditional.factor.log_determinant - u @ u - u.size * np.log(2 * np.pi))
    found = conditional.log_prior + stats["pm_log_weight"] + log_q - log_stretch(read, theta)
    drawn_afterwards = read.split()["unobserved"]
    sampled = [rv for rv in model.basic_RVs if rv.name not in drawn_afterwards]
    assert found == pytest.approx(model.compile_logp(vars=sampled)(point), abs=1e-5)


@EVERY
def test_a_later_change_of_the_point_does_not_reach_into_the_step(name):
    """Worker processes hand the step views of memory that they overwrite."""
    _, step, other = case(name)
    results = []
    for s, spoil in ((step, False), (other, True)):
        _, point = under_way(name, s)
        for _ in range(4):
            given = {key: value.copy() for key, value in point.items()}
            drawn, _ = s.step(given)
            point = {key: value.copy() for key, value in drawn.items()}
            if spoil:
                for value in (*given.values(), *drawn.values()):
                    value[...] = 0
        results.append(point)
    assert_same_point(*results)


@pytest.mark.parametrize("name", ["intercepts", "dense", "unobserved", "fixed"])
def test_one_instance_serves_several_chains_and_tunes_each(name):
    model, step, _ = case(name)
    runs = []
    for seed in (5, 6, 5):
        start_chain(step, seed)
        assert step.chain == {}
        point, stats = advance(step, model.initial_point(), 3)
        runs.append((point, stats, step.chain))
    assert_same_point(runs[0][0], runs[2][0])
    assert_same_statistics(runs[0][1], runs[2][1])
    for key, value in runs[0][2].items():
        np.testing.assert_array_equal(value, runs[2][2][key])
    for key in runs[0][0]:
        assert not np.array_equal(runs[0][0][key], runs[1][0][key])


@EVERY
def test_the_name_says_what_is_integrated_out(name):
    model, step, _ = case(name)
    split = step.latent_model.split()
    assert repr(step).startswith("PseudoMarginal(")
    for variable in split["latent"] | split["theta"]:
        assert variable in repr(step)
    assert {v.name for v in step.vars} == set(model.initial_point())


class Combed:
    """A target without q on every other slice of its first hyper-parameter."""

    def __init__(self, target, centre):
        self.target, self.centre = target, centre

    def __getattr__(self, name):
        return getattr(self.target, name)

    def has_approximation(self, theta):
        return round(1e3 * (theta[0] - self.centre)) % 2 == 0

    def at(self, theta):
        if not self.has_approximation(theta):
            raise NumericalFailure("no factor here")
        return self.target.at(theta)

    def thawed(self, arrays):
        return Combed(self.target.thawed(arrays), self.centre)

    def learn_start(self, conditionals):
        return Combed(self.target.learn_start(conditionals), self.centre)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "fixed"])
def test_a_failure_in_a_proposal_is_a_counted_rejection(name):
    _, step, _ = case(name)
    _, point = under_way(name, step)
    point, _ = step.step(point)
    combed = Combed(step._chain.target, step._chain.state.theta[0])
    step._chain = replace(step._chain, target=combed)
    statistics = []
    for _ in range(25):
        point, (stats,) = step.step(point)
        assert combed.has_approximation(step.latent_model.from_point(point)[0])
        assert all(np.isfinite(value).all() for value in point.values())
        assert np.isfinite(stats["pm_log_weight"])
        if stats["pm_failed"] == stats["pm_evaluations"]:
            assert not stats["pm_accepted"]
            assert stats["pm_acceptance"] == 0.0
        statistics.append(stats)
    tried = sum(stats["pm_evaluations"] for stats in statistics)
    assert 0.2 * tried < sum(stats["pm_failed"] for stats in statistics) < 0.8 * tried
    assert any(stats["pm_accepted"] for stats in statistics)


def test_tuning_survives_failures():
    model, step, _ = case("intercepts")
    whole, combed = step._target, Combed(step._target, step.latent_model.start[0])
    step._target = combed
    try:
        start_chain(step, 2)
        point = model.initial_point()
        for _ in range(20):
            point, _ = step.step(point)
            assert combed.has_approximation(step.latent_model.from_point(point)[0])
    finally:
        step._target = whole


def test_a_weight_that_is_not_a_number_is_never_accepted(monkeypatch):
    """As where a term of the likelihood overflows: NaN, infinity and minus infinity."""
    _, step, _ = case("intercepts")
    point, _ = step.step(under_way("intercepts", step)[1])
    conditional = type(step._chain.state.conditional)
    exact = {f: getattr(conditional, f) for f in ("log_weight", "log_weight_and_gradient")}
    spoilt = iter(np.tile([np.nan, np.inf, 0.0, -np.inf, 0.0, 0.0, 0.0], 1000))

    def log_weight(self, u):
        bad = next(spoilt)
        return exact["log_weight"](self, u) + bad

    def log_weight_and_gradient(self, u):
        value, gradient = exact["log_weight_and_gradient"](self, u)
        bad = next(spoilt)
        return value + bad, gradient + bad

    monkeypatch.setattr(conditional, "log_weight", log_weight)
    monkeypatch.setattr(conditional, "log_weight_and_gradient", log_weight_and_gradient)
    moved = 0
    for _ in range(60):
        point, (stats,) = step.step(point)
        assert np.isfinite(stats["pm_log_weight"])
        assert all(np.isfinite(value).all() for value in point.values())
        moved += stats["pm_accepted"]
    assert moved


def test_a_start_without_a_density_names_the_variables():
    with pm.Model() as model:
        s = pm.HalfNormal("spread", 1.0)
        b = pm.Normal("b", 0.0, s, shape=3)
        pm.Poisson("y", pm.math.exp(b), observed=[1, 2, 3])
        step = pmpm.PseudoMarginal()
    start_chain(step, 1)
    astray = model.initial_point() | {"spread_log__": np.array(4000.0)}
    with pytest.raises(pm.exceptions.SamplingError, match=r"cannot start at .*spread_log__.*4000"):
        step.step(astray)
    # Nothing of it is left: the next chain starts as if it had not been.
    start_chain(step, 1)
    point, _ = step.step(model.initial_point())
    start_chain(step, 1)
    assert_same_point(point, step.step(model.initial_point())[0])


@pytest.mark.parametrize("name", ["intercepts", "two-predictors", "unobserved", "log-normal"])
def test_nothing_is_left_to_compile_when_a_chain_starts(name, monkeypatch):
    """Each process would do it again, and perhaps with other flags."""
    with MODELS[name]() as model:
        step = pmpm.PseudoMarginal()

    def compile_anew(*args, **kwargs):
        raise AssertionError("compiled late")

    monkeypatch.setattr("pymc_pseudomarginal.reading.compiling.compile_graph", compile_anew)
    monkeypatch.setattr("pymc_pseudomarginal.reading.unobserved.compile_graph", compile_anew)
    start_chain(step, 1)
    advance(step, model.initial_point(), 2)


def test_what_cannot_be_read_is_refused_at_construction():
    with pm.Model():
        a = pm.Gamma("a", 2.0, 2.0)
        pm.Poisson("y", a, observed=[1, 2])
        with pytest.raises(pmpm.UnsupportedModelError, match="a"):
            pmpm.PseudoMarginal()
        with pytest.raises(pmpm.UnsupportedModelError):
            PseudoMarginalStep()


@pytest.mark.parametrize("options", [{"vars": ["tau"]}, {"latent_moves": 2}])
def test_options_of_a_single_process_are_refused_by_name(options):
    model, *_ = case("intercepts")
    with model, pytest.raises(ValueError, match=r"vars= and latent_moves= .*effect, mu"):
        pmpm.PseudoMarginal(**options)


def test_the_step_does_not_move_a_part_of_the_variables():
    model, step, _ = case("intercepts")
    with pytest.raises(ValueError, match=r"moves all free variables.*effect"):
        PseudoMarginalStep([model["tau"]], read=step.latent_model, model=model)
    assert PseudoMarginalStep(model.value_vars, read=step.latent_model, model=model).vars


def test_a_model_that_was_read_needs_no_context():
    model, step, _ = case("walk")
    other = pmpm.PseudoMarginal(model=step.latent_model)
    assert other.latent_model is step.latent_model
    assert [v.name for v in other.vars] == [v.name for v in model.value_vars]


def test_progress_bar_shows_the_acceptance():
    columns, fields = PseudoMarginalStep._progressbar_config(2)
    assert (len(columns), list(fields)) == (1, ["acceptance"])
    (update,) = PseudoMarginalStep._make_progressbar_update_functions()
    update({"pm_acceptance": 0.0})
    assert update({"pm_acceptance": 1.0}) == {"acceptance": 0.5}


def test_pymc_does_not_take_it_by_itself():
    model, *_ = case("intercepts")
    competences = PseudoMarginalStep._competence(model.value_vars, [True] * len(model.value_vars))
    assert set(competences) == {pm.step_methods.compound.Competence.INCOMPATIBLE}
