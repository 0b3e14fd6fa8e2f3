"""`PseudoMarginalStep` inside `pm.sample`: seeds and processes, the trace, statistics, new data."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from latent_gaussian_cases import COVARIATE, GROUP, MODELS

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.step_methods.pseudo_marginal_step import PseudoMarginalStep


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def sample(step, **kwargs):
    options = {"draws": 8, "tune": 2, "chains": 2, "cores": 1, "random_seed": 5}
    return pm.sample(
        **(options | {"progressbar": False} | kwargs),
        step=step,
        compute_convergence_checks=False,
    )


def draws_of(idata):
    """All variables of the posterior side by side, shape (chains, numbers)."""
    posterior = idata["posterior"]
    parts = [posterior[name].values for name in sorted(posterior.data_vars)]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def test_same_seed_same_draws_in_one_process_or_two():
    with MODELS["intercepts"]():
        step = pmpm.PseudoMarginal()
        reference = draws_of(sample(step))
        found = draws_of(sample(pmpm.PseudoMarginal(), cores=2, mp_ctx="fork"))
        np.testing.assert_array_equal(found, reference)
        assert not np.array_equal(draws_of(sample(step, random_seed=6)), reference)
    assert not np.array_equal(reference[0], reference[1])


def test_same_seed_same_draws_in_spawned_processes():
    """With data, a process and what is drawn afterwards: all of it travels."""
    with MODELS["unobserved"]():
        step = pmpm.PseudoMarginal()
        found = draws_of(sample(step, cores=2, mp_ctx="spawn"))
        np.testing.assert_array_equal(draws_of(sample(step)), found)


@pytest.mark.parametrize(
    ("name", "latent", "dims"),
    [
        ("slopes", "z", ("group", "term")),
        ("walk", "path", ("time",)),
        ("process", "f", ("place",)),
        ("zero-sum", "effect", ("group",)),
        ("log-normal", "rate", ("group",)),
    ],
)
def test_the_latent_is_in_the_trace_under_its_own_name(name, latent, dims):
    with MODELS[name]() as model:
        posterior = sample(pmpm.PseudoMarginal(), chains=1)["posterior"]
    assert posterior[latent].dims == ("chain", "draw", *dims)
    for dim in dims:
        assert list(posterior[dim].values) == list(model.coords[dim])
    for name in (rv.name for rv in model.free_RVs):
        values = posterior[name].values if name in posterior else None
        assert values is None or (np.isfinite(values).all() and np.ptp(values, axis=1).all())
    check_deterministics(posterior, latent)


def check_deterministics(posterior, latent):
    """What is computed of the latent follows it, draw by draw."""
    x = posterior[latent].values
    if "b" in posterior and latent == "z":
        L = np.zeros((*x.shape[:2], 2, 2))
        packed = posterior["chol"].values
        L[..., [0, 1, 1], [0, 0, 1]] = packed
        np.testing.assert_allclose(posterior["b"], x @ L.swapaxes(-1, -2), rtol=1e-10)
    if latent == "effect" and "level" in posterior:
        np.testing.assert_allclose(x.sum(axis=-1), 0.0, atol=1e-12)


@pytest.mark.parametrize("whitened", [True, False])
def test_a_process_is_in_the_trace_whether_pymc_whitens_it_or_not(whitened):
    with pm.Model() as model:
        level, ls = pm.Normal("level", 0.0, 1.0), pm.Gamma("ls", 3.0, 3.0)
        gp = pm.gp.Latent(cov_func=pm.gp.cov.Matern52(1, ls=ls))
        f = gp.prior("f", X=COVARIATE[:, None], reparameterize=whitened)
        pm.Poisson("y", pm.math.exp(level + f), observed=np.arange(12) % 5)
        posterior = sample(pmpm.PseudoMarginal(), chains=1)["posterior"]
    assert posterior["f"].shape == (1, 8, 12)
    assert ("f_rotated_" in posterior) == whitened
    if whitened:
        (K,) = model.replace_rvs_by_values([gp.cov_func(COVARIATE[:, None])])
        covariance = model.compile_fn(K, inputs=[model.rvs_to_values[ls]], point_fn=False)
        for draw in (0, -1):
            one = posterior.isel(chain=0, draw=draw)
            L = np.linalg.cholesky(covariance(np.log(one["ls"].values)) + 1e-6 * np.eye(12))
            np.testing.assert_allclose(one["f"], L @ one["f_rotated_"].values, atol=1e-8)


def test_unobserved_variables_are_drawn():
    with MODELS["unobserved"]():
        posterior = sample(pmpm.PseudoMarginal(), draws=40)["posterior"]
    missing = posterior["y_unobserved"]
    assert missing.dtype == np.int64
    assert (missing >= 0).all()
    assert len(np.unique(missing)) > 2
    assert posterior["f_new"].shape == (2, 40, 2)
    # New places between observed ones follow them.
    between = 0.5 * (posterior["f"].values[..., 2] + posterior["f"].values[..., 3])
    assert np.corrcoef(posterior["f_new"].values[..., 0].ravel(), between.ravel())[0, 1] > 0.5


def test_statistics_have_the_declared_names_and_types():
    with MODELS["intercepts"]():
        statistics = sample(pmpm.PseudoMarginal())["sample_stats"]
    for name, (dtype, _) in PseudoMarginalStep.stats_dtypes_shapes.items():
        assert statistics[name].dims == ("chain", "draw")
        assert statistics[name].dtype == dtype
    assert ((statistics["pm_acceptance"] >= 0) & (statistics["pm_acceptance"] <= 1)).all()
    assert (statistics["pm_evaluations"] >= statistics["pm_failed"]).all()


def test_default_arguments_and_the_progress_bar(caplog):
    caplog.set_level("INFO", logger="pymc")
    with MODELS["fixed"]():
        idata = pm.sample(step=pmpm.PseudoMarginal(), random_seed=1)
    assert idata["posterior"].sizes["draw"] == 1000
    assert all(group in idata for group in ("sample_stats", "observed_data"))
    assert "PseudoMarginalStep: [b]" in caplog.text
    assert "Tuned(" in caplog.text
    assert "rhat" not in caplog.text


@pytest.mark.filterwarnings("ignore:`return_inferencedata=False` is deprecated:FutureWarning")
def test_a_multi_trace_for_those_who_want_one():
    with MODELS["intercepts"]():
        trace = sample(pmpm.PseudoMarginal(), return_inferencedata=False)
    assert trace["effect"].shape == (16, 4)
    np.testing.assert_allclose(trace["rate"], np.exp(trace["effect"]), rtol=1e-12)
    assert trace["pm_log_weight"].shape == (16,)


def regression(covariate, y):
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1.0)
        b = pm.Normal("b", 0.0, tau, shape=2)
        u = pm.Normal("u", 0.0, 0.3, shape=4)
        x = pm.Data("covariate", covariate)
        mean = b[0] + b[1] * x + u[GROUP]
        pm.Normal("y", mean, 0.5, observed=pm.Data("response", y))
    return model


@pytest.mark.parametrize("changed", ["covariate", "response"])
def test_new_data_take_a_new_step(changed):
    before = {"covariate": COVARIATE, "response": 2.0 * COVARIATE}
    after = before | {changed: -before[changed]}
    with regression(before["covariate"], before["response"]):
        step = pmpm.PseudoMarginal()
        first = sample(step)
        pm.set_data(after)
        second = sample(pmpm.PseudoMarginal())
        with pytest.raises(pm.exceptions.SamplingError, match=rf"'{changed}'.*make a new step"):
            sample(step)
        pm.set_data(before)
        np.testing.assert_array_equal(draws_of(sample(step)), draws_of(first))
    assert (first["posterior"]["b"].values[..., 1] > 0).all()
    assert (second["posterior"]["b"].values[..., 1] < 0).all()


def test_other_numbers_of_data_take_a_new_step():
    with regression(COVARIATE, COVARIATE):
        step = pmpm.PseudoMarginal()
        pm.set_data({"covariate": COVARIATE[:11], "response": COVARIATE[:11]})
        with pytest.raises(pm.exceptions.SamplingError, match="make a new step"):
            sample(step)
