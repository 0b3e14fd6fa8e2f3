"""What the step methods share that move theta given coordinates of f."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import numpy as np
import pymc as pm
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.step_methods.base import LatentGaussianState
from pymc_pseudomarginal.step_methods.theta_step import ThetaStep
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.given_latent import (
    LatentState,
    Parameterisation,
    Setting,
    metropolis_given_latent,
)


@dataclass_state
class GivenLatentState(LatentGaussianState):
    """All that the next draw depends on besides the point itself."""

    tune: bool
    adaptation: RandomWalkAdaptation | None
    latent_moves: int = field(metadata={"frozen": True})
    target_accept: float = field(metadata={"frozen": True})


class GivenLatentMH(ThetaStep):
    """Metropolis-Hastings for theta given coordinates of f, then elliptical slice moves of f.

    A subclass says which coordinates stay.
    """

    parameterisation: ClassVar[Parameterisation]
    setting_type: ClassVar[type[Setting]] = Setting
    stats_dtypes_shapes = {
        "pm_accepted": (bool, []),
        "pm_acceptance": (np.float64, []),
        "pm_cubic_operations": (np.int64, []),
        "pm_failed": (np.int64, []),
        "pm_slice_evaluations": (np.int64, []),
    }
    _state_class = GivenLatentState

    def __init__(
        self,
        vars=None,
        *,
        latent_moves: int = 1,
        target_accept: float = 0.25,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        super().__init__(vars, model, rng, latent_moves=latent_moves, target_accept=target_accept)

    def _forget(self):
        super()._forget()
        self._current: Setting | None = None

    def _evaluate(self, theta: np.ndarray) -> Setting:
        log_prior = self._log_prior(theta)
        prior = self.latent_model.prior(theta)
        return self.setting_type(theta, log_prior, prior, self._likelihood(theta))

    def _step(self, point):
        model = self.latent_model
        theta = model.theta(point)
        setting = self._current
        if setting is None or not np.array_equal(setting.theta, theta):
            setting = self._evaluate(theta)
        self._start_adaptation(theta)
        state, info = metropolis_given_latent(
            self.rng,
            LatentState(setting, model.f(point, setting.prior)),
            self._evaluate,
            self._propose,
            type(self).parameterisation,
        )
        setting = state.setting
        f, moves = elliptical_slice(
            self.rng, state.f, setting.prior, setting.likelihood, moves=self.latent_moves
        )
        self._current = setting
        self._adapt(setting.theta, info.acceptance)
        return self._updates(setting.theta, f, setting.prior), {
            "pm_accepted": info.accepted,
            "pm_acceptance": info.acceptance,
            "pm_cubic_operations": info.cubic_operations,
            "pm_failed": int(info.failure is not None),
            "pm_slice_evaluations": moves.evaluations,
        }

    def _idle_statistics(self):
        return {
            "pm_accepted": False,
            "pm_acceptance": 0.0,
            "pm_cubic_operations": 0,
            "pm_failed": 1,
            "pm_slice_evaluations": 0,
        }

    def __repr__(self):
        """The variables and the settings."""
        return self._describe(latent_moves=self.latent_moves, target_accept=self.target_accept)
