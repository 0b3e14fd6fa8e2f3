"""What is observed: families, links, several predictors a term, potentials, missing data."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from model_shelf import BINARY, COUNTS, GROUP, POSITIVE, REAL, SHARE, N, X, case

CUTS = {"transform": pm.distributions.transforms.ordered, "initval": [-1.0, 0.0, 1.0]}
TABLE = np.random.default_rng(1).multinomial(9, [0.2, 0.3, 0.2, 0.2, 0.1], N)


def mixed_effects():
    """The usual predictor: Normal a, b and u, and the scale of u."""
    a, b, su = pm.Normal("a"), pm.Normal("b", shape=2), pm.HalfNormal("su")
    return a + X @ b + pm.Normal("u", 0, su, shape=4)[GROUP]


@case("a b u", "su kappa")
def beta_regression():
    mean, kappa = pm.math.invlogit(mixed_effects()), pm.Gamma("kappa", 2, 0.1)
    pm.Beta("y", alpha=mean * kappa, beta=(1 - mean) * kappa, observed=SHARE)


@case("a b u", "su t")
def quantile_regression():
    eta, t = mixed_effects(), pm.HalfNormal("t")
    pm.AsymmetricLaplace("y", mu=eta, b=t, q=0.8, observed=REAL)


@case("a b u", "su k")
def censored_survival():
    eta, k = mixed_effects(), pm.HalfNormal("k")
    upper = np.where(BINARY, np.inf, POSITIVE)
    dist = pm.Weibull.dist(k + 0.1, pt.exp(eta))
    pm.Censored("y", dist, lower=None, upper=upper, observed=POSITIVE)


@case("b u", "cut s")
def ordered_categories():
    b, s = pm.Normal("b", shape=2), pm.HalfNormal("s")
    u, cut = pm.Normal("u", 0, s, shape=4), pm.Normal("cut", 0, 1.5, shape=3, **CUTS)
    pm.OrderedLogistic("y", eta=X @ b + u[GROUP], cutpoints=cut, observed=COUNTS % 4)


@case("b g", predictors=2)
def hurdle_with_two_predictors():
    b, g = pm.Normal("b", shape=2), pm.Normal("g", shape=2)
    pm.HurdlePoisson("y", psi=pm.math.invlogit(X @ g), mu=pt.exp(X @ b), observed=COUNTS)


@case("a c u v", "su sv", predictors=2)
def location_and_scale():
    a, c, su, sv = pm.Normal("a"), pm.Normal("c"), pm.HalfNormal("su"), pm.HalfNormal("sv")
    u, v = pm.Normal("u", 0, su, shape=4), pm.Normal("v", 0, sv, shape=4)
    pm.Normal("y", a + u[GROUP], pt.exp(c + v[GROUP]), observed=REAL)


@case("b c", predictors=3)
def softmax_of_three():
    b, c = pm.Normal("b", shape=(2, 3)), pm.Normal("c", shape=3)
    pm.Categorical("y", p=pm.math.softmax(c + X @ b, axis=1), observed=COUNTS % 3)


@case("b", "total", predictors=5)
def dirichlet_multinomial_of_five():
    b, total = pm.Normal("b", shape=(2, 5)), pm.LogNormal("total", 1, 1)
    weights = total * pm.math.softmax(X @ b, axis=-1)
    pm.DirichletMultinomial("y", n=9, a=weights, observed=TABLE)


@case("b", predictors=5)
def multinomial_of_five():
    rates = pt.exp(X @ pm.Normal("b", shape=(2, 5)))
    p = rates / rates.sum(axis=1, keepdims=True)
    pm.Multinomial("y", n=9, p=p, observed=TABLE)


@case("b1 b2", "w s", predictors=2)
def mixture_of_regressions():
    b1, b2 = pm.Normal("b1", shape=2), pm.Normal("b2", shape=2)
    w, s = pm.Beta("w", 2, 2), pm.HalfNormal("s")
    parts = [pm.Normal.dist(X @ b1, s), pm.Normal.dist(X @ b2, s)]
    pm.Mixture("y", w=pt.stack([w, 1 - w]), comp_dists=parts, observed=REAL)


@case("a b", predictors=2)
def occupancy():
    a, b = pm.Normal("a", shape=2), pm.Normal("b", shape=2)
    psi, p = pm.math.invlogit(X @ a), pm.math.invlogit(X @ b)
    seen = pt.log(psi) + pm.logp(pm.Binomial.dist(6, p), COUNTS)
    pm.Potential("y", pt.switch(COUNTS > 0, seen, pt.logaddexp(seen, pt.log1p(-psi))))


@case("h b", "s")
def piecewise_hazard():
    s, b = pm.HalfNormal("s"), pm.Normal("b")
    h = pm.GaussianRandomWalk("h", sigma=s, init_dist=pm.Normal.dist(0, 1), shape=3)
    exposure = np.clip(POSITIVE[:, None] - [0.0, 0.5, 1.0], 0.0, 0.5)
    died = (exposure > 0) & (exposure < 0.5)
    log_rate = h + b * X[:, :1]
    pm.Potential("y", died * log_rate - exposure * pt.exp(log_rate))


@case("b", "s")
def likelihood_by_hand():
    b, s = pm.Normal("b", shape=2), pm.HalfNormal("s")
    pm.Potential("y", -N * pt.log(s) - 0.5 / s**2 * pt.sum((REAL - X @ b) ** 2))


@case("b")
def weighted_likelihood_by_hand():
    eta, weights = X @ pm.Normal("b", shape=2), np.linspace(0.5, 1.5, N)
    pm.Potential("y", 0.5 * pt.dot(weights, COUNTS * eta - pt.exp(eta)) - pt.mean(0.1 * eta**4))


@case("b", "nu")
def density_of_ones_own():
    b, nu = pm.Normal("b", shape=2), pm.Exponential("nu", 1)

    def logp(value, eta, scale):
        return -pt.log(scale) - pt.log(pt.cosh((value - eta) / scale))

    pm.CustomDist("y", X @ b, nu, logp=logp, observed=REAL)


@case("b", "chol")
def correlated_responses():
    b = pm.Normal("b", shape=(2, 2))
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1, shape=2))
    pm.MvNormal("y", mu=X @ b, chol=chol, observed=X[::-1])


@case("b", "chol", predictors=2)
def correlated_responses_with_heavy_tails():
    b = pm.Normal("b", shape=(2, 2))
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1, shape=2))
    pm.MvStudentT("y", nu=5, mu=X @ b, chol=chol, observed=X[::-1])


@case("a", "s", unobserved="y_unobserved later")
def missing_responses():
    a, s = pm.Normal("a", shape=4), pm.HalfNormal("s")
    y = np.ma.masked_array(REAL, mask=np.arange(N) % 5 == 0)
    pm.Normal("y", a[GROUP], s, observed=y)
    pm.Normal("later", a[:2] + 10.0, 0.01, shape=2)


@case("a nu x_unobserved", "b sx s")
def missing_covariate():
    a, b, nu, sx, s = pm.Normal("a"), pm.Normal("b"), pm.Normal("nu"), *_scales("sx", "s")
    x = pm.Normal("x", nu, sx, observed=np.ma.masked_array(X[:, 0], mask=np.arange(N) % 4 == 0))
    pm.Normal("y", a + b * x, s, observed=REAL)


@case("a u", "su s slope")
def two_likelihoods_share_an_effect():
    su, s, slope, a = *_scales("su", "s"), pm.Normal("slope"), pm.Normal("a", shape=2)
    u = pm.Normal("u", 0, su, shape=4)
    pm.Normal("y", a[0] + u[GROUP], s, observed=REAL)
    pm.Bernoulli("event", logit_p=a[1] + slope * u, observed=BINARY[:4])


@case("mu u", "spread s scale")
def variable_of_theta_below_x():
    spread, s, mu = pm.Exponential("spread", 1), pm.HalfNormal("s"), pm.Normal("mu")
    scale = pm.LogNormal("scale", mu, 0.5, shape=4)
    u = pm.Normal("u", 0, spread, shape=4)
    pm.Normal("y", u[GROUP] * 1.0, s + scale[GROUP], observed=REAL)


def _scales(*names):
    return tuple(pm.HalfNormal(name) for name in names)
