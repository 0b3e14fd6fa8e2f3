"""Every kernel leaves the posterior as it is, whatever q and g are; wrong ones do not."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from kernels.latent_toys import Toy, counts, exact_posterior, run_chain
from stat_checks import LIMIT, assert_within, z_of_chains

from pymc_pseudomarginal.kernels.draw import draw
from pymc_pseudomarginal.kernels.proposals import CoveringDensity, ThetaProposals
from pymc_pseudomarginal.kernels.rotation import kick_weights, rotate, trajectory
from pymc_pseudomarginal.kernels.state import State, proposed_state, restored, state_at
from pymc_pseudomarginal.kernels.student_t import StudentMixture

CHAINS, DRAWS = 2, 2000
TOY = Toy(counts(), 2)


@cache
def truth():
    return exact_posterior(TOY, [-4.5, -2.0], [2.0, 2.5], 90)


@dataclass(frozen=True)
class Settings:
    proposals: ThetaProposals
    joint_share: float = 0.0
    moves: int = 1
    kicks: int = 2
    angle: float = np.pi / 2


def settings(shares=(1.0, 0.0, 0.0), centre=(-0.7, 0.5), width=0.6, wide_share=0.2, **others):
    """A rough g around the posterior, with a wide component."""
    centre = np.array(centre)
    fitted = StudentMixture.single(centre, width * np.eye(2), 6.0)
    wide = StudentMixture.single(centre, 2.0 * np.eye(2), 4.0)
    density = CoveringDensity(fitted, wide, wide_share)
    proposals = ThetaProposals(density, 0.6 * np.eye(2), 0.5, np.array(shares))
    return Settings(proposals, **others)


def chains(tuned, target=TOY, draws=DRAWS, step=draw):
    found = []
    for seed in range(CHAINS):
        rng = np.random.default_rng(seed)
        state = state_at(target, np.array([-0.5, 0.4]), rng.standard_normal(target.size))
        found.append(run_chain(lambda s, rng=rng: step(tuned, target, rng, s), state, draws))
    return tuple(np.stack([run[k] for run in found]) for k in (0, 1))


def z_scores(theta, x):
    exact = truth()
    scores = {}
    for j in range(2):
        scores[f"theta_{j}"] = z_of_chains(theta[:, :, j], exact.theta[j])
        scores[f"theta_{j}²"] = z_of_chains(theta[:, :, j] ** 2, exact.theta_squared[j])
    for i in (0, 5):
        scores[f"x_{i}"] = z_of_chains(x[:, :, i], exact.x[i])
        scores[f"x_{i}²"] = z_of_chains(x[:, :, i] ** 2, exact.x_squared[i])
    return scores


KERNELS = {
    "independent": settings(joint_share=1.0),
    "mixed": settings(joint_share=0.5),
    "fixed noise": settings(),
    "walk": settings(shares=(0.0, 0.0, 1.0), moves=2),
    "autoregression": settings(shares=(0.0, 1.0, 0.0), moves=2),
    "many kicks": settings(kicks=5),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_posterior_is_that_of_quadrature(name):
    assert_within(z_scores(*chains(KERNELS[name])))


@pytest.mark.parametrize(
    ("tuned", "target"),
    [
        (settings(joint_share=0.5), replace(TOY, narrow=0.7)),
        (settings(moves=2), replace(TOY, narrow=0.5)),
        (settings(centre=(0.5, -0.3), width=0.4, joint_share=0.3), TOY),
    ],
    ids=["narrow q", "narrower q at fixed noise", "g beside the posterior"],
)
def test_a_poor_q_and_a_wrong_g_are_slow_and_right(tuned, target):
    assert_within(z_scores(*chains(tuned, target, 2 * DRAWS)))


def without_densities(tuned, target, rng, state):
    """A joint move accepted without the ratio of the densities of its proposals."""
    theta = tuned.proposals.density.draw(rng, 1)[0]
    new = proposed_state(target, theta, rng.standard_normal(len(state.u)))
    if new is None:
        return state, None
    accepted = np.log(rng.uniform()) < new.log_level - state.log_level
    return (new if accepted else state), None


@dataclass(frozen=True)
class WithoutVolume:
    """The toy with the normaliser of q, a function of theta, left out of its weights."""

    toy: Toy
    dim_theta = 2

    @property
    def size(self):
        return self.toy.size

    def at(self, theta):
        return Tampered(self.toy.at(theta))


@dataclass(frozen=True)
class Tampered:
    inner: object

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def log_weight(self, u):
        return self.inner.log_weight(u) - np.log(self.inner.sd).sum()


@pytest.mark.parametrize(
    ("tuned", "target", "step"),
    [
        (settings(), WithoutVolume(TOY), draw),
        (settings(joint_share=1.0), TOY, without_densities),
        (settings(centre=(-1.3, 0.5), width=0.15, wide_share=1e-12, joint_share=1.0), TOY, draw),
    ],
    ids=["no log-determinant of q", "no densities of the proposals", "g without support"],
)
def test_controls_fail(tuned, target, step):
    theta, x = chains(tuned, target, step=step)
    assert max(abs(z) for z in z_scores(theta, x).values()) > LIMIT


def test_geweke_on_theta_and_x():
    """Data drawn anew given x and theta, and a draw given the data, leave the joint as it is."""
    tuned = settings(joint_share=0.3, shares=(0.5, 0.2, 0.3), centre=(0.0, 0.0), width=1.2)
    rng = np.random.default_rng(7)
    theta = rng.standard_normal(2)
    sigma, b, _ = TOY.parameters(theta)
    x = sigma * rng.standard_normal(4)
    kept = []
    for _ in range(6000):
        target = Toy(rng.poisson(np.exp(x + b)).astype(float), 2)
        conditional = target.at(theta)
        u = conditional.noise(x)
        state = State(theta, u, conditional, conditional.log_weight(u))
        state, _ = draw(tuned, target, rng, state)
        theta, x = state.theta, state.latent
        sigma, b, _ = TOY.parameters(theta)
        kept.append([*theta, *theta**2, x[0] / sigma, (x[0] / sigma) ** 2, theta[0] * x[0] / sigma])
    kept = np.array(kept)
    expected = [0, 0, 1, 1, 0, 1, 0]
    assert_within({j: z_of_chains(kept[:, j], truth) for j, truth in enumerate(expected)})


def test_a_draw_is_a_function_of_its_arguments_and_restarts():
    tuned = settings(joint_share=0.4, shares=(0.4, 0.3, 0.3))
    rng = np.random.default_rng(1)
    state = state_at(TOY, np.zeros(2), rng.standard_normal(TOY.size))
    for _ in range(20):
        state, _ = draw(tuned, TOY, rng, state)
    memory = rng.bit_generator.state
    ends = []
    for begin in (state, restored(TOY, state.theta, state.u, state.log_weight)):
        rng.bit_generator.state = memory
        for _ in range(10):
            begin, info = draw(tuned, TOY, rng, begin)
        ends.append((begin.theta, begin.u, begin.log_weight, info))
    for first, second in zip(*(end[:3] for end in ends), strict=True):
        np.testing.assert_array_equal(first, second)
    assert repr(ends[0][3]) == repr(ends[1][3])


def test_failures_are_rejections_that_are_counted():
    # The toy has no q beyond 15, where most of these proposals are.
    tuned = settings(centre=(14.5, 14.5), width=3.0, joint_share=0.5)
    rng = np.random.default_rng(2)
    state = state_at(TOY, np.zeros(2), rng.standard_normal(TOY.size))
    theta, _, infos = run_chain(lambda s: draw(tuned, TOY, rng, s), state, 300)
    assert sum(info.failed for info in infos) > 50
    assert np.isfinite(theta).all()
    assert all(info.acceptance == 0.0 for info in infos if info.failed)


@pytest.mark.parametrize("kicks", [1, 2, 3, 4, 7])
def test_trajectories_go_back_and_keep_volume(kicks):
    assert kick_weights(kicks).sum() == pytest.approx(kicks)
    conditional = TOY.at(np.array([0.3, 0.2]))
    rng = np.random.default_rng(3)
    u, p = rng.standard_normal((2, TOY.size))
    end_u, end_p, _, change = trajectory(conditional, u, p, kicks, 1.2)
    back_u, back_p, _, back = trajectory(conditional, end_u, -end_p, kicks, 1.2)
    np.testing.assert_allclose(back_u, u, atol=1e-9)
    np.testing.assert_allclose(back_p, -p, atol=1e-9)
    assert back == pytest.approx(-change, abs=1e-9)
    # The Jacobian of (u, p) by differences has determinant one.
    start, step = np.concatenate([u, p]), 1e-6

    def follow(z):
        a, b, *_ = trajectory(conditional, z[: TOY.size], z[TOY.size :], kicks, 1.2)
        return np.concatenate([a, b])

    J = [(follow(start + step * e) - follow(start - step * e)) / (2 * step) for e in np.eye(24)]
    assert abs(np.linalg.slogdet(np.array(J))[1]) < 1e-6


def test_the_energy_error_falls_with_the_square_of_the_step():
    conditional = replace(TOY, narrow=0.6).at(np.array([0.5, 0.2]))
    u, p = np.random.default_rng(4).standard_normal((2, TOY.size))
    changes = [abs(trajectory(conditional, u, p, kicks, 1.5)[3]) for kicks in (9, 27)]
    assert changes[0] / changes[1] == pytest.approx(9.0, rel=0.25)


def test_of_gaussian_data_nothing_is_ever_rejected():
    target = Toy(np.random.default_rng(5).standard_normal(8), 2, gaussian=True)
    rng = np.random.default_rng(6)
    state = state_at(target, np.array([0.2, 0.1]), rng.standard_normal(8))
    for kicks in (1, 2, 5):
        state, probability = rotate(rng, state, kicks)
        assert probability == pytest.approx(1.0, abs=1e-9)
