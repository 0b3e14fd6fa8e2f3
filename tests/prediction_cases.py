"""A Gaussian process with any response, a few draws of f, and predictions from them."""

import numpy as np
import pymc as pm
from models import inputs, labels

import pymc_pseudomarginal as pmpm

X_NEW = np.array([[-1.4], [-0.2], [0.3], [2.0]])
FIXED = pm.gp.cov.ExpQuad(1, ls=0.6)


def gp_model(observe, *, covariance=FIXED, mean=None, X=None, **kwargs):
    """(model, gp) with the observed variables that `observe(f)` adds."""
    X = inputs() if X is None else X
    with pm.Model() as model:
        gp = pm.gp.Latent(mean_func=mean or pm.gp.mean.Zero(), cov_func=covariance)
        observe(gp.prior("f", X=X, **kwargs))
    return model, gp


def observe_labels(f):
    pm.Bernoulli("y", p=pm.math.invprobit(f), observed=labels())


def draws_of_f(shape=(2, 3), seed=0):
    """A few draws of a smooth f, shape (*shape, N)."""
    levels = np.random.default_rng(seed).standard_normal((*shape, 1))
    return levels * np.sin(2.0 * inputs()[:, 0]) + 0.3


def predict(idata, gp, model, X_new=X_NEW, **kwargs):
    return pmpm.predict(idata, gp, X_new, model=model, progressbar=False, **kwargs)
