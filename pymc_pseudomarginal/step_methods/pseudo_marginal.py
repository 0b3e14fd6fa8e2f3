"""`PseudoMarginal`: the pseudo-marginal step method that suits a model."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.model import read_model as read_single_latent
from pymc_pseudomarginal.reading import LatentGaussianModel, read_model
from pymc_pseudomarginal.step_methods.base import named_variables
from pymc_pseudomarginal.step_methods.compat import log
from pymc_pseudomarginal.step_methods.exploring_step import FEW
from pymc_pseudomarginal.step_methods.pseudo_marginal_hmc import PseudoMarginalHMC
from pymc_pseudomarginal.step_methods.pseudo_marginal_mh import PseudoMarginalMH
from pymc_pseudomarginal.step_methods.pseudo_marginal_step import PseudoMarginalStep


def PseudoMarginal(
    vars=None, *, latent_moves: int = 1, model: pm.Model | LatentGaussianModel | None = None
) -> PseudoMarginalStep | PseudoMarginalMH | PseudoMarginalHMC:
    """The pseudo-marginal step method that suits a model, with nothing to choose by hand.

    `PseudoMarginalStep` takes every model that `read_model` reads: mixed models, fields, time
    series, splines, processes beside other effects. Where one Gaussian process with a dense
    covariance is all that is integrated out, up to five hyper-parameters are moved by
    `PseudoMarginalMH` and more by `PseudoMarginalHMC`. All are exact. What was picked is logged.

    Parameters
    ----------
    vars : list of variables or names, optional
        The hyper-parameters to move, for a single process; None takes all free variables.
    latent_moves : int
        Elliptical-slice moves of f per draw, for a single process.
    model : pymc.Model or LatentGaussianModel, optional
        What `read_model` returned is not read again. Taken from the context if not given.

    Returns
    -------
    PseudoMarginalStep, PseudoMarginalMH or PseudoMarginalHMC

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.PseudoMarginal())
    """
    read = model if isinstance(model, LatentGaussianModel) else read_model(model)
    if read.is_one_process:
        return _for_one_process(read.model, vars, latent_moves)
    if vars is not None or latent_moves != 1:
        raise ValueError(
            "vars= and latent_moves= are for models in which one Gaussian process is all that is "
            f"integrated out; here it is {', '.join(sorted(read.split()['latent']))}, which are "
            "moved together with all hyper-parameters. Leave them out."
        )
    return PseudoMarginalStep(read=read, model=read.model)


def _for_one_process(model: pm.Model, vars, latent_moves: int):
    read = read_single_latent(model)
    chosen = named_variables(vars, read)
    values = [
        read.model.rvs_to_values[rv]
        for rv in read.hyperparameters
        if chosen is None or rv in chosen
    ]
    count = sum(int(np.prod(read.shapes[value.name])) for value in values)
    kind = PseudoMarginalMH if count <= FEW else PseudoMarginalHMC
    log.info("PseudoMarginal: %s for %d hyper-parameters.", kind.__name__, count)
    return kind(vars, latent_moves=latent_moves, model=model)
