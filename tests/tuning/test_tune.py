"""Tuning finds where the posterior is, and chains that it tuned are right."""

from functools import cache

import numpy as np
import pytest
from kernels.latent_toys import Toy, counts, exact_posterior, run_chain
from scipy.stats import multivariate_normal
from stat_checks import assert_within, z_of_chains

from pymc_pseudomarginal.kernels.draw import draw
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation
from pymc_pseudomarginal.tuning.modes import find_modes
from pymc_pseudomarginal.tuning.start import initial_state
from pymc_pseudomarginal.tuning.tune import tune
from pymc_pseudomarginal.tuning.tuned import Tuned

BOUNDS = {1: ([-5.0], [2.0], 300), 2: ([-4.5, -2.0], [2.0, 2.5], 90)}


@cache
def truth(dim):
    return exact_posterior(Toy(counts(), dim), *BOUNDS[dim])


@cache
def tuned_toy(dim, narrow=1.0, seed=0):
    toy = Toy(counts(), dim, narrow=narrow)
    return toy, tune(toy, np.zeros(dim), np.random.default_rng(seed))


def chains(toy, tuned, draws, count=2):
    target = toy.thawed(tuned.frozen)
    found = []
    for seed in range(count):
        rng = np.random.default_rng(100 + seed)
        state = initial_state(tuned, target, rng)
        found.append(run_chain(lambda s, rng=rng: draw(tuned, target, rng, s), state, draws))
    return found


@pytest.mark.parametrize(("dim", "narrow"), [(1, 1.0), (2, 1.0), (2, 0.6)])
def test_a_tuned_chain_has_the_posterior(dim, narrow):
    toy, tuned = tuned_toy(dim, narrow)
    runs = chains(toy, tuned, 2000)
    theta, x = (np.stack([run[k] for run in runs]) for k in (0, 1))
    exact, scores = truth(dim), {}
    for j in range(dim):
        scores[f"theta_{j}"] = z_of_chains(theta[:, :, j], exact.theta[j])
        scores[f"theta_{j}²"] = z_of_chains(theta[:, :, j] ** 2, exact.theta_squared[j])
    for i in (0, 9):
        scores[f"x_{i}"] = z_of_chains(x[:, :, i], exact.x[i])
        scores[f"x_{i}²"] = z_of_chains(x[:, :, i] ** 2, exact.x_squared[i])
    assert_within(scores)


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_chains_do_not_stick(dim):
    toy, tuned = tuned_toy(dim)
    for theta, x, infos in chains(toy, tuned, 500):
        assert np.isfinite(theta).all()
        assert np.isfinite(x).all()
        moved = np.array([info.moved or not info.noise_acceptance < 0.2 for info in infos])
        gaps = np.diff(np.flatnonzero(np.concatenate([[True], moved, [True]])))
        # With three in ten accepted, a run of 40 has a probability of 6e-7.
        assert gaps.max() <= 40


def test_what_was_measured_is_what_happens():
    """The acceptance that tuning reports, of fresh draws, is that of the chain."""
    toy, tuned = tuned_toy(2)
    infos = [info for _, _, infos in chains(toy, tuned, 1000) for info in infos]
    found = np.mean([info.acceptance for info in infos if not info.joint])
    kinds = [tuned.measured.fixed, tuned.measured.autoregression, tuned.measured.walk]
    # 56 fresh draws measure an acceptance of .9 to about .04, which is not independent.
    assert found == pytest.approx(np.nansum(tuned.proposals.shares * kinds), abs=0.15)


def test_a_tuned_chain_survives_a_file_without_pickle(tmp_path):
    toy, tuned = tuned_toy(2)
    np.savez(tmp_path / "tuned.npz", **tuned.to_arrays())
    with np.load(tmp_path / "tuned.npz", allow_pickle=False) as arrays:
        again = Tuned.from_arrays(dict(arrays))
    assert repr(again) == repr(tuned)
    (first,), (second,) = (chains(toy, t, 50, count=1) for t in (tuned, again))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_a_seed_tunes_the_same():
    toy, tuned = tuned_toy(3)
    again = tune(toy, np.zeros(3), np.random.default_rng(0))
    for name, array in tuned.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name], err_msg=name)


def test_the_wide_component_is_wider_than_the_posterior():
    _, tuned = tuned_toy(2)
    density, exact = tuned.proposals.density, truth(2)
    sds = np.sqrt(exact.theta_squared - exact.theta**2)
    draws = density.wide.draw(np.random.default_rng(1), 4000)
    assert (np.median(np.abs(draws - exact.theta), axis=0) > sds).all()


def gaussian(covariance, mean=None):
    density = multivariate_normal(mean, covariance)
    return lambda theta: float(density.logpdf(theta))


def test_a_narrow_oblique_ridge_is_followed_to_its_top():
    """Standard deviations of 1 and of 0.001, 45 degrees to the axes."""
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)
    density = gaussian(turn @ np.diag([1.0, 1e-6]) @ turn.T, np.array([4.0, 4.0]))
    modes = find_modes(density, [np.array([0.0, 0.1])], np.random.default_rng(0))
    assert modes[0].level == pytest.approx(density(np.array([4.0, 4.0])), abs=0.05)


def test_both_modes_are_found():
    parts = [gaussian(0.3 * np.eye(2), np.array([c, 0.0])) for c in (-2.0, 2.0)]

    def density(theta):
        return float(np.logaddexp(parts[0](theta), parts[1](theta)))

    starts = [np.array([0.5, 0.5]), np.array([-0.5, 1.0])]
    modes = find_modes(density, starts, np.random.default_rng(0))
    assert sorted(np.round([mode.theta[0] for mode in modes], 1)) == [-2.0, 2.0]


def test_a_start_of_density_zero_is_left_and_no_support_is_said():
    inside = gaussian(np.eye(1))

    def density(theta):
        return inside(theta) if theta[0] > 0.3 else -np.inf

    (mode, *_) = find_modes(density, [np.zeros(1)], np.random.default_rng(0))
    assert 0.3 < mode.theta[0] < 0.4
    with pytest.raises(NoFiniteApproximation, match="finite neither at the starting point"):
        find_modes(lambda theta: -np.inf, [np.zeros(1)], np.random.default_rng(0))
