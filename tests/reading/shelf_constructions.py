"""Ways to write a predictor: products with theta, indices, pieces put together."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from model_shelf import BINARY, COUNTS, GROUP, OTHER, REAL, TIME, N, X, case

PERSON, ITEM = np.arange(N) // 3, np.arange(N) % 3


@case("ability difficulty", "discrimination")
def item_response():
    ability, difficulty = pm.Normal("ability", shape=4), pm.Normal("difficulty", shape=3)
    discrimination = pm.LogNormal("discrimination", 0, 0.5, shape=3)
    p = pm.math.sigmoid(discrimination * (ability[:, None] - difficulty))
    pm.Bernoulli("y", p, observed=BINARY.reshape(4, 3))


@case("mean factor", "loading s")
def factor_analysis():
    loading, s = pm.Normal("loading", shape=(2, 1)), pm.HalfNormal("s", shape=2)
    mean, factor = pm.Normal("mean", shape=2), pm.Normal("factor", shape=(N, 1))
    pm.Normal("y", mean + factor @ loading.T, s, observed=X)


@case("a mx x", "b sx s")
def measurement_error():
    a, b, mx = pm.Normal("a"), pm.Normal("b"), pm.Normal("mx")
    sx, s = pm.HalfNormal("sx"), pm.HalfNormal("s")
    x = pm.Normal("x", mx, sx, shape=N)
    pm.Normal("seen", x, 0.3, observed=X[:, 0])
    pm.Normal("y", a + b * x, s, observed=REAL)


@case("a b", "tau s")
def hinge_at_an_unknown_place():
    a, b = pm.Normal("a"), pm.Normal("b")
    tau, s = pm.Uniform("tau", 0, 1), pm.HalfNormal("s")
    pm.Normal("y", a + b * pt.maximum(0, TIME - tau), s, observed=REAL)


@case("before after", "tau s")
def jump_at_an_unknown_time():
    tau, s = pm.Uniform("tau", 0, 1), pm.HalfNormal("s")
    before, after = pm.Normal("before"), pm.Normal("after")
    pm.Normal("y", pm.math.switch(tau > TIME, before, after), s, observed=REAL)


@case("v", "ell s")
def kernel_that_vanishes_at_the_start():
    ell, s, v = pm.LogNormal("ell", 0, 5, initval=1.0), pm.HalfNormal("s"), pm.Normal("v", shape=3)
    distance = 60 * np.subtract.outer(TIME, [0.0, 0.5, 1.0])
    pm.Normal("y", pt.exp(-0.5 * (distance / ell) ** 2) @ v, s, observed=REAL)


@case("u", "gain")
def gain_that_is_off_at_the_start():
    gain, u = pm.Uniform("gain", -6, -2), pm.Normal("u", shape=4)
    pm.Normal("y", u[GROUP] * pt.maximum(gain + 3.5, 0), 1.0, observed=REAL)


@case("x", "rho s")
def autoregression_by_a_matrix():
    rho, s, x = pm.Uniform("rho", -1, 1), pm.HalfNormal("s"), pm.Normal("x", shape=N)
    lag = np.subtract.outer(np.arange(N), np.arange(N))
    L = pt.switch(lag >= 0, rho ** np.maximum(lag, 0), 0.0)
    pm.Bernoulli("y", logit_p=s * (L @ x), observed=BINARY)


@case("x", "keep s")
def recursion_by_scan():
    keep, s, x = pm.Beta("keep", 2, 2), pm.HalfNormal("s"), pm.Normal("x", shape=N)
    found = pytensor.scan(
        lambda e, last, k: k * last + e,
        sequences=[x],
        outputs_info=[pt.zeros(())],
        non_sequences=[keep],
        return_updates=False,
    )
    pm.Poisson("y", pt.exp(s * found), observed=COUNTS)


@case("u", "s")
def two_index_arrays():
    s = pm.HalfNormal("s")
    u = pm.Normal("u", 0, s, shape=(4, 3))
    pm.Normal("y", u[GROUP, OTHER], 0.5, observed=REAL)


@case("g t", "s")
def broadcast_group_by_time():
    s, g = pm.HalfNormal("s"), pm.Normal("g", shape=(3, 1))
    t = pm.GaussianRandomWalk("t", sigma=s, init_dist=pm.Normal.dist(0, 1), shape=4)
    pm.Poisson("y", pt.exp(g + t[None, :]), observed=COUNTS.reshape(3, 4))


@case("a u v")
def pieces_put_together():
    a, u, v = pm.Normal("a"), pm.Normal("u", shape=3), pm.Normal("v", shape=2)
    first_is_zero = pt.set_subtensor(pt.zeros(4)[1:], u)
    sums_to_zero = pt.concatenate([v, -v.sum(keepdims=True)])
    pm.Poisson("y", pt.exp(a + first_is_zero[GROUP] + sums_to_zero[OTHER]), observed=COUNTS)


@case("u", "k")
def einsum_and_diagonal():
    k, u = pm.HalfNormal("k", shape=4), pm.Normal("u", shape=(4, 2))
    scaled = pt.diag(k) @ u
    pm.Poisson("y", pt.exp(pt.einsum("ij,ij->i", X, scaled[GROUP])), observed=COUNTS)


@case("a u", "s")
def logarithm_of_a_rate():
    s, a = pm.HalfNormal("s"), pm.Normal("a")
    rate = pm.Deterministic("rate", 2.0 * pt.exp(a + pm.Normal("u", 0, s, shape=4)))
    pm.Poisson("y", pt.exp(pt.log(rate[GROUP]) + 0.1 * TIME), observed=COUNTS)


@case("sub::u a", "sub::s")
def model_inside_a_model():
    with pm.Model(name="sub"):
        u = pm.Normal("u", 0, pm.HalfNormal("s"), shape=4)
    pm.Poisson("y", pt.exp(pm.Normal("a") + u[GROUP]), observed=COUNTS)


@case("z", "ell s")
def kronecker_factor():
    ell, s, z = pm.Gamma("ell", 2, 2), pm.HalfNormal("s"), pm.Normal("z", shape=N)
    first = pt.exp(-np.abs(np.subtract.outer(TIME[:4], TIME[:4])) / ell)
    K = pt.linalg.kron(first, 0.5 * np.eye(3) + 0.5)
    pm.Poisson("y", pt.exp(s * pt.linalg.cholesky(K) @ z), observed=COUNTS)
