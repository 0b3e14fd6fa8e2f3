"""`certify` of runs of `PseudoMarginalStep`: figures against quadrature, rules, what is read."""

import re

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from inference_data import inference_data, run_of
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp
from scipy.stats import norm
from stat_checks import assert_within, z_of_independent

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.certificate import certify
from pymc_pseudomarginal.certificate.recorded import RecordedPoints

CHAINS, DRAWS = 4, 1000
TRIALS, SUCCESSES = 6, 6


def scalar_model():
    """One latent with six successes of six: skewed, so that Laplace's approximation is off."""
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 2.0)
        x = pm.Normal("x", 0.0, tau)
        pm.Binomial("y", n=TRIALS, logit_p=x, observed=SUCCESSES)
    return model


@pytest.fixture(scope="module")
def read():
    return pmpm.read_model(scalar_model())


def dataset(idata, group):
    found = idata[group]
    return found if isinstance(found, xr.Dataset) else found.to_dataset()


def noise_run(stats=None, **variables):
    """A run by hand with the statistics of the step."""
    shape = next(iter(variables.values())).shape[:2]
    own = {
        "pm_noise_acceptance": np.full(shape, 0.8),
        "pm_log_weight": np.zeros(shape),
        "pm_evaluations": np.ones(shape, dtype=int),
    }
    idata = run_of(own | (stats or {}), **variables)
    stats = dataset(idata, "sample_stats").drop_vars("pm_log_weight_sd")
    return inference_data(posterior=dataset(idata, "posterior"), sample_stats=stats)


def draws(shape=(CHAINS, DRAWS), seed=1):
    rng = np.random.default_rng(seed)
    return {"tau": rng.uniform(0.5, 4.0, shape), "x": 1.5 + rng.standard_normal(shape)}


def checked(idata, read, **kwargs):
    options = {"samples": 200, "thetas": 4, "random_seed": 1, "progressbar": False}
    return certify(idata, model=read, **options | kwargs)


# Runs of the sampler


@pytest.fixture(scope="module")
def groups():
    with pm.Model(coords={"group": ["ann", "bob", "cleo", "dan", "eve"]}) as model:
        mu, tau = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
        u = pm.Normal("u", 0.0, tau, dims="group")
        pm.Poisson("y", mu=pm.math.exp(mu + u), observed=[3, 9, 1, 0, 4])
    return pmpm.read_model(model)


