"""q is a function of theta alone, and what is learnt can be frozen."""

import pickle

import numpy as np
import pytest
from approximations.latent_models import Scaled, crossed_poisson, three_classes, two_predictors
from linalg.latent_problems import Poisson
from scipy.sparse import csr_array, eye_array

from pymc_pseudomarginal.approximations.target import LaplaceTarget, Start


def sparse_poisson():
    y = np.random.default_rng(0).poisson(3.0, 80)
    return Scaled(csr_array(eye_array(80)), (40, 40), Poisson(y), mean=1.0)


MODELS = [crossed_poisson, two_predictors, three_classes, sparse_poisson]
EVERY_MODEL = pytest.mark.parametrize("model", MODELS)


def explored(target, seed=0, count=20):
    thetas = -0.5 + 0.3 * np.random.default_rng(seed).standard_normal((count, target.dim_theta))
    return [target.at(theta) for theta in thetas]


def fingerprint(target, theta):
    q = target.at(theta)
    u = np.random.default_rng(9).standard_normal((4, q.size))
    parts = [q.mean, q.latent(u).ravel(), q.log_weights(u), [q.log_weight(u[0])]]
    return np.concatenate([*parts, q.log_weight_and_gradient(u[0])[1]]).tobytes()


@EVERY_MODEL
@pytest.mark.parametrize("learnt", [False, True])
def test_the_same_theta_gives_the_same_bits(model, learnt):
    target = LaplaceTarget(model())
    if learnt:
        target = target.learn_start(explored(target))
    theta = np.array([-0.4, -0.7])
    first = fingerprint(target, theta)
    explored(target, seed=1)
    assert fingerprint(target, theta) == first
    # A target that saw another theta first.
    other = LaplaceTarget(model()).thawed(target.frozen())
    other.at(np.array([0.5, 0.5]))
    assert fingerprint(other, theta) == first


@EVERY_MODEL
def test_frozen_arrays_restore_the_target_bit_for_bit(model, tmp_path):
    target = LaplaceTarget(model())
    target = target.learn_start(explored(target))
    np.savez(tmp_path / "frozen.npz", **target.frozen())
    with np.load(tmp_path / "frozen.npz", allow_pickle=False) as arrays:
        restored = LaplaceTarget(model()).thawed(arrays)
    theta = np.array([-0.2, -0.9])
    assert fingerprint(restored, theta) == fingerprint(target, theta)


def test_frozen_arrays_are_copies():
    target = LaplaceTarget(crossed_poisson())
    target.frozen()["start_intercept"][:] = np.nan
    assert np.isfinite(target.start.intercept).all()


def test_a_target_can_be_sent_to_another_process():
    target = LaplaceTarget(sparse_poisson())
    theta = np.array([-0.2, -0.9])
    first = fingerprint(target, theta)
    assert fingerprint(pickle.loads(pickle.dumps(target)), theta) == first


@EVERY_MODEL
def test_a_learnt_start_saves_factorisations_and_keeps_q_good(model):
    cold = LaplaceTarget(model())
    learnt = cold.learn_start(explored(cold))
    rng = np.random.default_rng(2)
    before, after, spreads = [], [], []
    for theta in -0.5 + 0.3 * rng.standard_normal((15, 2)):
        p, q = cold.at(theta), learnt.at(theta)
        u = rng.standard_normal((400, q.size))
        before.append(p.iterations)
        after.append(q.iterations)
        spreads.append((p.log_weights(u).std(), q.log_weights(u).std()))
    assert np.mean(after) <= 0.6 * np.mean(before)
    tight, loose = np.mean(spreads, axis=0)
    assert loose < 1.2 * tight + 0.1


def test_a_start_far_from_all_it_was_learnt_from_stays_at_the_border():
    rng = np.random.default_rng(0)
    thetas = rng.standard_normal((30, 2))
    modes = thetas @ np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]]) + 5.0
    start = Start.fitted(thetas, modes)
    np.testing.assert_allclose(start.at(thetas[0]), modes[0], atol=0.05)
    far = start.at(np.array([1e6, 0.0]))
    assert np.abs(far).max() < 20.0


def test_no_hyper_parameters():
    model = crossed_poisson()

    class Frozen:
        size, dim_theta = model.size, 0

        def at(self, theta):
            at = model.at(np.array([-0.3, -0.3]))
            return type(at)(theta, 0.0, at.prior, at.predictor, at.likelihood)

    target = LaplaceTarget(Frozen())
    learnt = target.learn_start([target.at(np.zeros(0))])
    assert learnt.at(np.zeros(0)).iterations == 1
    assert fingerprint(target.thawed(learnt.frozen()), np.zeros(0)) == fingerprint(
        learnt, np.zeros(0)
    )


def test_nothing_to_learn_from_changes_nothing():
    target = LaplaceTarget(crossed_poisson())
    assert target.learn_start([]) is target
