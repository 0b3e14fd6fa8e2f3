"""Samplers on one model in turn: effective draws per draw, per second and per factorisation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import arviz as az
import numpy as np
import pymc as pm

# Draws of one sampler before it is the next one's turn.
_BLOCK = 25
CHOSEN = ("pm_n_importance", "pm_ep", "pm_fitted_sites", "pm_annealing", "pm_fitted")
"""Statistics that tell what is in use."""


@dataclass
class Runner:
    """A chain of one sampler and what it has used.

    Attributes
    ----------
    step : step method
    point : dict
    thetas : list of array
        Draws of theta after tuning, on the unconstrained scale.
    seconds : float
        Of those draws.
    operations : int
        Factorisations and inversions in them.
    """

    step: object
    point: dict
    thetas: list[np.ndarray] = field(default_factory=list)
    seconds: float = 0.0
    operations: int = 0
    last: dict = field(default_factory=dict)

    def tune(self, draws: int) -> None:
        """Take tuning draws and freeze the sampler."""
        for _ in range(draws):
            self.point, _ = self.step.step(self.point)
        self.step.stop_tuning()

    def block(self) -> None:
        """Take a few draws and time them."""
        start, read = time.perf_counter(), self.step.latent_model
        for _ in range(_BLOCK):
            self.point, (self.last,) = self.step.step(self.point)
            self.thetas.append(read.theta(self.point).copy())
            self.operations += self.last["pm_cubic_operations"]
        self.seconds += time.perf_counter() - start

    def row(self) -> dict:
        """The outcome."""
        draws = np.array(self.thetas)
        ess = min(float(az.ess(draws[None, :, j])) for j in range(draws.shape[1]))
        return {
            "draws": len(draws),
            "seconds": self.seconds,
            "ess": ess,
            "operations": self.operations,
            "hyperparameters": draws.shape[1],
            "chosen": {
                name: self.last[name].item() if hasattr(self.last[name], "item") else value
                for name, value in self.last.items()
                if name in CHOSEN
            },
        }


def race(
    model: pm.Model,
    samplers: Mapping[str, Callable[[], object]],
    *,
    seconds: float,
    tune: int,
    seed: int,
) -> dict[str, dict]:
    """Give every sampler the same time on one model, in turn.

    In turn, so that whatever else the machine does slows all alike. Draws are taken without
    PyMC's sampling loop, so that recording costs nothing.

    Parameters
    ----------
    model : pymc.Model
    samplers : mapping
        Name -> function that makes a step method in the context of the model.
    seconds : float
        For each, tuning apart.
    tune : int
        Tuning draws.
    seed : int
    """
    runners = {}
    for name, make in samplers.items():
        with model:
            step = make()
        step.set_rng(np.random.default_rng(seed))
        runners[name] = Runner(step, model.initial_point())
        runners[name].tune(tune)
    while min(runner.seconds for runner in runners.values()) < seconds:
        min(runners.values(), key=lambda runner: runner.seconds).block()
    return {name: runner.row() for name, runner in runners.items()}