def sampled(read, draws=1500, seed=1):
    with read.model:
        return pm.sample(
            draws,
            tune=10,
            chains=2,
            cores=1,
            step=pmpm.PseudoMarginalStep(read=read),
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fine_run_passes(groups, seed):
    idata = sampled(groups, seed=seed)
    found = checked(idata, groups, samples=1024, thetas=16)
    assert found.passed, str(found)
    figures = found.dataset
    assert figures["hyperparameter"].values.tolist() == ["tau"]
    assert figures["latent"].values.tolist()[:3] == ["mu", "u[ann]", "u[bob]"]
    for name in ("rhat", "ess_bulk", "ess_tail"):
        assert figures[f"latent_{name}"].shape == (6,)
    stats = dataset(idata, "sample_stats")
    np.testing.assert_allclose(figures["acceptance"], stats["pm_accepted"].mean("draw"))
    np.testing.assert_allclose(
        figures["noise_acceptance"], stats["pm_noise_acceptance"].mean("draw")
    )
    np.testing.assert_array_equal(figures["proposals"], stats["pm_evaluations"].sum("draw"))
    assert "Nothing speaks against these draws." in repr(found)


def test_too_few_draws_are_found(groups):
    idata = sampled(groups, draws=60)
    whats = [finding.what for finding in checked(idata, groups).findings]
    assert "effective sample size" in whats
    assert "stuck chain" not in whats


# Figures with known values

GRID = np.linspace(-15.0, 40.0, 200_001)


def log_joint(x, tau):
    return SUCCESSES * np.log(expit(x)) + norm.logpdf(x, scale=tau)


def exact_figures(tau, x):
    """Laplace's bias, the effective share of its draws, and log(w/Z) at x, by quadrature."""
    log_joints, step = log_joint(GRID, tau), GRID[1] - GRID[0]
    log_z = logsumexp(log_joints) + np.log(step)
    mode = minimize_scalar(lambda x: -log_joint(x, tau), bounds=(0.0, 30.0), method="bounded").x
    curvature = TRIALS * expit(mode) * expit(-mode) + tau**-2
    q = norm(mode, curvature**-0.5)
    log_z_q = log_joint(mode, tau) - q.logpdf(mode)
    log_second = logsumexp(2.0 * log_joints - q.logpdf(GRID)) + np.log(step)
    ess = np.exp(2.0 * log_z - log_second)
    return log_z_q - log_z, ess, log_joint(x, tau) - q.logpdf(x) - log_z


def test_figures_of_q_against_quadrature(read):
    # The second moment of the weights, on which the error rests, is finite where tau**-2 is above
    # the curvature of the likelihood at the mode: it is up to tau = .9.
    idata = noise_run(**draws() | {"tau": 0.4 + draws()["tau"] / 8.0})
    figures = checked(idata, read, samples=10_000, thetas=8).dataset
    posterior = dataset(idata, "posterior")
    at = {"chain": figures["theta_chain"], "draw": figures["theta_draw"]}
    tau, x = (posterior[name].sel(at).values for name in ("tau", "x"))
    np.testing.assert_array_equal(figures["value"].values[:, 0], tau)
    bias, _, excess = map(np.array, zip(*map(exact_figures, tau, x), strict=True))
    error = figures["bias_error"].values
    assert (error < 0.05).all()
    assert_within(dict(enumerate((figures["bias"].values - bias) / error)))
    # log(w/Z) has no noise but that of Z, which is that of the bias.
    assert_within(dict(enumerate((figures["target_log_weight"].values - excess) / error)))
    expected = 1.0 / np.mean(np.exp(figures["target_log_weight"].values))
    assert float(figures["target_ess"]) == pytest.approx(expected)
    with pytest.raises(AssertionError):  # a bias of the other sign is found
        assert_within(dict(enumerate((figures["bias"].values + bias) / error)))


def test_effective_draws_of_q_against_quadrature(read):
    # The fourth moment of the weights, on which the error of this rests, is finite where
    # tau**-2 is above three times the curvature of the likelihood, 1.5 at most.
    narrow = draws() | {"tau": 0.35 + draws()["tau"] / 40.0}
    idata = noise_run(**narrow)
    found = [
        checked(idata, read, samples=5000, random_seed=seed).dataset["q_ess"].values
        for seed in range(8)
    ]
    taus = checked(idata, read).dataset["value"].values[:, 0]
    exact = np.array([exact_figures(tau, 0.0)[1] for tau in taus])
    z = map(z_of_independent, np.transpose(found), exact)
    assert_within(dict(enumerate(z)))
    with pytest.raises(AssertionError):  # half of the loss is found
        assert_within({0: z_of_independent(np.transpose(found)[0], 0.5 + 0.5 * exact[0])})


def test_draws_that_q_misses_show_in_the_weights_of_the_target_only(read):
    fine = draws()
    far = fine | {"x": fine["x"] + 9.0}
    seen, missed = (checked(noise_run(**run), read).dataset for run in (fine, far))
    np.testing.assert_array_equal(seen["q_ess"], missed["q_ess"])
    assert float(missed["target_ess"]) < 0.01 * float(seen["target_ess"])


# Rules


def stuck(shape):
    accepted = np.ones(shape, dtype=bool)
    accepted[2, 100:150] = False
    return {"pm_accepted": accepted | (np.arange(shape[1]) % 3 > 0) & accepted}


def test_a_run_by_hand_passes(read):
    found = checked(noise_run(**draws()), read)
    assert found.passed, str(found)


@pytest.mark.parametrize(
    ("stats", "what", "words"),
    [
        (stuck((CHAINS, DRAWS)), "stuck chain", "chain=2, draw=100"),
        ({"pm_accepted": np.zeros((CHAINS, DRAWS), dtype=bool)}, "stuck chain", "none of 1000"),
        ({"pm_failed": np.arange(4000).reshape(4, 1000) % 50 == 0}, "failed prop", "80 of 4000"),
    ],
)
def test_statistics_that_speak_against_a_run(read, stats, what, words):
    (finding,) = checked(noise_run(stats, **draws()), read).findings
    assert finding.what.startswith(what)
    assert words in str(finding)


@pytest.mark.parametrize(("name", "element"), [("tau", "tau"), ("x", "x")])
def test_chains_that_have_not_come_together(read, name, element):
    apart = draws()
    apart[name][1] += 0.5 * np.std(apart[name])
    findings = {f.what: f for f in checked(noise_run(**apart), read).findings}
    assert set(findings) - {"effective sample size"} == {"R-hat"}
    assert f"R-hat of {element} is" in findings["R-hat"].problem
    assert "about 2000" in findings["R-hat"].remedy


def test_a_tail_that_mixes_slowly(read):
    slow = draws()
    slow["tau"][:, 100:160] = 3.9 + 0.1 * slow["tau"][:, :60] / 4.0
    (finding,) = checked(noise_run(**slow), read).findings
    assert finding.problem.startswith("The tail ESS of tau is")


def test_where_a_chain_is_stuck_that_comes_first(read):
    apart = draws()
    apart["tau"][1] += 1.0
    findings = checked(noise_run(stuck((CHAINS, DRAWS)), **apart), read).findings
    assert [finding.what for finding in findings[:2]] == ["stuck chain", "R-hat"]
    assert findings[1].remedy.startswith("Cure the stuck chain first")


def test_weights_far_apart_are_told_and_no_fault():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 50.0)
        z = pm.Normal("z", 0.0, 1.0, shape=30)
        pm.Bernoulli("y", logit_p=tau * z, observed=np.arange(30) % 2)
    rng = np.random.default_rng(1)
    shape = (CHAINS, DRAWS)
    idata = noise_run(tau=rng.uniform(40.0, 60.0, shape), z=rng.standard_normal((*shape, 30)))
    found = checked(idata, pmpm.read_model(model))
    assert found.passed, str(found)
    assert (found.dataset["log_weight_sd"] > 1.0).all()
    assert "cannot be told: 200 weights are too far apart" in " ".join(str(found).split())


