"""Densities of theta: draws have the density that is claimed, and moves across are reversible."""

import numpy as np
import pytest
from stat_checks import LIMIT, assert_within, z_of_independent

from pymc_pseudomarginal.kernels.grid_density import GridDensity
from pymc_pseudomarginal.kernels.proposals import CoveringDensity, ThetaProposals
from pymc_pseudomarginal.kernels.student_t import StudentMixture
from pymc_pseudomarginal.tuning.triangular_fit import fit_triangular

DRAWS = 20_000


def mixture():
    factors = np.array([[[1.0, 0.0], [0.5, 0.7]], [[0.4, 0.0], [-0.2, 0.3]]])
    centres = np.array([[0.0, 0.0], [2.0, -1.0]])
    return StudentMixture(np.array([0.7, 0.3]), centres, factors, np.array([5.0, 9.0]))


def grid():
    masses = np.zeros((7, 6))
    masses[1:-1, 1:-1] = np.random.default_rng(1).uniform(0.1, 1.0, (5, 4))
    basis = np.array([[1.0, 0.3], [0.0, 0.8]])
    return GridDensity(
        np.array([0.5, -0.5]),
        basis,
        np.array([-2.0, -2.0]),
        np.array([0.6, 0.7]),
        masses / masses.sum(),
    )


def triangular():
    rng = np.random.default_rng(2)
    z = rng.standard_normal((400, 2))
    banana = np.column_stack([z[:, 0], z[:, 1] * np.exp(0.3 * z[:, 0]) + z[:, 0] ** 2])
    return fit_triangular(banana, np.full(len(banana), 1.0 / len(banana)))


def covering():
    wide = StudentMixture.single(np.zeros(2), 3.0 * np.eye(2), 4.0)
    return CoveringDensity(grid(), wide, 0.1)


DENSITIES = {
    "mixture": mixture,
    "grid": grid,
    "triangular": triangular,
    "covering": covering,
}


def total(density, power=None):
    """The integral over the plane, by a fine sum; of a coordinate's power if given."""
    axis = np.linspace(-25.0, 25.0, 1401)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.exp(density.log_density(points)) * (axis[1] - axis[0]) ** 2
    return values.sum() if power is None else values @ np.tanh(points / 2.0) ** power


@pytest.mark.parametrize("name", DENSITIES)
def test_a_density_integrates_to_one_and_its_draws_are_of_it(name):
    density = DENSITIES[name]()
    # What lies beyond the square, and the error of the sum.
    assert total(density) == pytest.approx(1.0, abs=5e-3)
    draws = np.tanh(density.draw(np.random.default_rng(3), DRAWS) / 2.0)
    z_scores = {}
    for power in (1, 2):
        truth = total(density, power)
        for j in range(2):
            z_scores[power, j] = z_of_independent(draws[:, j] ** power, truth[j])
    assert_within(z_scores)


def test_the_control_of_another_density_is_noticed():
    density, draws = mixture(), np.tanh(grid().draw(np.random.default_rng(3), DRAWS) / 2.0)
    assert abs(z_of_independent(draws[:, 0], total(density, 1)[0])) > LIMIT


def test_a_covering_density_is_positive_everywhere():
    far = np.array([[80.0, 0.0], [0.0, -1e4], [-1e6, 1e6]])
    assert np.isneginf(grid().log_density(far)).all()
    assert np.isfinite(covering().log_density(far)).all()


@pytest.mark.parametrize("name", ["mixture", "triangular"])
@pytest.mark.parametrize("rho", [0.3, 0.85])
def test_autoregression_leaves_the_density_and_its_pairs_as_they_are(name, rho):
    """Stationary, and (theta, theta') is exchangeable, which is to be reversible."""
    density, rng = DENSITIES[name](), np.random.default_rng(4)
    first = density.draw(rng, 6000)
    second = np.array([density.autoregress(rng, theta, rho) for theta in first])
    a, b = np.tanh(first / 2.0), np.tanh(second / 2.0)
    z_scores = {}
    for j in range(2):
        z_scores["mean", j] = z_of_independent(b[:, j] - a[:, j], 0.0)
        z_scores["square", j] = z_of_independent(b[:, j] ** 2 - a[:, j] ** 2, 0.0)
        pair = a[:, j] * b[:, j] * (a[:, j] - b[:, j])
        z_scores["skew pair", j] = z_of_independent(pair, 0.0)
    assert_within(z_scores)


def test_proposals_tell_the_ratio_of_their_densities():
    wide = StudentMixture.single(np.zeros(2), 3.0 * np.eye(2), 4.0)
    density = CoveringDensity(triangular(), wide, 0.1)
    theta, rng = np.array([0.3, -0.4]), np.random.default_rng(5)
    for shares in np.eye(3):
        proposals = ThetaProposals(density, np.eye(2), 0.6, shares)
        new, log_ratio = proposals(rng, theta)
        levels = density.log_density(np.stack([theta, new]))
        expected = 0.0 if shares[2] else levels[0] - levels[1]
        assert log_ratio == pytest.approx(expected, rel=1e-12)
