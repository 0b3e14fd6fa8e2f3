"""`predict_approximately`: f integrated out by the Laplace or EP Gaussian instead."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pymc as pm
import xarray as xr

from pymc_pseudomarginal.arguments import check_approximation
from pymc_pseudomarginal.numerics import APPROXIMATIONS
from pymc_pseudomarginal.prediction.inputs import checked_inputs
from pymc_pseudomarginal.prediction.integration import Integration, as_dataset, read_process
from pymc_pseudomarginal.prediction.posterior import Draws, posterior_draws


def predict_approximately(
    theta: object,
    gp: pm.gp.Latent,
    Xnew: object,
    *,
    approximation: str = "ep",
    model: pm.Model | None = None,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Predict at new inputs with a Gaussian approximation in place of p(f|y, theta).

    The classifiers that Filippone & Girolami compare with: at one theta (type-II maximum
    likelihood, "EP ML") or at posterior draws of theta ("MCMC EP").

    Parameters
    ----------
    theta : mapping, MarginalFit, InferenceData or DataTree
        The hyper-parameters by name on their natural scale, e.g.
        ``{"ls": 0.3, "sigma": 2.0}``; a fit, whose estimates are taken; or inference data with
        draws of them.
    gp, Xnew, model, random_seed, progressbar
        As in `predict`.
    approximation : {"ep", "laplace"}

    Returns
    -------
    xarray.Dataset
        The variables of `predict`, where ``f_mean`` and ``f_var`` are now the moments of
        the latent with f integrated out. Dimensions (point,) for one theta, and
        (chain, draw, point) for draws. It is not added to the inference data.

    References
    ----------
    Filippone & Girolami (2014), section 2.1 and 5.2.
    """
    approximate = APPROXIMATIONS[check_approximation(approximation)]
    read, inputs = read_process(pm.modelcontext(model), gp)
    X, points = checked_inputs(Xnew, inputs.n_columns)
    theta = getattr(theta, "point", theta)  # of a fit
    if _is_point(theta):
        at = read.theta_from_natural(theta)[None]
        draws = Draws(at, np.zeros(1, dtype=int), None, {})
    else:
        draws = posterior_draws(theta, read, latent=False)
    likelihood = read.bind_data()

    def condition(value, _):
        q = approximate(read.prior(value), likelihood(value))
        return lambda new: new.given_approximation(q)

    integration = Integration.prepare(read, inputs, draws.theta[0])
    rng = np.random.default_rng(random_seed)
    results = integration.run(X, draws, condition, rng, progressbar)
    return as_dataset(results, draws.coords, points)


def _is_point(theta) -> bool:
    """Whether theta is a mapping of numbers; inference data are mappings of groups."""
    return isinstance(theta, Mapping) and not any(
        isinstance(value, xr.Dataset | xr.DataTree) for value in theta.values()
    )