# What is read of a run


def test_a_model_and_what_was_read_of_it_give_the_same(read):
    idata = noise_run(**draws())
    first = checked(idata, read)
    xr.testing.assert_identical(first.dataset, checked(idata, read.model).dataset)
    with read.model:
        again = checked(idata, None)
    xr.testing.assert_identical(first.dataset, again.dataset)
    other = checked(idata, read, random_seed=2).dataset
    assert not np.array_equal(first.dataset["bias"], other["bias"])


def test_x_that_was_not_recorded(read):
    found = checked(noise_run(tau=draws()["tau"]), read)
    assert found.passed
    assert "latent_rhat" not in found.dataset
    assert np.isnan(found.dataset["target_ess"])
    assert np.isfinite(found.dataset["bias"]).all()
    assert re.search(r"R-hat of x +not recorded", str(found))
    assert "effective ones" not in str(found)


def test_without_hyperparameters_the_moves_of_x_count():
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0)
        pm.Poisson("y", mu=pm.math.exp(x), observed=3)
    read, x = pmpm.read_model(model), draws()["x"]
    never = {"pm_accepted": np.zeros(x.shape, dtype=bool), "pm_evaluations": np.zeros(x.shape, int)}
    assert checked(noise_run(never, x=x), read).passed
    x[3, 200:260] = 0.7
    findings = checked(noise_run(never, x=x), read).findings
    assert findings[0].what == "stuck chain"
    assert "draw=201" in findings[0].remedy


