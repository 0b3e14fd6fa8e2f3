"""Small PyMC models that the tests share. Every function returns a new `pm.Model`."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.exceptions import ImputationWarning

N = 8


def inputs(n=N, d=1):
    """X, shape (n, d), the same for the same n and d."""
    return np.random.default_rng(n).uniform(-1.0, 1.0, (n, d))


def labels(n=N):
    """0/1 labels with both values among them, shape (n,)."""
    return (inputs(n)[:, 0] + 0.3 * np.cos(7.0 * np.arange(n)) > 0).astype(int)


def observe_probit(f, y):
    """Add y ~ Bernoulli(Phi(f)) to the model in context."""
    return pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)


def add_gp(covariance, X, *, mean=None, reparameterize=True, **kwargs):
    """Add f, a GP at X, to the model in context."""
    gp = pm.gp.Latent(mean_func=mean or pm.gp.mean.Zero(), cov_func=covariance)
    return gp.prior("f", X=X, reparameterize=reparameterize, **kwargs)


def gp_probit(n=N, d=1, *, ard=False, reparameterize=True):
    """The GP probit model: ls (one, or d of them), sigma, f, y."""
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0, shape=d if ard else ())
        sigma = pm.Gamma("sigma", 2.0, 1.0)
        covariance = sigma * pm.gp.cov.ExpQuad(d, ls=ls)
        observe_probit(add_gp(covariance, inputs(n, d), reparameterize=reparameterize), labels(n))
    return model


def mvnormal_probit(form="cov", n=N):
    """The same prior, written as pm.MvNormal with cov= or chol=."""
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        sigma = pm.Gamma("sigma", 2.0, 1.0)
        K = sigma * pm.gp.cov.ExpQuad(1, ls=ls)(inputs(n)) + 1e-6 * np.eye(n)
        parameter = {form: pt.linalg.cholesky(K) if form == "chol" else K}
        observe_probit(pm.MvNormal("f", mu=np.zeros(n), **parameter), labels(n))
    return model


def kernel_probit(kernel):
    """A kernel made by a function of the lengthscale, a free variable."""
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        observe_probit(add_gp(kernel(ls), inputs()), labels())
    return model


def constant_mean_probit():
    """A mean function with a free constant."""
    with pm.Model() as model:
        mean = pm.gp.mean.Constant(pm.Normal("c", 0.0, 1.0))
        observe_probit(add_gp(pm.gp.cov.ExpQuad(1, ls=0.5), inputs(), mean=mean), labels())
    return model


def linear_mean_probit(*, multivariate=False, reparameterize=True):
    """A mean function with free coefficients, independent or a pm.MvNormal."""
    with pm.Model() as model:
        if multivariate:
            b = pm.MvNormal("b", mu=np.zeros(2), cov=np.array([[1.0, 0.5], [0.5, 2.0]]))
        else:
            b = pm.Normal("b", 0.0, 1.0, shape=2)
        intercept = pm.Normal("intercept", 0.0, 1.0)
        ls = pm.Gamma("ls", 2.0, 2.0)
        mean = pm.gp.mean.Linear(coeffs=b, intercept=intercept)
        f = add_gp(
            pm.gp.cov.ExpQuad(2, ls=ls), inputs(d=2), mean=mean, reparameterize=reparameterize
        )
        observe_probit(f, labels())
    return model


def many_priors_probit():
    """Hyper-parameters with five priors, one of them without its transform."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 2.0)
        ls = pm.LogNormal("ls", 0.0, 0.5)
        rough = pm.Uniform("rough", 0.1, 2.0, default_transform=None)
        share = pm.Beta("share", 2.0, 3.0)
        level = pm.TruncatedNormal("level", mu=0.0, sigma=1.0, lower=-0.5, upper=2.0)
        smooth_part = share * pm.gp.cov.ExpQuad(1, ls=ls)
        rough_part = (1.0 - share) * pm.gp.cov.Matern52(1, ls=rough)
        covariance = scale**2 * (smooth_part + rough_part)
        observe_probit(add_gp(covariance, inputs(), mean=pm.gp.mean.Constant(level)), labels())
    return model


def dirichlet_probit():
    """Weights on a simplex: three numbers, of which PyMC stores two."""
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.array([1.0, 2.0, 3.0]))
        parts = [w[i] * pm.gp.cov.ExpQuad(1, ls=ls) for i, ls in enumerate([0.25, 0.5, 2.0])]
        observe_probit(add_gp(parts[0] + parts[1] + parts[2], inputs()), labels())
    return model


def data_probit(n=N):
    """Inputs and labels in pm.Data, named dimensions, and p as a deterministic."""
    with pm.Model(coords={"observation": np.arange(n), "feature": ["a", "b"]}) as model:
        X = pm.Data("X", inputs(n, 2), dims=("observation", "feature"))
        observed = pm.Data("labels", labels(n), dims="observation")
        ls = pm.Gamma("ls", 2.0, 2.0, dims="feature")
        f = add_gp(pm.gp.cov.ExpQuad(2, ls=ls), X, dims="observation")
        p = pm.Deterministic("p", pm.math.invprobit(f), dims="observation")
        pm.Bernoulli("y", p=p, observed=observed, dims="observation")
    return model


