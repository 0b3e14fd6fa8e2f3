"""Geweke's joint-distribution test of `PseudoMarginalStep` on models written in PyMC.

Data y ~ p(y|theta, x) and draws of (theta, x) given y alternate; then (theta, x) must follow
the prior. What was tuned on the first data is kept: frozen settings are exact whatever the data.
"""

from dataclasses import replace

import numpy as np
import pytest
from joint_distributions import JOINTS
from stat_checks import LIMIT, assert_within, z_of_chains
from step_chains import start_chain

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.kernels.state import State
from pymc_pseudomarginal.reading import LatentGaussianModel

SETTLE = 100


def at_new_data(chain):
    """The same theta and x, whose noise and weight are others under other data."""
    theta, x = chain.state.theta, chain.state.latent
    conditional = chain.target.at(theta)
    u = conditional.noise(x)
    state = State(theta, u, conditional, conditional.log_weight(u))
    return replace(chain, state=state)


def standard_draws(name, draws, *, thin_data=1.0, seed=8):
    """Independent standard normals, were the draws those of the prior, shape (draws, k)."""
    joint = JOINTS[name]
    model = joint.build()
    rng = np.random.default_rng(seed)
    with model:
        step = pmpm.PseudoMarginal()
    start_chain(step, seed)
    point, _ = step.step(model.initial_point())
    data, kept = model["data"], []
    for i in range(SETTLE + draws):
        drawn = joint.draw(rng, point)
        data.set_value(rng.binomial(drawn, thin_data).astype(data.dtype))
        step._chain = at_new_data(step._chain)
        point, (stats,) = step.step(point)
        assert stats["pm_failed"] == 0
        if i >= SETTLE:
            kept.append(joint.standard(point))
    return np.array(kept, dtype=float)


def z_scores(z):
    """Of first and second moments, all of which are known."""
    k = z.shape[1]
    functions = {f"z{i}": (z[:, i], 0.0) for i in range(k)}
    for i in range(k):
        for j in range(i + 1):
            functions[f"z{i}z{j}"] = (z[:, i] * z[:, j], float(i == j))
    functions |= {f"z0z{i}²": (z[:, 0] * z[:, i] ** 2, 0.0) for i in range(k)}
    return {name: z_of_chains(values[None], truth) for name, (values, truth) in functions.items()}


@pytest.mark.parametrize("name", JOINTS)
def test_data_and_parameters_drawn_in_turn_follow_the_prior(name):
    assert_within(z_scores(standard_draws(name, 600)))


@pytest.mark.slow
@pytest.mark.parametrize("name", JOINTS)
def test_many_data_and_parameters_drawn_in_turn_follow_the_prior(name):
    assert_within(z_scores(standard_draws(name, 15_000, seed=9)))


def worst(z):
    return max(abs(value) for value in z.values())


def test_data_of_another_likelihood_are_found():
    assert worst(z_scores(standard_draws("walk", 600, thin_data=0.6))) > 1.5 * LIMIT


def test_a_prior_of_x_without_its_determinant_is_found(monkeypatch):
    whole = LatentGaussianModel.at

    def at(self, theta):
        there = whole(self, theta)
        return replace(there, prior=replace(there.prior, constant=0.0))

    monkeypatch.setattr(LatentGaussianModel, "at", at)
    monkeypatch.setattr("pymc_pseudomarginal.reading.reader._check_identity", lambda *_: None)
    assert worst(z_scores(standard_draws("walk", 600))) > 1.5 * LIMIT
