"""Models, each with a point on the natural scale and the mean and covariance there by NumPy."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import models
import numpy as np
import pymc as pm
from models import N, gp_probit, inputs
from problems import exp_quad

JITTER = 1e-6 * np.eye(N)


def matern52(X, lengthscale):
    r = np.sqrt(5.0) * np.abs(X - X.T) / lengthscale
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def periodic(X, lengthscale, period):
    return np.exp(-0.5 * (np.sin(np.pi * (X - X.T) / period) / lengthscale) ** 2)


class Case(NamedTuple):
    """A model, a point on the natural scale, and m and K there by NumPy."""

    build: Callable[[], pm.Model]
    natural: dict
    moments: Callable[..., tuple]
    whitened: bool = True


def zero_mean(ls, sigma=1.0, d=1):
    return 0.0, exp_quad(inputs(d=d), ls, sigma)


def linear_mean(b, intercept, ls):
    X = inputs(d=2)
    return X @ b + intercept, exp_quad(X, ls, 1.0)


def kernel(function):
    """Moments of `kernel_probit`, from K without the jitter as a function of (X, ls)."""
    return lambda ls: (0.0, function(inputs(), ls) + JITTER)


def many_priors(scale, ls, rough, share, level):
    X = inputs()
    smooth = exp_quad(X, ls, 1.0) - JITTER
    return level, scale**2 * (share * smooth + (1 - share) * matern52(X, rough)) + JITTER


def simplex(w):
    parts = [exp_quad(inputs(), ls, 1.0) - JITTER for ls in (0.25, 0.5, 2.0)]
    return 0.0, np.tensordot(w, parts, axes=1) + JITTER


def two_kernels(X, ls):
    return exp_quad(X, 2.0 * ls, 1.0) - JITTER + 0.5 * matern52(X, ls)


def coregion(ls, w):
    output = np.arange(N) % 2
    B = w @ w.T + np.diag([0.3, 0.6])
    return 0.0, B[np.ix_(output, output)] * (exp_quad(inputs(), ls, 1.0) - JITTER) + JITTER


def precision(s):
    return 0.3, s**2 * np.linalg.inv(np.eye(N) * 2.0 - np.eye(N, k=1) - np.eye(N, k=-1))


def scaled_root(s, mu):
    return mu, s**2 * np.exp(-np.abs(inputs() - inputs().T))


def kronecker(ls):
    t = np.linspace(0.0, 2.0, N // 2)[:, None]
    return 0.0, np.kron(
        exp_quad(np.array([[0.0], [1.0]]), 3.0 * ls, 1.0), matern52(t, ls) + 1e-6 * np.eye(N // 2)
    )


TWO = {"ls": 0.4, "sigma": 1.5}
ARD = np.array([0.4, 1.2])
LINEAR = {"b": np.array([0.7, -0.2]), "intercept": 0.3, "ls": 0.6}

CASES = {
    "whitened": Case(gp_probit, TWO, zero_mean),
    "centred": Case(partial(gp_probit, reparameterize=False), TWO, zero_mean, False),
    "ard": Case(partial(gp_probit, d=2, ard=True), TWO | {"ls": ARD}, partial(zero_mean, d=2)),
    "mvnormal-cov": Case(models.mvnormal_probit, TWO, zero_mean, False),
    "mvnormal-chol": Case(partial(models.mvnormal_probit, "chol"), TWO, zero_mean, False),
    "matern52": Case(
        partial(models.kernel_probit, lambda ls: pm.gp.cov.Matern52(1, ls=ls)),
        {"ls": 0.5},
        kernel(matern52),
    ),
    "sum-and-product": Case(
        partial(
            models.kernel_probit,
            lambda ls: (
                pm.gp.cov.Matern52(1, ls=ls) * pm.gp.cov.Periodic(1, period=1.75, ls=1.0)
                + 0.5 * pm.gp.cov.Matern52(1, ls=2.0 * ls)
            ),
        ),
        {"ls": 0.5},
        kernel(
            lambda X, ls: matern52(X, ls) * periodic(X, 1.0, 1.75) + 0.5 * matern52(X, 2.0 * ls)
        ),
    ),
    "constant-mean": Case(
        models.constant_mean_probit, {"c": -0.8}, lambda c: (c, exp_quad(inputs(), 0.5, 1.0))
    ),
    "linear-mean": Case(models.linear_mean_probit, LINEAR, linear_mean),
    "mvnormal-coefficients": Case(
        partial(models.linear_mean_probit, multivariate=True), LINEAR, linear_mean
    ),
    "mvnormal-coefficients-centred": Case(
        partial(models.linear_mean_probit, multivariate=True, reparameterize=False),
        LINEAR,
        linear_mean,
        False,
    ),
    "many-priors": Case(
        models.many_priors_probit,
        {"scale": 1.3, "ls": 0.8, "rough": 0.5, "share": 0.7, "level": 0.4},
        many_priors,
    ),
    "dirichlet": Case(models.dirichlet_probit, {"w": np.array([0.2, 0.5, 0.3])}, simplex),
    "data": Case(models.data_probit, {"ls": ARD}, partial(zero_mean, d=2)),
    "hierarchical": Case(
        models.hierarchical_probit,
        {"centre": -0.3, "spread": 0.4, "ls": ARD},
        lambda centre, spread, ls: zero_mean(ls, d=2),
    ),
    "side-data": Case(models.side_data_probit, TWO, zero_mean),
    "handwritten": Case(models.handwritten_probit, {"ls": 0.4}, zero_mean),
    "two-gps": Case(models.two_gps_probit, {"ls": 0.5}, kernel(two_kernels)),
    "coregion": Case(models.coregion_probit, {"ls": 0.5, "w": np.array([[0.4], [-0.9]])}, coregion),
    "white-noise-and-linear": Case(
        partial(
            models.kernel_probit,
            lambda ls: ls * pm.gp.cov.Linear(1, c=0.2) + pm.gp.cov.WhiteNoise(sigma=0.5),
        ),
        {"ls": 0.5},
        kernel(lambda X, ls: ls * (X - 0.2) @ (X - 0.2).T + 0.25 * np.eye(N)),
    ),
    "precision": Case(models.precision_probit, {"s": 0.7}, precision, False),
    "scaled-root": Case(models.scaled_root_probit, {"s": 0.7, "mu": 0.4}, scaled_root),
    "signed-root": Case(
        partial(models.scaled_root_probit, signed=True), {"s": -0.7, "mu": 0.4}, scaled_root
    ),
    "random-walk": Case(
        models.random_walk_probit,
        {"s": 0.7},
        lambda s: (0.2, s**2 * np.minimum.outer(np.arange(1, N + 1), np.arange(1, N + 1))),
    ),
    "kronecker": Case(models.kronecker_probit, {"ls": 0.5}, kronecker),
    "effects": Case(
        models.effects_probit, {"mu": 0.3, "s": 0.7}, lambda mu, s: (mu, s**2 * np.eye(N)), False
    ),
    "effects-whitened": Case(
        partial(models.effects_probit, whitened=True),
        {"mu": 0.3, "s": 0.7},
        lambda mu, s: (mu, s**2 * np.eye(N)),
    ),
    "fixed-prior": Case(models.fixed_prior_probit, {}, partial(zero_mean, 0.5)),
}
