"""`predict`: probabilities at new inputs, with theta and f integrated out."""

from __future__ import annotations

import numpy as np
import pymc as pm
import xarray as xr

from pymc_pseudomarginal.model import LatentGaussianModel
from pymc_pseudomarginal.prediction.inputs import checked_inputs
from pymc_pseudomarginal.prediction.integration import (
    Condition,
    Integration,
    as_dataset,
    read_process,
)
from pymc_pseudomarginal.prediction.posterior import Draws, add_predictions, posterior_draws


def predict(
    idata: object,
    gp: pm.gp.Latent,
    Xnew: object,
    *,
    model: pm.Model | None = None,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Predict at new inputs for every posterior draw of (theta, f).

    The mean of `p` over the draws is the Monte Carlo estimate of p(y*|y) in which the
    hyper-parameters and the latent are both integrated out. Draws with the same theta
    (rejected proposals) share one factorisation.

    Parameters
    ----------
    idata : InferenceData or DataTree
        What `pm.sample` returned. The result is added to it as the group
        ``predictions``, in place of an earlier one.
    gp : pymc.gp.Latent or pymc.gp.LatentKron
        The process whose ``prior`` is the latent of the model.
    Xnew : array, DataFrame or DataArray, shape (m, d)
        New inputs, in the columns of the old ones. Labels of the rows of a DataFrame or
        DataArray become the coordinate ``point``.
    model : pymc.Model, optional
        Taken from the context if not given.
    random_seed : int or Generator, optional
        For predictive draws.
    progressbar : bool

    Returns
    -------
    xarray.Dataset
        With dimensions (chain, draw, point):

        ``f_mean``, ``f_var``
            Moments of the latent at the new points given theta and f of the draw.
        ``p``
            For binary responses, the probability of 1 given that draw, the latent at the
            new point integrated out: Phi(f_mean / sqrt(1 + f_var)) for probit, by
            quadrature otherwise. For categorical responses, the probabilities of all
            categories along a last dimension ``category``.
        ``mean``
            For other responses, their mean.
        the name of the observed variable
            With ``mean``, if the data differ in nothing but f: a draw of the response.
            Points are drawn independently of each other given theta and f, as every
            point's own distribution needs it.

        Where the model does not say what is observed at a new input (an exposure or
        covariates that differ between data, a potential, several observed variables) the
        latent moments are all there is, and a warning says why.

    Notes
    -----
    Successive draws are alike: ``idata.sel(draw=slice(None, None, 10))`` predicts from
    every tenth at a tenth of the cost.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian
    processes, section 2.2.

    Examples
    --------
    >>> predictions = pmpm.predict(idata, gp, Xnew, model=model)  # doctest: +SKIP
    >>> predictions["p"].mean(("chain", "draw"))  # doctest: +SKIP
    """
    read, inputs = read_process(pm.modelcontext(model), gp)
    X, points = checked_inputs(Xnew, inputs.n_columns)
    draws = posterior_draws(idata, read, latent=True)
    integration = Integration.prepare(read, inputs, draws.theta[0])
    rng = np.random.default_rng(random_seed)
    results = integration.run(X, draws, given_draws(read, draws), rng, progressbar)
    predictions = as_dataset(results, draws.coords, points)
    add_predictions(idata, predictions)
    return predictions


def given_draws(model: LatentGaussianModel, draws: Draws) -> Condition:
    """The latent at new points given the draws of f."""

    def condition(theta, rows):
        prior = model.prior(theta)
        return lambda new: new.given_latent(prior, draws.f[rows])

    return condition
