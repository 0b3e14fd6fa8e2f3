import numpy as np
import pytest

from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation


def adapt_to(covariance, *, target, draws=4000):
    """Random-walk Metropolis on a Gaussian with adaptation; the final adaptation."""
    rng = np.random.default_rng(0)
    precision = np.linalg.inv(covariance)
    theta = np.full(len(covariance), 3.0)
    adaptation = RandomWalkAdaptation.starting_at(theta)
    accepted = []
    for _ in range(draws):
        proposed, log_ratio = adaptation.proposal()(rng, theta)
        change = theta @ precision @ theta - proposed @ precision @ proposed
        acceptance = np.exp(min(0.0, 0.5 * change + log_ratio))
        if rng.uniform() < acceptance:
            theta = proposed
        accepted.append(acceptance)
        adaptation = adaptation.updated(theta, acceptance, target)
    return adaptation, np.mean(accepted[draws // 2 :])


@pytest.mark.parametrize("target", [0.15, 0.25, 0.4])
def test_acceptance_and_shape_reach_their_targets(target):
    covariance = np.array([[4.0, 0.6], [0.6, 0.1]])
    adaptation, acceptance = adapt_to(covariance, target=target)
    assert acceptance == pytest.approx(target, abs=0.04)
    found = adaptation.covariance / np.sqrt(
        np.outer(np.diag(adaptation.covariance), np.diag(adaptation.covariance))
    )
    assert found[0, 1] == pytest.approx(0.6 / np.sqrt(0.4), abs=0.05)
    assert adaptation.updates == 4000


def test_an_adaptation_is_not_changed_by_its_update():
    before = RandomWalkAdaptation.starting_at(np.zeros(2))
    after = before.updated(np.ones(2), 0.9, 0.25)
    np.testing.assert_array_equal(before.mean, 0.0)
    assert after.log_scale > before.log_scale
    assert after.updates == 1


def test_a_chain_that_never_moves_still_gives_a_proposal():
    adaptation = RandomWalkAdaptation.starting_at(np.zeros(3))
    for _ in range(5000):
        adaptation = adaptation.updated(np.zeros(3), 0.0, 0.25)
    factor = adaptation.proposal().factor
    assert np.isfinite(factor).all()
    assert (np.diag(factor) > 0).all()
