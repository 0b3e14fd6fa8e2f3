"""Hamiltonian proposals: leapfrog, an exact posterior, Geweke's test, and wrong variants of it."""

from dataclasses import replace

import exchangeable
import numpy as np
import pytest
from exchangeable import ExchangeableModel, draw_from_prior, draw_labels
from stat_checks import LIMIT, assert_within, z_of_chains

from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.numerics.gradients import DIFFERENTIALS
from pymc_pseudomarginal.transitions import hamiltonian, pseudo_marginal
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.hamiltonian import (
    Position,
    Trajectory,
    energy,
    hamiltonian_proposal,
    leapfrog,
    pseudo_marginal_hmc,
)
from pymc_pseudomarginal.transitions.pseudo_marginal import State

FACTOR = np.array([[1.6]])


def positions(approximation, labels, wrong=1.0):
    """theta -> Position in the model of `exchangeable`; its force may be a wrong multiple."""
    model = ExchangeableModel(approximation, labels)

    def position_at(theta):
        conditional = model(theta)
        q = conditional.approximation
        cotangents, _ = DIFFERENTIALS[approximation](q, conditional.likelihood)
        gradient = (cotangents.covariance * q.prior.covariance).sum()  # dK/dtheta = K
        return Position(conditional, wrong * (gradient - theta / exchangeable.THETA_SD**2))

    return position_at


def transition(rng, f, start, position_at, n_importance, **options):
    """A trajectory of one to three steps, rather long ones, and a move of f."""
    trajectory = Trajectory(FACTOR, 1.4, int(rng.integers(1, 4)))
    state, position, _, way = pseudo_marginal_hmc(
        rng, State(start.conditional, f), start, position_at, trajectory, n_importance, **options
    )
    conditional = state.conditional
    assert position.conditional is conditional
    f, _ = elliptical_slice(rng, state.f, conditional.prior, conditional.likelihood)
    return f, position, way


def run(approximation, n_importance, *, draws, geweke=False, wrong_force=1.0, **options):
    """theta (1, draws), f (1, draws, n) and acceptance by the energy.

    From the posterior given LABELS; for Geweke's test labels and the transition alternate,
    and the draws must follow the prior.
    """
    rng = np.random.default_rng(3)
    theta, f, labels = draw_from_prior(rng)
    position_at = positions(approximation, labels if geweke else exchangeable.LABELS, wrong_force)
    position = position_at(theta)
    thetas, latents, acceptances = [], [], []
    for _ in range(draws):
        f, position, way = transition(rng, f, position, position_at, n_importance, **options)
        theta = position.conditional.theta
        thetas.append(theta[0])
        latents.append(f)
        acceptances.append(way.acceptance)
        if geweke:
            position_at = positions(approximation, draw_labels(rng, f), wrong_force)
            position = position_at(theta)
    return np.array(thetas)[None], np.array(latents)[None], np.mean(acceptances)


def z_scores(theta, f, expectations):
    draws = exchangeable.test_functions(theta, f)
    return {name: z_of_chains(draws[name], truth) for name, truth in expectations.items()}


@pytest.mark.parametrize(
    ("approximation", "n_importance", "wrong_force"),
    [("laplace", 4, 1.0), ("ep", 1, 1.0), ("laplace", 4, 0.6)],
    ids=["laplace-4", "ep-1", "wrong-force"],
)
def test_posterior_of_theta_and_f_is_exact(approximation, n_importance, wrong_force):
    theta, f, acceptance = run(approximation, n_importance, draws=1500, wrong_force=wrong_force)
    assert 0.3 < acceptance < 0.95  # coarse enough for the energy to matter
    assert_within(z_scores(theta, f, exchangeable.posterior_expectations()))


def test_geweke_joint_distribution():
    theta, f, _ = run("laplace", 4, draws=1500, geweke=True)
    assert_within(z_scores(theta, f, exchangeable.prior_expectations()))


