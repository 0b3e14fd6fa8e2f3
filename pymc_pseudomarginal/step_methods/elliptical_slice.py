"""`EllipticalSlice`: the latent f given theta."""

from __future__ import annotations

import numpy as np
import pymc as pm
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.arguments import check_at_least
from pymc_pseudomarginal.numerics import DensePrior
from pymc_pseudomarginal.step_methods.base import LatentGaussianStep, named_variables
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice


@dataclass_state
class EllipticalSliceState(StepMethodState):
    """The step keeps nothing between draws but its random generator."""


class EllipticalSlice(LatentGaussianStep):
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
    Sample statistics: ``slice_evaluations``, evaluations of the likelihood per draw.

    References
    ----------
    Murray, Adams & MacKay (2010), Elliptical slice sampling, AISTATS.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=[pmpm.EllipticalSlice(moves=5), pm.Slice([ls, sigma])])
    """

    name = "elliptical_slice"
    stats_dtypes_shapes = {"slice_evaluations": (np.int64, [])}
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
        super().__init__(model, rng)
        self.moves = check_at_least("moves", moves, 1)
        latent = self.latent_model.latent
        for variable in named_variables(vars, self.latent_model) or ():
            if variable is not latent.free_rv:
                raise ValueError(
                    f"EllipticalSlice moves the latent {latent.name!r}, not {variable.name!r}. "
                    "Give that variable to another step method."
                )
        self.vars = [self.latent_model.latent_value, *self.latent_model.unobserved.values]
        self._prior: DensePrior | None = None
        self._theta: np.ndarray | None = None

    def start_chain(self):
        """Forget the previous chain."""
        super().start_chain()
        self._theta = None

    def _step(self, point):
        model = self.latent_model
        theta = model.theta(point)
        if self._theta is None or not np.array_equal(theta, self._theta):
            self._prior, self._theta = model.prior(theta), theta
        prior = self._prior
        f, info = elliptical_slice(
            self.rng, model.f(point, prior), prior, self._likelihood(theta), moves=self.moves
        )
        updates = {model.latent_value.name: model.stored_latent(f, prior)}
        updates |= model.draw_unobserved(self.rng, theta, f)
        return updates, {"slice_evaluations": info.evaluations}

    def _idle_statistics(self):
        return {"slice_evaluations": 0}

    def __repr__(self):
        """The variable and the number of moves."""
        return f"EllipticalSlice({self.latent_model.latent.name}, moves={self.moves})"