def test_noise_that_was_never_moved_alone(read):
    never = {"pm_noise_acceptance": np.full((CHAINS, DRAWS), np.nan)}
    found = checked(noise_run(never, **draws()), read)
    assert re.search(r"acceptance of noise moves +- +- +-", str(found))


def test_draws_at_which_q_cannot_be_made_are_left_out(read):
    extreme = draws()
    extreme["tau"][0, 500] = 1e-300
    found = checked(noise_run(**extreme), read)
    assert np.isnan(found.dataset["bias"].values).tolist() == [True, False, False, False]
    assert "q could not be made at 1 of these draws" in str(found)


def test_recorded_draws_are_points_again():
    """Bounds that depend on other variables, sums of zero and multivariate normals."""
    with pm.Model() as model:
        upper = pm.HalfNormal("upper", 1.0)
        tau = pm.Uniform("tau", 0.0, upper)
        effect = pm.ZeroSumNormal("effect", tau, shape=3)
        f = pm.MvNormal("f", np.zeros(2), tau * np.eye(2) + 0.5, shape=2)
        pm.Poisson("y", mu=pm.math.exp(effect + f.sum()), observed=[1, 2, 3])
    rng = np.random.default_rng(1)
    start = model.initial_point()
    point = {name: value + 0.3 * rng.standard_normal(value.shape) for name, value in start.items()}
    outputs = model.unobserved_value_vars
    natural = model.compile_fn(outputs, inputs=model.value_vars)(point)
    values = dict(zip([output.name for output in outputs], natural, strict=True))
    names = [rv.name for rv in model.free_RVs]
    recorded = {name: np.stack([[np.ones_like(values[name]), values[name]]]) for name in names}
    points = RecordedPoints(dataset(run_of(**recorded), "posterior"), model, names)
    for name, value in points(1).items():
        np.testing.assert_allclose(value, point[name], atol=1e-10, err_msg=name)


# Refusals


def test_runs_that_do_not_belong_to_the_model(read, groups):
    with pytest.raises(ValueError, match="does not contain 'tau', which the model has"):
        checked(noise_run(x=draws()["x"]), read)
    wrong = {"tau": draws()["tau"], "x": np.zeros((CHAINS, DRAWS, 2))}
    with pytest.raises(ValueError, match=r"'x' has the shape \(2,\) in the posterior and \(\)"):
        checked(noise_run(**wrong), read)
    # The length of a dimension is open until the data are known.
    other = {"tau": draws()["tau"], "mu": draws()["x"], "u": np.ones((CHAINS, DRAWS, 4))}
    with pytest.raises(ValueError, match=r"'u' has the shape \(4,\)"):
        checked(noise_run(**other), groups)
    with pytest.raises(ValueError, match="draws of 'tau' contain NaN"):
        checked(noise_run(tau=np.full((CHAINS, DRAWS), np.nan), x=draws()["x"]), read)


@pytest.mark.parametrize(
    "argument", [{"approximation": "ep"}, {"n_importance": 4}, {"annealing": 0}]
)
def test_arguments_of_other_steps_are_refused(read, argument):
    with pytest.raises(ValueError, match=r"made by PseudoMarginalStep\. Leave them out"):
        checked(noise_run(**draws()), read, **argument)


def test_other_samplers_are_refused(read):
    idata = run_of(**draws())
    stats = dataset(idata, "sample_stats")[["pm_accepted", "pm_failed"]]
    other = inference_data(posterior=dataset(idata, "posterior"), sample_stats=stats)
    with pytest.raises(ValueError, match=r"not made by .*PseudoMarginalStep.*pm_accepted"):
        checked(other, read)
