"""Models that look latent Gaussian and are not, or less than they seem.

`latent` is the most that may be in x, `also` less or other; nothing else may.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from model_shelf import BINARY, COUNTS, GROUP, OTHER, POSITIVE, REAL, TIME, N, X, case

TRANSFORMS = pm.distributions.transforms


def effects():
    """Normal b, u and their scales; b enters linearly."""
    s, b = pm.HalfNormal("s"), pm.Normal("b", shape=2)
    return X @ b, pm.Normal("u", 0, s, shape=4)


def observe(mean):
    pm.Normal("y", mean, pm.HalfNormal("t"), observed=REAL)


@case("b u", "s t", also=["b"], predictors=2)
def kinked_effect():
    linear, u = effects()
    observe(linear + pt.maximum(u, 0)[GROUP])


@case("b u", "s t", also=["b"], predictors=2)
def effect_clipped_far_away():
    linear, u = effects()
    observe(linear + pt.clip(u, -50, 50)[GROUP])


@case("b u", "s t", also=["b"], predictors=2)
def softplus_far_from_its_bend():
    linear, u = effects()
    observe(linear + pt.softplus(100 + u)[GROUP])


@case("b u", "s t", also=["b"], predictors=2)
def nearly_straight_function():
    linear, u = effects()
    observe(linear + 1e6 * pt.tanh(1e-6 * u)[GROUP])


@case("b u", "s t", also=["b"], predictors=2)
def jump_of_an_effect_far_away():
    linear, u = effects()
    observe(linear + pt.switch(u > 30, 2 * u, u)[GROUP])


@case("b", "u s t")
def sorted_effects():
    linear, u = effects()
    observe(linear + pt.sort(u)[GROUP])


@case("", "u t")
def standardised_effects():
    u = pm.Normal("u", shape=6, initval=np.arange(6.0))
    observe(((u - u.mean()) / u.std())[np.arange(N) % 6])


@case("u", "v t", also=["v"])
def product_of_effects():
    u, v = pm.Normal("u", 1, 1, shape=4), pm.Normal("v", 1, 1, shape=3)
    observe(u[GROUP] * v[OTHER])


@case("b", "u c t")
def normal_on_another_scale():
    b = pm.Normal("b", shape=2)
    u = pm.Normal("u", shape=4, transform=TRANSFORMS.Interval(-3, 3))
    c = pm.Normal("c", shape=3, transform=TRANSFORMS.ordered, initval=[-1, 0, 1])
    observe(X @ b + u[GROUP] + c[COUNTS % 3])


@case("a", "b c d t")
def positive_effects():
    a, b = pm.Normal("a"), pm.HalfNormal("b", shape=2)
    c, d = pm.TruncatedNormal("c", lower=0.0), pm.LogNormal("d")
    observe(a + np.abs(X) @ b + c * TIME + d * TIME**2)


@case("a", "u v w t")
def heavy_tailed_effects():
    a, w = pm.Normal("a"), pm.Laplace("w", 0, 1)
    u, v = pm.StudentT("u", nu=4, shape=4), pm.StudentT("v", nu=1e9, shape=3)
    observe(a + u[GROUP] + v[OTHER] + w * TIME)


@case("a", "tau t")
def jump_at_a_gaussian_time():
    tau, a = pm.Normal("tau", 0.5, 0.2), pm.Normal("a", shape=2)
    observe(pm.math.switch(tau > TIME, a[0], a[1]))


@case("a mu", "w t", also=["a", "mu"], predictors=3)
def locations_of_a_mixture():
    a, mu = pm.Normal("a"), pm.Normal("mu", 0, 3, shape=2, initval=[-1, 1])
    w, t = pm.Beta("w", 2, 2), pm.HalfNormal("t")
    parts = [pm.Normal.dist(a + mu[k] + 0 * TIME, t) for k in range(2)]
    pm.Mixture("y", w=pt.stack([w, 1 - w]), comp_dists=parts, observed=REAL)


@case("x", "t", predictors=1)
def barrier_far_away():
    x, t = pm.Normal("x", 0, 10, shape=4), pm.HalfNormal("t")
    pm.Potential("barrier", -pt.softplus(100 * (x.sum() - 60)))
    pm.Normal("y", x[GROUP], t, observed=REAL)


@case("a u", "t", predictors=1)
def mean_here_and_scale_there():
    a, t, u = pm.Normal("a"), pm.HalfNormal("t"), pm.Normal("u", shape=4)
    pm.Normal("y", a + u[GROUP], t, observed=REAL)
    pm.Normal("z", 0, pt.exp(u)[GROUP], observed=REAL)


@case("inner", "outer l1 l2 t")
def process_of_a_process():
    l1, l2 = pm.Gamma("l1", 2, 2), pm.Gamma("l2", 2, 2)
    z = pm.Normal("outer", shape=N)
    K = pm.gp.cov.Matern52(1, l1)(TIME[:, None]) + 1e-6 * pt.eye(N)
    warped = (pt.linalg.cholesky(K) @ z)[:, None]
    inner = pm.gp.Latent(cov_func=pm.gp.cov.Matern52(1, l2))
    observe(inner.prior("inner", X=warped, reparameterize=False))


@case("", "skill s")
def ranking():
    s = pm.HalfNormal("s")
    skill = pm.Normal("skill", 0, s, shape=6)
    order = np.stack([np.random.default_rng(k).permutation(6) for k in range(5)])
    o = skill[order]
    left = pt.log(pt.cumsum(pt.exp(o[:, ::-1]), axis=1))[:, ::-1]
    pm.Potential("y", (o - left).sum(axis=1))


@case("", "b")
def partial_likelihood():
    eta = X @ pm.Normal("b", shape=2)
    at_risk = (POSITIVE[None, :] >= POSITIVE[:, None]) * 1.0
    pm.Potential("y", (BINARY * (eta - pt.log(pt.dot(at_risk, pt.exp(eta))))).sum())


@case("", "f t")
def weights_that_sum_to_one():
    weights = pm.math.softmax(pm.Normal("f", shape=6))
    observe(np.random.default_rng(1).normal(size=(N, 6)) @ weights)


@case("", "n a")
def discrete_change_point():
    n, a = pm.DiscreteUniform("n", 0, N), pm.Normal("a", shape=2)
    pm.Normal("y", pm.math.switch(np.arange(N) < n, a[0], a[1]), 1.0, observed=REAL)
