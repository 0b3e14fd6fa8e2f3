"""What the step methods share that move theta by a Gaussian approximation of p(f|y, theta)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pymc as pm

from pymc_pseudomarginal.numerics import APPROXIMATIONS, Approximation
from pymc_pseudomarginal.step_methods.theta_step import ThetaStep
from pymc_pseudomarginal.transitions.annealing import PlainImportance, WeightedSampler
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional
from pymc_pseudomarginal.transitions.warm_start import Prediction, WarmStart


class MarginalStep(ThetaStep):
    """Base of the step methods that build an approximation q at every theta.

    Newton or EP starts where a regression on the tuning draws predicts. After tuning the
    prediction is frozen: q must depend on theta alone.

    Attributes
    ----------
    approximation : {"laplace", "ep"}
    warm_start : WarmStart or None
        None before the first draw.
    """

    _settings: ClassVar[dict[str, dict]] = {name: {} for name in APPROXIMATIONS}
    """Arguments of the approximation, by its name."""

    def __init__(
        self,
        vars,
        model: pm.Model | None,
        rng,
        *,
        approximation: str,
        latent_moves: int,
        target_accept: float,
    ):
        self.approximation = approximation
        super().__init__(vars, model, rng, latent_moves=latent_moves, target_accept=target_accept)

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        self.warm_start: WarmStart | None = None
        super().start_chain()

    def _forget(self):
        super()._forget()
        self._current: tuple[Conditional, Prediction | None] | None = None

    def stop_tuning(self):
        """Freeze the proposal, and where Newton or EP starts."""
        if self.tune and self.warm_start is not None:
            self.warm_start = self.warm_start.refitted()
        super().stop_tuning()

    @property
    def _approximation_used(self) -> str:
        """The name of the approximation in use."""
        return self.approximation

    @property
    def _sampler(self) -> WeightedSampler:
        """How latent vectors with unbiased weights come of q."""
        return PlainImportance()

    @property
    def _prediction(self) -> Prediction | None:
        return None if self.warm_start is None else self.warm_start.prediction

    def _evaluate(self, theta: np.ndarray) -> Conditional:
        return self._conditional(theta, self._approximation_used, self._prediction)

    def _conditional(self, theta: np.ndarray, name: str, start: Prediction | None) -> Conditional:
        """By the approximation of that name, from a start of its kind or from nothing."""
        log_prior, likelihood = self._log_prior(theta), self._likelihood(theta)
        prior = self.latent_model.prior(theta)
        q = self._approximate(theta, name, prior, likelihood, start)
        return Conditional(theta, log_prior, likelihood, q, self._sampler)

    def _approximate(self, theta, name, prior, likelihood, start) -> Approximation:
        anchor = None if start is None else start(theta)
        return APPROXIMATIONS[name](prior, likelihood, start=anchor, **self._settings[name])

    def _conditional_at(self, theta: np.ndarray) -> Conditional:
        """The current conditional, evaluated anew only if theta or the prediction changed."""
        if self._current is not None:
            conditional, prediction = self._current
            if prediction is self._prediction and np.array_equal(conditional.theta, theta):
                return conditional
            self._current = None  # its matrices must not stay while others are computed
        return self._evaluate(theta)

    def _keep(self, conditional: Conditional) -> None:
        """Remember where the chain is, and learn from it while it is tuned."""
        self._current = conditional, self._prediction
        if self.tune:
            theta, anchor = conditional.theta, conditional.approximation.anchor
            before = self.warm_start or WarmStart.starting_at(theta, anchor)
            self.warm_start = before.updated(theta, anchor)
