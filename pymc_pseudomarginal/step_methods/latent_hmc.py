"""`LatentHMC`: the latent f given theta by Hamiltonian Monte Carlo."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import pymc as pm
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.arguments import check_at_least, check_probability
from pymc_pseudomarginal.step_methods.base import LatentGaussianState
from pymc_pseudomarginal.step_methods.latent_step import LatentStep
from pymc_pseudomarginal.transitions.latent_hmc import latent_hmc

_FIRST_STEP_SIZE = 0.3
_LARGEST_STEP_SIZE = 0.5 * np.pi  # a quarter of a turn leaves the prior behind
_GAIN_EXPONENT = 0.6


@dataclass_state
class LatentHMCState(LatentGaussianState):
    """All that the next draw depends on besides the point itself."""

    tune: bool
    log_step_size: float
    updates: int
    steps: int = field(metadata={"frozen": True})
    moves: int = field(metadata={"frozen": True})
    target_accept: float = field(metadata={"frozen": True})


class LatentHMC(LatentStep):
    """Hamiltonian Monte Carlo of the latent f with its covariance K as the inverse mass matrix.

    It moves f alone, at O(n²) per step once K is factorised: the other sampler for f of
    Filippone & Girolami (2014). Use it as `EllipticalSlice`, with another step for the
    hyper-parameters, or behind `PseudoMarginalMH`.

    Parameters
    ----------
    vars : variable or name, optional
        The latent. There is only one, so that it need not be named.
    steps : int
        Steps in a trajectory.
    moves : int
        Trajectories per draw.
    target_accept : float
        Acceptance to which the step size is tuned.
    model : pymc.Model, optional
        Taken from the context if not given.

    Notes
    -----
    Sample statistics: ``hmc_acceptance`` (mean over the trajectories of a draw),
    ``hmc_step_size``, ``hmc_evaluations`` (of the gradient), ``hmc_cubic_operations``.

    References
    ----------
    Filippone, Zhong & Girolami (2013), A comparative evaluation of stochastic inference
    methods for Gaussian process models, Machine Learning 93.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=[pmpm.PseudoMarginalMH(), pmpm.LatentHMC()])
    """

    name = "latent_hmc"
    prefix = "hmc"
    stats_dtypes_shapes = {
        "hmc_acceptance": (np.float64, []),
        "hmc_step_size": (np.float64, []),
        "hmc_evaluations": (np.int64, []),
        "hmc_cubic_operations": (np.int64, []),
    }
    _state_class = LatentHMCState

    def __init__(
        self,
        vars=None,
        *,
        steps: int = 10,
        moves: int = 1,
        target_accept: float = 0.8,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        self.steps = check_at_least("steps", steps, 1)
        self.target_accept = check_probability("target_accept", target_accept)
        super().__init__(vars, model, rng, moves=moves)
        self.start_chain()

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        super().start_chain()
        self.tune = True
        self.reset_tuning()

    def reset_tuning(self):
        """Tune from the start (PyMC calls this before a chain)."""
        self.log_step_size = float(np.log(_FIRST_STEP_SIZE))
        self.updates = 0

    def stop_tuning(self):
        """Freeze the step size."""
        self.tune = False

    def _move(self, f, prior, likelihood):
        acceptances, evaluations = [], 0
        step_size = float(np.exp(self.log_step_size))
        for _ in range(self.moves):
            f, info = latent_hmc(
                self.rng, f, prior, likelihood, step_size=step_size, n_steps=self.steps
            )
            acceptances.append(info.acceptance)
            evaluations += info.evaluations
        acceptance = float(np.mean(acceptances))
        if self.tune:
            self.updates += 1
            change = self.updates**-_GAIN_EXPONENT * (acceptance - self.target_accept)
            self.log_step_size = min(self.log_step_size + change, float(np.log(_LARGEST_STEP_SIZE)))
        return f, {
            "hmc_acceptance": acceptance,
            "hmc_step_size": step_size,
            "hmc_evaluations": evaluations,
        }

    def _idle_statistics(self):
        return {
            "hmc_acceptance": 0.0,
            "hmc_step_size": float(np.exp(self.log_step_size)),
            "hmc_evaluations": 0,
            "hmc_cubic_operations": 0,
        }

    def __repr__(self):
        """The variable and the settings."""
        return (
            f"LatentHMC({self.latent_model.latent.name}, steps={self.steps}, moves={self.moves}, "
            f"target_accept={self.target_accept})"
        )
