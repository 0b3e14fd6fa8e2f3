"""Small latent Gaussian models of every kind, for the contract of the step that samples them."""

import warnings

import numpy as np
import pymc as pm
from pymc.exceptions import ImputationWarning

GROUP = np.arange(12) % 4
COUNTS = np.array([1, 0, 4, 2, 0, 1, 6, 3, 2, 0, 5, 1])
LABELS = np.array([0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1])
REALS = np.array([0.3, -1.2, 0.8, 1.9, -0.4, 0.1, 0.7, 2.2, 0.0, -0.9, 1.1, 1.4])
COVARIATE = np.linspace(-1.0, 1.0, 12)
RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)


def intercepts():
    with pm.Model(coords={"group": list("abcd")}) as model:
        mu, tau = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
        effect = pm.Normal("effect", mu, tau, dims="group")
        rate = pm.Deterministic("rate", pm.math.exp(effect), dims="group")
        pm.Poisson("y", rate[GROUP], observed=COUNTS)
    return model


def slopes():
    with pm.Model(coords={"group": list("abcd"), "term": ["level", "slope"]}) as model:
        sd = pm.HalfNormal.dist(1.0, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=sd)
        z = pm.Normal("z", 0.0, 1.0, dims=("group", "term"))
        b = pm.Deterministic("b", z @ chol.T, dims=("group", "term"))
        eta = b[GROUP, 0] + b[GROUP, 1] * COVARIATE
        pm.Bernoulli("y", logit_p=eta, observed=LABELS)
    return model


def walk():
    with pm.Model(coords={"time": np.arange(12)}) as model:
        s = pm.HalfNormal("s", 0.5)
        first = pm.Normal.dist(0.0, 1.0)
        path = pm.GaussianRandomWalk("path", sigma=s, init_dist=first, dims="time")
        pm.Poisson("y", pm.math.exp(path), observed=COUNTS)
    return model


def field():
    with pm.Model(coords={"area": np.arange(6)}) as model:
        alpha, tau = pm.Beta("alpha", 2.0, 2.0), pm.Gamma("tau", 2.0, 1.0)
        phi = pm.CAR("phi", mu=np.zeros(6), W=RING, alpha=alpha, tau=tau, dims="area")
        pm.Poisson("y", pm.math.exp(0.5 + phi), observed=COUNTS[:6])
    return model


def process():
    with pm.Model(coords={"place": np.arange(12)}) as model:
        level = pm.Normal("level", 0.0, 1.0)
        ls = pm.Gamma("ls", 3.0, 3.0)
        gp = pm.gp.Latent(cov_func=pm.gp.cov.Matern52(1, ls=ls))
        f = gp.prior("f", X=COVARIATE[:, None], dims="place")
        pm.Bernoulli("y", logit_p=level + f, observed=LABELS)
    return model


def dense():
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1.0)
        L = np.linalg.cholesky(0.5 * np.eye(4) + 0.5)
        v = pm.MvNormal("v", mu=np.full(4, 0.3), chol=s * L)
        b = pm.Normal("b", 0.0, 1.0)
        pm.Poisson("y", pm.math.exp(v[GROUP] + b * COVARIATE), observed=COUNTS)
    return model


def two_predictors():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1.0)
        b = pm.Normal("b", 0.0, tau, shape=2)
        c = pm.Normal("c", 0.0, 0.7, shape=2)
        mean, log_sd = b[0] + b[1] * COVARIATE, c[0] + c[1] * COVARIATE
        pm.Normal("y", mean, pm.math.exp(log_sd), observed=REALS)
    return model


def classes():
    with pm.Model(coords={"group": list("abcd"), "class": ["low", "mid", "high"]}) as model:
        tau = pm.HalfNormal("tau", 1.0)
        b = pm.Normal("b", 0.0, tau, dims=("group", "class"))
        pm.Categorical("y", p=pm.math.softmax(b[GROUP], axis=-1), observed=COUNTS % 3)
    return model


def unobserved():
    """Masked counts and the process at new inputs."""
    with pm.Model() as model:
        ls = pm.Gamma("ls", 3.0, 3.0)
        level = pm.Normal("level", 0.0, 1.0)
        gp = pm.gp.Latent(cov_func=pm.gp.cov.Matern52(1, ls=ls))
        f = gp.prior("f", X=COVARIATE[:, None])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImputationWarning)
            y = np.ma.masked_array(COUNTS, np.arange(12) % 4 == 1)
            pm.Poisson("y", pm.math.exp(level + f), observed=y)
        gp.conditional("f_new", np.array([[-0.55], [0.37]]))
    return model


def fixed():
    """No hyper-parameter at all."""
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, 2.0, shape=2)
        pm.Bernoulli("y", p=pm.math.invprobit(b[0] + b[1] * COVARIATE), observed=LABELS)
    return model


def autoregression():
    with pm.Model() as model:
        rho = pm.Uniform("rho", -1.0, 1.0)
        first = pm.Normal.dist(0.0, 1.0)
        state = pm.AR("state", rho=[0.1, rho], sigma=0.5, constant=True, init_dist=first, shape=12)
        pm.Poisson("y", pm.math.exp(state), observed=COUNTS)
    return model


def zero_sum():
    with pm.Model(coords={"group": list("abcd")}) as model:
        level, tau = pm.Normal("level", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
        effect = pm.ZeroSumNormal("effect", sigma=tau, dims="group")
        pm.Poisson("y", pm.math.exp(level + effect[GROUP]), observed=COUNTS)
    return model


def log_normal():
    with pm.Model(coords={"group": list("abcd")}) as model:
        mu, tau = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
        rate = pm.LogNormal("rate", mu, tau, dims="group")
        pm.Poisson("y", rate[GROUP], observed=COUNTS)
    return model


MODELS = {
    build.__name__.replace("_", "-"): build
    for build in (
        intercepts,
        slopes,
        walk,
        field,
        process,
        dense,
        two_predictors,
        classes,
        unobserved,
        fixed,
        autoregression,
        zero_sum,
        log_normal,
    )
}
