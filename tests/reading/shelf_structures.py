"""Gaussian structures: hierarchies, walks, fields, processes, splines."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from model_shelf import COUNTS, GROUP, OTHER, REAL, RING, TIME, N, X, case


@case("a b", "s")
def regression():
    a, b, s = pm.Normal("a"), pm.Normal("b", 0, 2, shape=2), pm.HalfNormal("s")
    pm.Normal("y", a + X @ b, s, observed=REAL)


@case("top mid low", "s1 s2 s")
def three_levels():
    top, s1, s2, s = pm.Normal("top", 0, 3), *(pm.HalfNormal(n) for n in ("s1", "s2", "s"))
    mid = pm.Normal("mid", top, s1, shape=2)
    low = pm.Normal("low", mid[np.arange(4) % 2], s2, shape=4)
    pm.Normal("y", low[GROUP], s, observed=REAL)


@case("m z", "s t")
def non_centred():
    m, s, t = pm.Normal("m"), pm.HalfNormal("s"), pm.HalfNormal("t")
    z = pm.Normal("z", shape=4)
    effect = pm.Deterministic("effect", m + s * z)
    pm.StudentT("y", nu=4, mu=effect[GROUP], sigma=t, observed=REAL)


@case("mu ab", "chol s")
def correlated_slopes_centred():
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0, shape=2))
    mu, s = pm.Normal("mu", 0, 2, shape=2), pm.Exponential("s", 1)
    ab = pm.MvNormal("ab", mu=mu, chol=chol, shape=(4, 2))
    pm.Normal("y", ab[GROUP, 0] + ab[GROUP, 1] * X[:, 0], s, observed=REAL)


@case("u", "k s")
def precision_matrix_in_batches():
    k, s = pm.Gamma("k", 2, 2), pm.HalfNormal("s")
    P = np.array([[2.0, -0.5], [-0.5, 2.0]])
    u = pm.MvNormal("u", mu=np.ones(2), tau=k * P, shape=(4, 2))
    pm.Normal("y", (u[GROUP] * X).sum(axis=-1), s, observed=REAL)


@case("z a", "tau lam c2")
def regularised_horseshoe():
    tau, lam = pm.HalfStudentT("tau", 2, 0.1), pm.HalfStudentT("lam", 5, shape=2)
    c2, z, a = pm.InverseGamma("c2", 1, 1), pm.Normal("z", shape=2), pm.Normal("a")
    b = z * tau * lam * pt.sqrt(c2 / (c2 + tau**2 * lam**2))
    pm.Bernoulli("y", logit_p=a + X @ b, observed=COUNTS > 2)


@case("drift walk", "s")
def walk_with_drift():
    s, drift = pm.Exponential("s", 5), pm.Normal("drift", 0, 0.1)
    start = pm.Normal.dist(0, 1)
    walk = pm.GaussianRandomWalk("walk", mu=drift, sigma=s, init_dist=start, steps=N - 1)
    pm.Poisson("y", pt.exp(walk), observed=COUNTS)


@case("walk", "chol")
def walk_in_two_dimensions():
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0, shape=2))
    start = pm.MvNormal.dist(np.zeros(2), np.eye(2))
    walk = pm.MvGaussianRandomWalk(
        "walk", mu=np.zeros(2), chol=chol, init_dist=start, shape=(N // 2, 2)
    )
    pm.Poisson("y", pt.exp(walk), observed=COUNTS.reshape(N // 2, 2))


@case("mean h", "phi s")
def stochastic_volatility():
    mean, phi, s = pm.Normal("mean", -1, 1), pm.Beta("phi", 20, 1.5), pm.HalfNormal("s")
    rho, start = pt.stack([mean * (1 - phi), phi]), pm.Normal.dist(0, 1)
    h = pm.AR("h", rho=rho, sigma=s, constant=True, init_dist=start, steps=N - 1)
    pm.Normal("y", 0, pt.exp(h / 2), observed=REAL)


@case("slope level", "s1 s2 t")
def local_linear_trend():
    s1, s2, t = (pm.HalfNormal(n) for n in ("s1", "s2", "t"))
    wide = pm.Normal.dist(0, 5)
    slope = pm.GaussianRandomWalk("slope", sigma=s1, init_dist=wide, shape=N)
    level = pm.GaussianRandomWalk("level", mu=slope[:-1], sigma=s2, init_dist=wide, shape=N)
    pm.Normal("y", level, t, observed=REAL)


@case("u", "tau")
def second_differences_as_potential():
    tau, u = pm.Gamma("tau", 2, 0.1), pm.Flat("u", shape=N)
    pm.Potential("rough", 0.5 * (N - 2) * pt.log(tau) - 0.5 * tau * (pt.diff(u, n=2) ** 2).sum())
    pm.Poisson("y", pt.exp(u), observed=COUNTS)


@case("b", "knot tau")
def penalty_that_is_off_at_the_start():
    knot, tau = pm.Uniform("knot", -6, -2), pm.HalfNormal("tau")
    b = pm.Normal("b", 0, tau, shape=4)
    pm.Potential("link", -0.5 * pt.maximum(knot + 3.5, 0) * ((b[1:] - b[:-1]) ** 2).sum())
    pm.Poisson("y", pt.exp(b[GROUP]), observed=COUNTS)


@case("a field", "tau alpha")
def conditional_autoregression():
    a, tau, alpha = pm.Normal("a"), pm.Gamma("tau", 2, 2), pm.Beta("alpha", 2, 2)
    field = pm.CAR("field", mu=np.zeros(6), W=RING, alpha=alpha, tau=tau)
    pm.Poisson("y", pt.exp(a + field), observed=COUNTS[:6])


@case("a smooth rough", "sigma rho")
def scaled_field_and_noise():
    a, sigma, rho = pm.Normal("a"), pm.HalfNormal("sigma"), pm.Beta("rho", 0.5, 0.5)
    smooth, rough = pm.ICAR("smooth", W=RING), pm.Normal("rough", shape=6)
    mixed = pt.sqrt(1 - rho) * rough + pt.sqrt(rho / 0.7) * smooth
    pm.Poisson("y", pt.exp(a + sigma * mixed), observed=COUNTS[:6])


@case("a g gh", "s")
def sums_to_zero():
    a, s = pm.Normal("a"), pm.HalfNormal("s")
    g = pm.ZeroSumNormal("g", sigma=s, shape=4)
    gh = pm.ZeroSumNormal("gh", sigma=0.5, n_zerosum_axes=2, shape=(4, 3))
    pm.Normal("y", a + g[GROUP] + gh[GROUP, OTHER], 0.7, observed=REAL)


@case("f_rotated_", "ell eta s")
def gaussian_process():
    ell, eta, s = pm.InverseGamma("ell", 5, 5), pm.HalfNormal("eta"), pm.HalfNormal("s")
    gp = pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.Matern52(1, ell))
    pm.StudentT("y", nu=4, mu=gp.prior("f", X=TIME[:, None]), sigma=s, observed=REAL)


@case("c f", "l1 l2", unobserved="fnew")
def sum_of_processes_with_a_mean():
    l1, l2, c = pm.Gamma("l1", 2, 2), pm.Gamma("l2", 2, 2), pm.Normal("c", shape=1)
    first = pm.gp.Latent(mean_func=pm.gp.mean.Linear(coeffs=c), cov_func=pm.gp.cov.Matern52(1, l1))
    both = first + pm.gp.Latent(cov_func=pm.gp.cov.Matern32(1, l2))
    f = both.prior("f", X=TIME[:, None], reparameterize=False)
    pm.Poisson("y", pt.exp(f), observed=COUNTS)
    both.conditional("fnew", np.array([[2.0], [3.0]]))


@case("f_rotated_", "l1 l2 s")
def process_on_a_grid():
    l1, l2, s = pm.Gamma("l1", 2, 1), pm.Gamma("l2", 2, 1), pm.HalfNormal("s")
    gp = pm.gp.LatentKron(cov_funcs=[pm.gp.cov.Matern32(1, l1), pm.gp.cov.Matern32(1, l2)])
    f = gp.prior("f", Xs=[TIME[:4, None], TIME[:3, None]])
    pm.Poisson("y", pt.exp(s * f), observed=COUNTS)


@case("a beta", "ell eta s")
def basis_functions_of_a_process():
    ell, eta, s = pm.InverseGamma("ell", 5, 5), pm.HalfNormal("eta"), pm.HalfNormal("s")
    gp = pm.gp.HSGP(m=[5], c=1.5, cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ell))
    phi, root = gp.prior_linearized(X=pm.Data("at", TIME[:, None]))
    a, beta = pm.Normal("a"), pm.Normal("beta", size=gp.n_basis_vectors)
    pm.Normal("y", a + phi @ (beta * root), s, observed=REAL)


@case("v", "ell eta s")
def inducing_points():
    Z, T = np.linspace(0, 1, 4)[:, None], TIME[:, None]
    ell, eta, s = pm.InverseGamma("ell", 5, 5), pm.HalfNormal("eta"), pm.HalfNormal("s")
    k, v = eta**2 * pm.gp.cov.ExpQuad(1, ell), pm.Normal("v", shape=4)
    L = pt.linalg.cholesky(k(Z) + 1e-6 * pt.eye(4))
    pm.Normal("y", pt.linalg.solve_triangular(L, k(Z, T), lower=True).T @ v, s, observed=REAL)


@case("first steps", "lam")
def penalised_spline():
    basis = np.maximum(0, 1 - np.abs(np.subtract.outer(TIME, np.linspace(0, 1, 5)) * 4))
    lam, first = pm.HalfNormal("lam"), pm.Normal("first", 0, 2)
    steps = pm.Normal("steps", 0, lam, shape=4)
    b = pt.concatenate([first[None], first + pt.cumsum(steps)])
    pm.Poisson("y", pt.exp(pt.dot(basis, b)), observed=COUNTS)
