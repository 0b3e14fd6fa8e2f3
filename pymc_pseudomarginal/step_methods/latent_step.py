"""What the step methods share that move the latent alone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_at_least
from pymc_pseudomarginal.numerics import DensePrior
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.step_methods.base import LatentGaussianStep, named_variables


class LatentStep(LatentGaussianStep):
    """Base of the step methods for f given theta; a subclass implements `_move`."""

    prefix: ClassVar[str]
    """Of the names of the statistics."""

    def __init__(self, vars, model: pm.Model | None, rng, *, moves: int):
        super().__init__(model, rng)
        self.moves = check_at_least("moves", moves, 1)
        latent = self.latent_model.latent
        for variable in named_variables(vars, self.latent_model) or ():
            if variable is not latent.free_rv:
                raise ValueError(
                    f"{type(self).__name__} moves the latent {latent.name!r}, not "
                    f"{variable.name!r}. Give that variable to another step method."
                )
        self.vars = [self.latent_model.latent_value, *self.latent_model.unobserved.values]
        self._prior: DensePrior | None = None
        self._theta: np.ndarray | None = None

    def start_chain(self):
        """Forget the previous chain."""
        super().start_chain()
        self._theta = None

    def _move(
        self, f: np.ndarray, prior: DensePrior, likelihood: Likelihood
    ) -> tuple[np.ndarray, dict]:
        """The new f, and the statistics but the count of cubic operations."""
        raise NotImplementedError

    def _step(self, point):
        model = self.latent_model
        theta = model.theta(point)
        known = self._theta is not None and np.array_equal(theta, self._theta)
        if not known:
            self._prior, self._theta = model.prior(theta), theta
        prior = self._prior
        before = prior.cubic_operations if known else 0
        f, statistics = self._move(model.f(point, prior), prior, self._likelihood(theta))
        updates = {model.latent_value.name: model.stored_latent(f, prior)}
        updates |= model.draw_unobserved(self.rng, theta, f)
        return updates, statistics | {
            f"{self.prefix}_cubic_operations": prior.cubic_operations - before
        }
