"""`EllipticalSlice`: the latent f given theta."""

from __future__ import annotations

import numpy as np
import pymc as pm
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.step_methods.base import LatentGaussianState
from pymc_pseudomarginal.step_methods.latent_step import LatentStep
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice


@dataclass_state
class EllipticalSliceState(LatentGaussianState):
    """The step keeps nothing of its own between draws."""


class EllipticalSlice(LatentStep):
    """Elliptical slice sampling of the latent f of any model that `read_model` reads.

    It moves f alone. Give the hyper-parameters to another step method, or leave them
    to `pm.sample`, which takes NUTS; or put it behind `PseudoMarginalMH` for more
    moves of f per draw.

    Parameters
    ----------
    vars : variable or name, optional
        The latent. There is only one, so that it need not be named.
    moves : int
        Moves per draw.
    model : pymc.Model, optional
        Taken from the context if not given.

    Notes
    -----
    Sample statistics: ``slice_evaluations``, evaluations of the likelihood per draw, and
    ``slice_cubic_operations``, one where theta has changed and K was factorised.

    References
    ----------
    Murray, Adams & MacKay (2010), Elliptical slice sampling, AISTATS.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=[pmpm.EllipticalSlice(moves=5), pm.Slice([ls, sigma])])
    """

    name = "elliptical_slice"
    prefix = "slice"
    stats_dtypes_shapes = {
        "slice_evaluations": (np.int64, []),
        "slice_cubic_operations": (np.int64, []),
    }
    _state_class = EllipticalSliceState

    def __init__(
        self,
        vars=None,
        *,
        moves: int = 1,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        super().__init__(vars, model, rng, moves=moves)

    def _move(self, f, prior, likelihood):
        f, info = elliptical_slice(self.rng, f, prior, likelihood, moves=self.moves)
        return f, {"slice_evaluations": info.evaluations}

    def _idle_statistics(self):
        return {"slice_evaluations": 0, "slice_cubic_operations": 0}

    def __repr__(self):
        """The variable and the number of moves."""
        return f"EllipticalSlice({self.latent_model.latent.name}, moves={self.moves})"
