"""The figures of `certify` by themselves: of weights, and of chains."""

import numpy as np
import pytest
from inference_data import run_of
from scipy.stats import genpareto

from pymc_pseudomarginal.certificate.chains import acceptance_figures, convergence_figures
from pymc_pseudomarginal.certificate.weights import pareto_shape, predicted_log_sd


@pytest.mark.parametrize("N", [1, 16, 2048])
def test_predicted_sd_is_that_of_repeated_estimates(N):
    rng = np.random.default_rng(1)
    repeated = np.logaddexp.reduce(1.5 * rng.standard_normal((500, N)), axis=1)
    found = predicted_log_sd(1.5 * rng.standard_normal(1024), N, rng)
    assert found == pytest.approx(repeated.std(), rel=0.25)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_pareto_shape_of_a_pareto_tail(k):
    log_weights = np.log(genpareto(k).rvs(40_000, random_state=1))
    assert pareto_shape(log_weights) == pytest.approx(k, abs=0.2)
    assert pareto_shape(log_weights - 1e4) == pytest.approx(pareto_shape(log_weights))


def test_pareto_shape_of_weights_without_a_fit():
    rng = np.random.default_rng(1)
    assert pareto_shape(np.full(100, 3.0)) == -np.inf
    assert pareto_shape(3000.0 * rng.standard_normal(100)) == np.inf
    with_zeros = np.where(rng.uniform(size=500) < 0.5, -np.inf, rng.standard_normal(500))
    assert np.isfinite(pareto_shape(with_zeros))


def test_runs_without_acceptance():
    accepted = np.zeros((3, 10), dtype=bool)
    accepted[0, [2, 8]] = True  # 2, 5 and 1 draws without
    accepted[1] = True
    stats = {"pm_accepted": accepted, "pm_failed": accepted.astype(int)}
    found = acceptance_figures(run_of(stats, a=accepted)["sample_stats"])
    assert found["longest_run"][1].tolist() == [5, 0, 10]
    assert found["run_start"][1].tolist() == [3, 0, 0]
    assert found["acceptance"][1].tolist() == [0.2, 1.0, 0.0]
    assert found["failed"][1].tolist() == [2, 10, 0]
    # Outside of the longest runs, 12 of 15 were accepted.
    assert found["explained_run"][1] == pytest.approx(np.log(1e-6 / 30) / np.log(0.2))


def test_statistics_of_several_steps_are_put_together():
    accepted = np.zeros((1, 6, 2), dtype=bool)
    accepted[0, [1, 4], [0, 1]] = True
    stats = {"pm_accepted": accepted, "pm_failed": np.ones((1, 6, 2), dtype=int)}
    found = acceptance_figures(run_of(stats, a=accepted)["sample_stats"])
    assert found["longest_run"][1].tolist() == [2]
    assert found["failed"][1].tolist() == [12]


def convergence(draws):
    """R-hat, bulk and tail ESS, shape (3, E), of draws of shape (chain, draw, E)."""
    elements = {str(i): draws[:, :, i] for i in range(draws.shape[2])}
    found = convergence_figures(elements, "element", progressbar=False)
    return np.array([values for _, values in found.values()])


def test_convergence_of_constants_and_single_chains():
    draws = np.random.default_rng(1).standard_normal((2, 100, 2))
    draws[:, :, 1] = 1.0
    rhat, bulk, tail = convergence(draws)
    assert rhat[0] < 1.05
    assert 100 < bulk[0] < 400
    assert 50 < tail[0] < 400
    assert np.isnan([rhat[1], bulk[1], tail[1]]).all()
    rhat, bulk, _ = convergence(draws[:1])
    assert np.isnan(rhat).all()
    assert 50 < bulk[0] < 200
    apart = convergence(np.repeat([[[0.0]], [[1.0]]], 20, axis=1))[0]
    assert not apart[0] <= 1.01  # chains that each stay where they are


def test_tails_mix_more_slowly_where_a_chain_rests_there():
    draws = np.random.default_rng(1).standard_normal((2, 1000, 1))
    draws[0, :60] = 3.0
    _, bulk, tail = convergence(draws)
    assert tail[0] < 0.5 * bulk[0]


def test_no_elements_have_no_figures():
    figures = convergence_figures({}, "latent", "latent_", progressbar=True)
    assert {name: values.shape for name, (_, values) in figures.items()} == {
        "latent_rhat": (0,),
        "latent_ess_bulk": (0,),
        "latent_ess_tail": (0,),
    }
