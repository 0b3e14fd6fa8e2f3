"""Geweke's joint-distribution test for likelihoods read from PyMC models.

Data y ~ p(y|f, theta) and the transition of (theta, f) given y alternate; then (theta, f)
must follow the prior, whose moments are known. A wrong likelihood parameter, density or
curvature safeguard that mattered would show.
"""

import numpy as np
import pymc as pm
import pytest
from interleavings import exact_interleaving
from stat_checks import LIMIT, assert_within, z_of_chains

from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.model.force import Force
from pymc_pseudomarginal.numerics import APPROXIMATIONS
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.hamiltonian import Position, Trajectory, pseudo_marginal_hmc
from pymc_pseudomarginal.transitions.proposals import RandomWalk
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional, State

CORRELATION = 0.6 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
INDEX = np.array([0, 1, 1, 2, 3])
LOG_SCALE = (-0.5, 0.5)  # mean and sd of theta[0] = log s, with K = s² C


def count_model():
    """Poisson counts, two of them on one latent value, with a free intercept."""
    with pm.Model() as model:
        s = pm.LogNormal("s", *LOG_SCALE)
        level = pm.Normal("level", 0.5, 0.5)
        f = pm.MvNormal("f", np.zeros(4), cov=s**2 * CORRELATION)
        y = pm.Data("data", np.ones(len(INDEX), dtype=int))
        pm.Poisson("y", pm.math.exp(level + f[INDEX]), observed=y)
    return model


def draw_counts(rng, theta, f, wrong=1.0):
    return rng.poisson(wrong * np.exp(theta[1] + f[INDEX]))


def student_model():
    """Student-t noise of unknown scale: not log-concave."""
    with pm.Model() as model:
        s = pm.LogNormal("s", *LOG_SCALE)
        noise = pm.LogNormal("noise", -0.5, 0.5)
        f = pm.MvNormal("f", np.zeros(4), cov=s**2 * CORRELATION)
        y = pm.Data("data", np.zeros(len(INDEX)))
        pm.StudentT("y", nu=4.0, mu=f[INDEX], sigma=noise, observed=y)
    return model


def draw_student(rng, theta, f, wrong=1.0):
    return f[INDEX] + wrong * np.exp(theta[1]) * rng.standard_t(4.0, len(INDEX))


MODELS = {
    "counts": (count_model, draw_counts, (0.5, 0.5)),
    "student": (student_model, draw_student, (-0.5, 0.5)),
}


def random_walk(read, evaluate, likelihood_at, approximation):
    """(rng, theta, f) -> (theta, f) by a random walk."""
    walk = RandomWalk(np.diag([0.6, 0.5]))

    def move(rng, theta, f):
        state, _ = exact_interleaving(rng, State(evaluate(theta), f), evaluate, walk, 4)
        return state.conditional.theta, state.f

    return move


def hamiltonian(read, evaluate, likelihood_at, approximation):
    """(rng, theta, f) -> (theta, f) by trajectories of one or two steps, rather long ones."""
    force = Force(read, approximation)

    def position_at(theta):
        there = evaluate(theta)
        return Position(there, force(theta, there.approximation, there.likelihood, likelihood_at))

    def move(rng, theta, f):
        start = position_at(theta)
        trajectory = Trajectory(np.diag([0.45, 0.45]), 1.1, int(rng.integers(1, 3)))
        state, *_ = pseudo_marginal_hmc(
            rng, State(start.conditional, f), start, position_at, trajectory, 4
        )
        there = state.conditional
        f, _ = elliptical_slice(rng, state.f, there.prior, there.likelihood)
        return there.theta, f

    return move


def run(name, approximation, *, draws, wrong=1.0, transition=random_walk):
    """z-scores of the test functions."""
    build, draw_data, second = MODELS[name]
    model = build()
    read = read_model(model)
    likelihood_at = read.bind_data()

    def evaluate(theta):
        likelihood = likelihood_at(theta)
        q = APPROXIMATIONS[approximation](read.prior(theta), likelihood)
        return Conditional(theta, read.log_prior(theta), likelihood, q)

    rng = np.random.default_rng(4)
    move = transition(read, evaluate, likelihood_at, approximation)
    theta = np.array([LOG_SCALE[0], second[0]])
    f = np.exp(theta[0]) * np.linalg.cholesky(CORRELATION) @ rng.standard_normal(4)
    thetas, latents = [], []
    for _ in range(draws):
        # The compiled functions read the data from this shared variable.
        data = model["data"]
        data.set_value(draw_data(rng, theta, f, wrong).astype(data.dtype))
        theta, f = move(rng, theta, f)
        thetas.append(theta)
        latents.append(f)
    return z_scores(np.array(thetas), np.array(latents), second)


def z_scores(theta, f, second):
    standard = (theta - [LOG_SCALE[0], second[0]]) / [LOG_SCALE[1], second[1]]
    w = f / np.exp(theta[:, :1])  # has covariance C whatever theta is
    functions = {
        "log s": (standard[:, 0], 0.0),
        "(log s)²": (standard[:, 0] ** 2, 1.0),
        "parameter": (standard[:, 1], 0.0),
        "parameter²": (standard[:, 1] ** 2, 1.0),
        "both": (standard[:, 0] * standard[:, 1], 0.0),
        "f/s": (w[:, 0], 0.0),
        "f²/s²": (w[:, 1] ** 2, 1.0),
        "f₁f₂/s²": (w[:, 0] * w[:, 1], CORRELATION[0, 1]),
        "log s f²/s²": (standard[:, 0] * w[:, 2] ** 2, 0.0),
        "parameter f/s": (standard[:, 1] * w[:, 3], 0.0),
        "parameter f²/s²": (standard[:, 1] * w[:, 1] ** 2, 0.0),
    }
    return {name: z_of_chains(draws[None], truth) for name, (draws, truth) in functions.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_geweke_joint_distribution(name, approximation):
    assert_within(run(name, approximation, draws=4000))


def test_geweke_joint_distribution_of_hamiltonian_proposals():
    # The force has the derivative in the noise, and where a curvature is clamped it is off.
    assert_within(run("student", "laplace", draws=1500, transition=hamiltonian))


@pytest.mark.parametrize(("name", "wrong"), [("counts", 0.7), ("student", 1.5)])
def test_geweke_finds_data_of_another_likelihood(name, wrong):
    z = run(name, "laplace", draws=4000, wrong=wrong)
    assert max(abs(value) for value in z.values()) > 1.5 * LIMIT