def test_geweke_finds_a_first_stage_without_kinetic_energy(monkeypatch):
    def potential(position, momentum):
        return energy(position, np.zeros_like(momentum))

    monkeypatch.setattr(hamiltonian, "energy", potential)
    theta, f, _ = run("laplace", 4, draws=1500, geweke=True)
    z = z_scores(theta, f, exchangeable.prior_expectations())
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT


def test_in_the_tuning_phase_theta_follows_the_approximate_posterior():
    theta, _, _ = run("laplace", 1, draws=1500, approximate=True)
    model, grid = ExchangeableModel("laplace", exchangeable.LABELS), np.linspace(-9.0, 10.0, 200)
    density = np.exp([pseudo_marginal.approximate_level(model(np.array([t]))) for t in grid])
    assert abs(z_of_chains(theta, float(grid @ density / density.sum()))) < LIMIT


def quartic(theta):
    """A Position with a force, and nothing else, that is not linear."""
    conditional = ExchangeableModel("laplace", exchangeable.LABELS)(theta[:1])
    return Position(replace(conditional, theta=theta), -(theta**3) - theta[::-1])


def test_leapfrog_leads_back_when_the_momentum_is_turned():
    rng = np.random.default_rng(0)
    factor = np.array([[1.0, 0.0], [0.4, 0.7], [0.0, 0.0]])  # the last of three stays
    trajectory = Trajectory(factor, 0.3, 12)
    start = quartic(np.array([0.5, -1.0, 0.2]))
    momentum = rng.standard_normal(2)
    *_, (end, arrived) = leapfrog(start, momentum, quartic, trajectory)
    *_, (back, turned) = leapfrog(end, -arrived, quartic, trajectory)
    assert not np.allclose(end.conditional.theta[:2], start.conditional.theta[:2], atol=0.1)
    assert end.conditional.theta[2] == start.conditional.theta[2]
    np.testing.assert_allclose(back.conditional.theta, start.conditional.theta, atol=1e-12)
    np.testing.assert_allclose(-turned, momentum, atol=1e-12)


def test_the_energy_error_falls_with_the_square_of_the_step():
    position_at = positions("laplace", exchangeable.LABELS)
    start = position_at(np.array([1.0]))
    errors = []
    for n_steps in (16, 32):
        trajectory = Trajectory(FACTOR, 1.2 / n_steps, n_steps)
        _, _, info = hamiltonian_proposal(np.random.default_rng(1), start, position_at, trajectory)
        errors.append(abs(info.energy_error))
        assert info.gradients == n_steps
    assert errors[0] == pytest.approx(4.0 * errors[1], rel=0.2)


def test_a_position_that_fails_on_the_way_is_a_recorded_rejection():
    position_at = positions("laplace", exchangeable.LABELS)
    start = position_at(np.array([0.0]))
    visited = []

    def failing(theta):
        if len(visited) == 2:
            raise NumericalFailure("no factor")
        visited.append(position_at(theta))
        return visited[-1]

    state = State(start.conditional, np.zeros(exchangeable.N_LATENT))
    after, position, info, way = pseudo_marginal_hmc(
        np.random.default_rng(0), state, start, failing, Trajectory(FACTOR, 0.1, 5), 4
    )
    assert (info.accepted, info.acceptance, way.acceptance) == (False, 0.0, 0.0)
    assert str(info.failure) == "no factor"
    assert after.conditional is start.conditional
    assert position is start
    assert way.gradients == 2
    assert way.energy_error == np.inf
    # Every approximation on the way is counted, and its gradient.
    assert info.iterations == sum(p.conditional.approximation.iterations for p in visited)
    assert info.cubic_operations == sum(p.conditional.prior.cubic_operations for p in visited)


def test_a_trajectory_that_runs_away_is_given_up():
    position_at = positions("laplace", exchangeable.LABELS, wrong=-100.0)
    start = position_at(np.array([1.0]))
    candidate, end, info = hamiltonian_proposal(
        np.random.default_rng(0), start, position_at, Trajectory(FACTOR, 1.0, 50)
    )
    assert info.gradients < 50
    assert (candidate.passed, info.acceptance, end) == (False, 0.0, None)
    assert candidate.failure is None
