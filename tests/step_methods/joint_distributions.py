"""Latent Gaussian models whose data can be drawn anew, for Geweke's test.

Each has a NumPy function that draws data given a point of PyMC's, and one that maps a point to
independent standard normals, which it is a map of under the prior.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
from scipy.special import ndtri

LOG_SCALE = (-0.7, 0.4)  # mean and sd of the logarithm of every standard deviation


@dataclass(frozen=True)
class Joint:
    build: Callable[[], pm.Model]
    draw: Callable
    standard: Callable


def scale(name):
    return pm.LogNormal(name, *LOG_SCALE)


def standard_scale(point, name):
    return (point[f"{name}_log__"] - LOG_SCALE[0]) / LOG_SCALE[1]


def scale_of(point, name):
    return np.exp(point[f"{name}_log__"])


def counts(size):
    return pm.Data("data", np.ones(size, dtype=int))


ROW, COLUMN = np.divmod(np.arange(12), 4)


def crossed():
    with pm.Model() as model:
        mu, s, t = pm.Normal("mu", 0.3, 0.5), scale("s"), scale("t")
        row = pm.Normal("row", mu, s, shape=3)
        column = pm.Normal("column", 0.0, t, shape=4)
        pm.Poisson("y", pm.math.exp(row[ROW] + column[COLUMN]), observed=counts(12))
    return model


def draw_crossed(rng, point):
    return rng.poisson(np.exp(point["row"][ROW] + point["column"][COLUMN]))


def standard_crossed(point):
    return [
        standard_scale(point, "s"),
        standard_scale(point, "t"),
        (point["mu"] - 0.3) / 0.5,
        (point["row"][1] - point["mu"]) / scale_of(point, "s"),
        point["column"][2] / scale_of(point, "t"),
    ]


GROUP, SLOPE = np.repeat(np.arange(4), 4), np.tile([-1.0, -0.3, 0.4, 1.2], 4)


def slopes():
    with pm.Model() as model:
        sd = pm.LogNormal.dist(*LOG_SCALE, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=sd)
        z = pm.Normal("z", 0.0, 1.0, shape=(4, 2))
        b = z @ chol.T
        eta = b[GROUP, 0] + b[GROUP, 1] * SLOPE
        pm.Binomial("y", n=4, logit_p=eta, observed=counts(16))
    return model


def factor_of(point):
    first, below, last = point["chol_cholesky-cov-packed__"]
    return np.array([[np.exp(first), 0.0], [below, np.exp(last)]])


def draw_slopes(rng, point):
    b = point["z"] @ factor_of(point).T
    return rng.binomial(4, 1 / (1 + np.exp(-b[GROUP, 0] - b[GROUP, 1] * SLOPE)))


def standard_slopes(point):
    factor = factor_of(point)
    sd = np.sqrt((factor**2).sum(axis=1))
    half = 0.5 * (1.0 + factor[1, 0] / sd[1])  # Beta(2, 2)
    standard_sd = (np.log(sd) - LOG_SCALE[0]) / LOG_SCALE[1]
    return [*standard_sd, ndtri(half**2 * (3 - 2 * half)), point["z"][0, 0], point["z"][2, 1]]


RING = np.roll(np.eye(7), 1, axis=0) + np.roll(np.eye(7), -1, axis=0)


def field():
    with pm.Model() as model:
        alpha, s = pm.Uniform("alpha", 0.0, 0.98), scale("s")
        phi = pm.CAR("phi", mu=np.zeros(7), W=RING, alpha=alpha, tau=s**-2)
        pm.Poisson("y", pm.math.exp(0.5 + phi), observed=counts(7))
    return model


def draw_field(rng, point):
    return rng.poisson(np.exp(0.5 + point["phi"]))


def standard_field(point):
    share = 1 / (1 + np.exp(-point["alpha_interval__"]))
    Q = (2.0 * np.eye(7) - 0.98 * share * RING) / scale_of(point, "s") ** 2
    w = np.linalg.cholesky(Q).T @ point["phi"]
    return [standard_scale(point, "s"), ndtri(share), w[0], w[3], w[6]]


def walk():
    with pm.Model() as model:
        s, level = scale("s"), pm.Normal("level", 0.3, 0.5)
        first = pm.Normal.dist(0.0, 0.5)
        path = pm.GaussianRandomWalk("path", sigma=s, init_dist=first, steps=6)
        pm.Poisson("y", pm.math.exp(level + path), observed=counts(7))
    return model


def draw_walk(rng, point):
    return rng.poisson(np.exp(point["level"] + point["path"]))


def standard_walk(point):
    steps = np.diff(point["path"]) / scale_of(point, "s")
    level = (point["level"] - 0.3) / 0.5
    return [standard_scale(point, "s"), level, point["path"][0] / 0.5, steps[0], steps[5]]


PLACES = np.linspace(0.0, 2.0, 8)
SITE = np.arange(8) % 3


def process():
    with pm.Model() as model:
        ls, s, level = scale("ls"), scale("s"), pm.Normal("level", 0.3, 0.5)
        site = pm.Normal("site", 0.0, s, shape=3)
        gp = pm.gp.Latent(cov_func=0.49 * pm.gp.cov.ExpQuad(1, ls=ls))
        f = gp.prior("f", X=PLACES[:, None], jitter=1e-4)
        pm.Poisson("y", pm.math.exp(level + f + site[SITE]), observed=counts(8))
    return model


def draw_process(rng, point):
    r = (PLACES[:, None] - PLACES) / scale_of(point, "ls")
    f = np.linalg.cholesky(0.49 * np.exp(-0.5 * r**2) + 1e-4 * np.eye(8)) @ point["f_rotated_"]
    return rng.poisson(np.exp(point["level"] + f + point["site"][SITE]))


def standard_process(point):
    return [
        standard_scale(point, "ls"),
        standard_scale(point, "s"),
        (point["level"] - 0.3) / 0.5,
        point["f_rotated_"][0],
        point["f_rotated_"][2],
        point["site"][1] / scale_of(point, "s"),
    ]


JOINTS = {
    "crossed": Joint(crossed, draw_crossed, standard_crossed),
    "slopes": Joint(slopes, draw_slopes, standard_slopes),
    "field": Joint(field, draw_field, standard_field),
    "walk": Joint(walk, draw_walk, standard_walk),
    "process": Joint(process, draw_process, standard_process),
}