def hierarchical_probit():
    """Lengthscales with a common prior that has hyper-parameters of its own."""
    with pm.Model() as model:
        centre = pm.Normal("centre", -0.5, 0.5)
        spread = pm.HalfNormal("spread", 0.5)
        ls = pm.LogNormal("ls", centre, spread, shape=2)
        observe_probit(add_gp(pm.gp.cov.ExpQuad(2, ls=ls), inputs(d=2)), labels())
    return model


def side_data_probit():
    """An observed variable and a potential that involve the hyper-parameters, not f."""
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        sigma = pm.Gamma("sigma", 2.0, 1.0)
        pm.Normal("measured", mu=ls, sigma=0.1, observed=np.array([0.5, 0.6]))
        pm.Potential("penalty", -(sigma**2))
        observe_probit(add_gp(sigma * pm.gp.cov.ExpQuad(1, ls=ls), inputs()), labels())
    return model


def fixed_prior_probit():
    """No hyper-parameter at all."""
    with pm.Model() as model:
        observe_probit(add_gp(pm.gp.cov.ExpQuad(1, ls=0.5), inputs()), labels())
    return model


def handwritten_probit():
    """f = chol(K) z by hand, with a zero mean."""
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        z = pm.Normal("z", 0.0, 1.0, shape=N)
        K = pm.gp.cov.ExpQuad(1, ls=ls)(inputs()) + 1e-6 * np.eye(N)
        observe_probit(pm.Deterministic("f", pt.linalg.cholesky(K) @ z), labels())
    return model


def two_gps_probit():
    """The sum of two Gaussian processes."""
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        smooth = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, ls=2.0 * ls))
        rough = pm.gp.Latent(cov_func=0.5 * pm.gp.cov.Matern52(1, ls=ls))
        observe_probit((smooth + rough).prior("f", X=inputs()), labels())
    return model


def coregion_probit():
    """Two correlated outputs: X with an index of the output in its second column."""
    X = np.column_stack([inputs(), np.arange(N) % 2])
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        w = pm.Normal("w", 0.0, 1.0, shape=(2, 1), initval=np.array([[0.5], [1.0]]))
        outputs = pm.gp.cov.Coregion(2, W=w, kappa=np.array([0.3, 0.6]), active_dims=[1])
        observe_probit(add_gp(outputs * pm.gp.cov.ExpQuad(2, ls=ls, active_dims=[0]), X), labels())
    return model


def precision_probit():
    """pm.MvNormal by its precision matrix."""
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1.0)
        tau = (np.eye(N) * 2.0 - np.eye(N, k=1) - np.eye(N, k=-1)) / s**2
        observe_probit(pm.MvNormal("f", np.full(N, 0.3), tau=tau), labels())
    return model


def scaled_root_probit(*, signed=False):
    """f = mu + s L z by hand; with `signed`, s may be negative."""
    with pm.Model() as model:
        s = pm.Normal("s", 0.0, 1.0, initval=-0.7) if signed else pm.HalfNormal("s", 1.0)
        mu = pm.Normal("mu", 0.0, 1.0)
        z = pm.Normal("z", 0.0, 1.0, shape=N)
        L = np.linalg.cholesky(np.exp(-np.abs(inputs() - inputs().T)))
        observe_probit(pm.Deterministic("f", mu + s * L @ z), labels())
    return model


def random_walk_probit():
    """f = mu + the running sum of s z: affine in z, but no matrix is in the graph."""
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1.0)
        z = pm.Normal("z", 0.0, 1.0, shape=N)
        observe_probit(pm.Deterministic("f", 0.2 + pt.cumsum(s * z)), labels())
    return model


def kronecker_probit():
    """A product of covariances on a grid, by `pm.gp.LatentKron`."""
    Xs = [np.array([[0.0], [1.0]]), np.linspace(0.0, 2.0, N // 2)[:, None]]
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2.0, 2.0)
        covariances = [pm.gp.cov.ExpQuad(1, ls=3.0 * ls), pm.gp.cov.Matern52(1, ls=ls)]
        observe_probit(pm.gp.LatentKron(cov_funcs=covariances).prior("f", Xs=Xs), labels())
    return model


def effects_probit(*, whitened=False):
    """Independent effects, centred or not."""
    with pm.Model() as model:
        mu, s = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("s", 1.0)
        if whitened:
            f = pm.Deterministic("f", mu + s * pm.Normal("z", 0.0, 1.0, shape=N))
        else:
            f = pm.Normal("f", mu, s, shape=N)
        observe_probit(f, labels())
    return model


def masked_counts(n=N):
    """Negative binomial counts with missing ones, a free dispersion, and f = mu + s L z."""
    y = np.ma.masked_array(np.arange(n) % 4, np.arange(n) % 3 == 1)
    with pm.Model() as model:
        s, mu = pm.HalfNormal("s", 1.0), pm.Normal("mu", 0.0, 1.0)
        alpha = pm.Gamma("alpha", 2.0, 1.0)
        z = pm.Normal("z", 0.0, 1.0, shape=n)
        L = np.linalg.cholesky(np.exp(-np.abs(inputs(n) - inputs(n).T)))
        f = pm.Deterministic("f", mu + s * L @ z)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImputationWarning)
            pm.NegativeBinomial("y", mu=pm.math.exp(f), alpha=alpha, observed=y)
    return model
