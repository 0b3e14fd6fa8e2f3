"""The posterior of theta and f equals that of a long NUTS run on the same PyMC model."""

import numpy as np
import pymc as pm
import pytest
from pymc.distributions.transforms import ordered
from stat_checks import assert_within, z_of_difference

import pymc_pseudomarginal as pmpm

N = 12
X = np.linspace(0.0, 3.0, N)[:, None]


def latent():
    eta = pm.HalfNormal("eta", 1.0)
    ls = pm.Gamma("ls", 3.0, 3.0)
    return pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.Matern52(1, ls=ls)).prior("f", X=X)


def poisson():
    """Counts with exposure and a free level."""
    exposure = np.linspace(0.5, 2.0, N)
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 1.0)
        rate = exposure * pm.math.exp(level + latent())
        pm.Poisson("y", rate, observed=np.array([3, 1, 4, 0, 2, 1, 7, 9, 5, 4, 2, 1]))
    return model


def logit():
    """Labels with a covariate."""
    covariate = np.cos(5.0 * np.arange(N))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0)
        labels = np.array([1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1])
        pm.Bernoulli("y", logit_p=latent() + beta * covariate, observed=labels)
    return model


def ordinal():
    """Grades, two on some latent values and none on others, with free cut-points."""
    index = np.array([0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10])
    grades = np.array([0, 1, 0, 1, 2, 1, 2, 2, 1, 0, 1, 0, 0])
    with pm.Model() as model:
        cutpoints = pm.Normal(
            "cutpoints", 0.0, 1.5, shape=2, transform=ordered, initval=np.array([-0.5, 0.5])
        )
        pm.OrderedProbit(
            "y", eta=latent()[index], cutpoints=cutpoints, observed=grades, compute_p=False
        )
    return model


def quantities(idata):
    """Means and second moments of theta and some of f, as chains of shape (chain, draw)."""
    posterior = idata["posterior"]
    chains = {"log eta": np.log(posterior["eta"].values), "log ls": np.log(posterior["ls"].values)}
    for name in {"level", "beta", "cutpoints"} & set(posterior.data_vars):
        values = posterior[name].values
        chains |= {f"{name}{i}": v for i, v in enumerate(np.moveaxis(np.atleast_3d(values), 2, 0))}
    f = posterior["f"].values
    chains |= {f"f{i}": f[..., i] for i in (0, 5, 11)}
    chains |= {f"{name}²": values**2 for name, values in chains.items()}
    return chains | {"f0 f1": f[..., 0] * f[..., 1], "f0 log eta": f[..., 0] * chains["log eta"]}


@pytest.mark.slow
@pytest.mark.parametrize("build", [poisson, logit, ordinal], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("default::RuntimeWarning")  # NUTS's own, where it diverges
def test_posterior_equals_that_of_nuts(build):
    common = {
        "chains": 2,
        "cores": 2,
        "random_seed": 8,
        "progressbar": False,
        "compute_convergence_checks": False,
    }
    with build():
        reference = pm.sample(3000, tune=1000, nuts_sampler="pymc", target_accept=0.95, **common)
        ours = pm.sample(4000, tune=800, step=pmpm.PseudoMarginalMH(), **common)
    expected, found = quantities(reference), quantities(ours)
    assert_within({name: z_of_difference(found[name], expected[name]) for name in expected})
