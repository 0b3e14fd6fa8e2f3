"""`PseudoMarginal`: the pseudo-marginal step method that suits a model."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.step_methods.base import named_variables
from pymc_pseudomarginal.step_methods.compat import log
from pymc_pseudomarginal.step_methods.exploring_step import FEW
from pymc_pseudomarginal.step_methods.pseudo_marginal_hmc import PseudoMarginalHMC
from pymc_pseudomarginal.step_methods.pseudo_marginal_mh import PseudoMarginalMH


def PseudoMarginal(
    vars=None, *, latent_moves: int = 1, model: pm.Model | None = None
) -> PseudoMarginalMH | PseudoMarginalHMC:
    """The pseudo-marginal step method that suits a model, with nothing to choose by hand.

    Up to five hyper-parameters are moved by `PseudoMarginalMH`, whose fitted proposals cross
    their posterior in one step, more by `PseudoMarginalHMC`. Both are exact for theta and f.
    What was picked is logged.

    Parameters
    ----------
    vars : list of variables or names, optional
        The hyper-parameters to move; None takes all free variables but the latent, which is
        always moved along.
    latent_moves : int
        Elliptical-slice moves of f per draw.
    model : pymc.Model, optional
        Taken from the context if not given.

    Returns
    -------
    PseudoMarginalMH or PseudoMarginalHMC

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.PseudoMarginal())
    """
    read = read_model(model)
    chosen = named_variables(vars, read)
    values = [
        read.model.rvs_to_values[rv]
        for rv in read.hyperparameters
        if chosen is None or rv in chosen
    ]
    count = sum(int(np.prod(read.shapes[value.name])) for value in values)
    kind = PseudoMarginalMH if count <= FEW else PseudoMarginalHMC
    log.info("PseudoMarginal: %s for %d hyper-parameters.", kind.__name__, count)
    return kind(vars, latent_moves=latent_moves, model=read.model)
