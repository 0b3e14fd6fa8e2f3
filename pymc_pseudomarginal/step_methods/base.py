"""What every step method for latent Gaussian models shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import numpy as np
import pymc as pm
from pymc.exceptions import SamplingError
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Variable
from threadpoolctl import ThreadpoolController

from pymc_pseudomarginal.model import LatentGaussianModel, read_model
from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.step_methods.compat import ChainStep, is_worker


@dataclass_state
class LatentGaussianState(StepMethodState):
    """What the next draw of any of the step methods depends on besides the point itself."""

    under_way: bool


class LatentGaussianStep(ChainStep):
    """Base of the step methods: reads the model and limits BLAS to one thread.

    A subclass implements `_step`, `_idle_statistics` and `start_chain`. One BLAS thread
    makes the draws the same wherever a chain runs: from about n = 200 a Cholesky factor
    on several threads is rounded differently, and processes differ in their threads.

    Attributes
    ----------
    under_way : bool
        Whether the chain has made a draw: a failure is then a draw that is lost, not a
        start that is impossible.
    """

    latent_model: LatentGaussianModel

    def __init__(self, model: pm.Model | None, rng=None):
        self.latent_model = read_model(model)
        self._blas = ThreadpoolController().select(user_api="blas")
        self._limited = False
        self._likelihood_at: Callable[[np.ndarray], Likelihood] | None = None
        self.under_way = False
        self.rng = np.random.default_rng(rng)

    def _likelihood(self, theta: np.ndarray) -> Likelihood:
        """p(y|f, theta), for the data that the model held when the chain started."""
        if self._likelihood_at is None:
            self._likelihood_at = self.latent_model.bind_data()
        return self._likelihood_at(theta)

    def _one_blas_thread(self):
        """Limit BLAS to one thread from now on, or, as a context, until its end."""
        if self._limited or all(blas.num_threads == 1 for blas in self._blas.lib_controllers):
            return nullcontext()
        return self._blas.limit(limits=1)

    def start_chain(self) -> None:
        """Forget the previous chain; the data may have changed since (`pm.set_data`)."""
        self._likelihood_at = None
        self.under_way = False
        if is_worker():
            # For good: other step methods, and a trace that is kept here, compute between steps.
            self._one_blas_thread()
            self._limited = True

    def step(self, point):
        """One step from a point of the model: (point, [statistics])."""
        try:
            with self._one_blas_thread():
                updates, statistics = self._step(point)
        except NumericalFailure as failure:
            # A proposal that fails is rejected inside; this is the point itself, where
            # the chain starts or where another step has gone.
            if not self.under_way:
                raise SamplingError(self._cannot_start(point, failure)) from failure
            updates, statistics = {}, self._idle_statistics()
        self.under_way = True
        # The trace reads a point's values by position, so the order of its keys stays.
        return {name: updates.get(name, value) for name, value in point.items()}, [statistics]

    def _step(self, point: Mapping[str, np.ndarray]) -> tuple[dict, dict]:
        """The new values of this step's variables, by name, and its statistics."""
        raise NotImplementedError

    def _idle_statistics(self) -> dict:
        """The statistics of a draw in which numerics failed and nothing moved."""
        raise NotImplementedError

    def _cannot_start(self, point, failure) -> str:
        values = {name: np.round(point[name], 4).tolist() for name in self.latent_model.shapes}
        return (
            f"{type(self).__name__} cannot start at {values} (unconstrained scale): {failure} "
            "Give other initial values (pm.sample(initvals=...))."
        )

    def __getstate__(self):
        # Handles of shared libraries do not travel between processes.
        return {key: value for key, value in self.__dict__.items() if key != "_blas"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._blas = ThreadpoolController().select(user_api="blas")


def named_variables(
    vars: Sequence[Variable | str] | Variable | str | None, read: LatentGaussianModel
) -> list[Variable] | None:
    """Free variables from what a user gives: names, random or value variables.

    The name of the latent stands for the free variable that stores it.

    None, or a list of nothing but None (which is how PyMC hands on a missing
    argument), gives None.
    """
    given = list(vars) if isinstance(vars, list | tuple) else [vars]
    if all(var is None for var in given):
        return None
    model, latent = read.model, read.latent
    result = []
    for var in given:
        name = var if isinstance(var, str) else var.name
        match = [
            rv
            for rv in model.free_RVs
            if name in (rv.name, model.rvs_to_values[rv].name) or var is rv
        ]
        if not match and name == latent.name:
            match = [latent.free_rv]
        if not match:
            free = ", ".join(rv.name for rv in model.free_RVs)
            raise ValueError(f"{name!r} is not a free variable of the model (free: {free}).")
        result += match
    return result
