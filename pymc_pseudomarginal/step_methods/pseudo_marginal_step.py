"""`PseudoMarginalStep`: PyMC's loop around the kernels, for whatever `read_model` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pymc as pm
from pymc.exceptions import SamplingError
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.approximations.target import LaplaceTarget
from pymc_pseudomarginal.kernels.draw import draw
from pymc_pseudomarginal.kernels.state import Info, State, restored
from pymc_pseudomarginal.numerics.errors import NumericalFailure
from pymc_pseudomarginal.reading import LatentGaussianModel, read_model
from pymc_pseudomarginal.step_methods.blas import OneBlasThread
from pymc_pseudomarginal.step_methods.compat import ChainStep, is_first_chain, log
from pymc_pseudomarginal.step_methods.progress import RunningMeans
from pymc_pseudomarginal.tuning.start import initial_state
from pymc_pseudomarginal.tuning.tune import tune
from pymc_pseudomarginal.tuning.tuned import Tuned

_KEPT = "chain."


@dataclass(frozen=True)
class Chain:
    """A chain that has begun: what was tuned, and where it is."""

    tuned: Tuned
    target: LaplaceTarget
    state: State

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All that the next draw depends on besides the generator."""
        state = self.state
        kept = {"theta": state.theta, "u": state.u, "log_weight": np.asarray(state.log_weight)}
        return self.tuned.to_arrays() | {_KEPT + name: value for name, value in kept.items()}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray], target: LaplaceTarget) -> Chain:
        """The same chain again."""
        tuned = Tuned.from_arrays(arrays)
        target = target.thawed(tuned.frozen)
        theta, u, log_weight = (arrays[_KEPT + name] for name in ("theta", "u", "log_weight"))
        return Chain(tuned, target, restored(target, theta, u, float(log_weight)))


@dataclass_state
class PseudoMarginalState(StepMethodState):
    """Arrays by name: what was tuned, theta, the noise and its weight; empty before a chain."""

    chain: dict


class PseudoMarginalStep(RunningMeans, ChainStep):
    """Samples theta with x integrated out, and x, of any latent Gaussian model.

    All free variables of the model are moved together. A chain tunes itself in its first draw:
    it finds the modes of the approximate marginal posterior, fits a density of theta, measures
    it on fresh draws, and starts from its wide component.

    Parameters
    ----------
    vars : list of variables or names, optional
        All free variables of the model, if given: the step moves no fewer.
    read : LatentGaussianModel, optional
        The model as `read_model` returned it, which is then not read again.
    model : pymc.Model, optional
        Taken from the context if not given.
    rng : optional
        Seed of the generator that PyMC replaces when a chain starts.

    Notes
    -----
    Sample statistics: ``pm_accepted``, whether theta moved; ``pm_acceptance``, the mean
    probability of that; ``pm_noise_acceptance``, of the move of x given theta (NaN if there was
    none); ``pm_log_weight``, log w(theta, u); ``pm_evaluations``, thetas at which q was made;
    ``pm_failed``, those at which it could not be, all of them rejections.
    """

    name = "pseudo_marginal"
    # A chain tunes itself before its first draw.
    default_tune_steps = 100
    stats_dtypes_shapes: ClassVar[dict] = {
        "pm_accepted": (bool, []),
        "pm_acceptance": (np.float64, []),
        "pm_noise_acceptance": (np.float64, []),
        "pm_log_weight": (np.float64, []),
        "pm_evaluations": (np.int64, []),
        "pm_failed": (np.int64, []),
    }
    progress = {"acceptance": ("Acceptance", "pm_acceptance")}
    _state_class = PseudoMarginalState

    def __init__(
        self,
        vars=None,
        *,
        read: LatentGaussianModel | None = None,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        read = read_model(model) if read is None else read
        _check_all_are_meant(vars, read.model)
        self.latent_model = read
        self.vars = list(read.model.value_vars)
        self.rng = np.random.default_rng(rng)
        self._target = LaplaceTarget(read)
        self._blas = OneBlasThread()
        self._chain: Chain | None = None
        self._stored: dict[str, np.ndarray] = {}
        self._data = _data_of(read.model)
        self._compile()

    def _compile(self) -> None:
        """Compile now, before PyMC makes processes that would each do it again."""
        try:
            conditional = self._target.at(self.latent_model.start)
            conditional.log_weight(np.zeros(conditional.size))
            conditional.log_weight_and_gradient(np.zeros(conditional.size))
            conditional.log_weights(np.zeros((2, conditional.size)))
            point = self.latent_model.to_point(self.latent_model.start, conditional.mean)
            self.latent_model.unobserved.draw(np.random.default_rng(0), point)
        except NumericalFailure:
            pass  # tuning looks for better places

    @property
    def chain(self) -> dict[str, np.ndarray]:
        """What the next draw depends on, as arrays; empty before the first."""
        return self._chain.to_arrays() if self._chain is not None else self._stored

    @chain.setter
    def chain(self, arrays: dict[str, np.ndarray]) -> None:
        self._chain, self._stored = None, arrays

    def start_chain(self) -> None:
        """Forget the chain before."""
        self.chain = {}
        self._blas.start_chain()

    def step(self, point):
        """One draw: (point, [statistics])."""
        with self._blas:
            chain = self._chain or self._resumed() or self._begin(point)
            state, info = draw(chain.tuned, chain.target, self.rng, chain.state)
            self._chain = Chain(chain.tuned, chain.target, state)
            updates = self.latent_model.to_point(state.theta, state.latent)
            updates |= self.latent_model.unobserved.draw(self.rng, updates)
        # The trace reads a point's values by position, so the order of its keys stays.
        return {name: updates.get(name, value) for name, value in point.items()}, [
            _statistics(state, info)
        ]

    def _resumed(self) -> Chain | None:
        return Chain.from_arrays(self._stored, self._target) if self._stored else None

    def _begin(self, point) -> Chain:
        self._check_data()
        theta, _ = self.latent_model.from_point(point)
        try:
            tuned = tune(self._target, theta, self.rng)
            target = self._target.thawed(tuned.frozen)
            state = initial_state(tuned, target, self.rng)
        except NumericalFailure as failure:
            raise SamplingError(
                f"PseudoMarginal cannot start at {self._shown(point)} (unconstrained scale): "
                f"{failure}. Give other initial values (pm.sample(initvals=...))."
            ) from failure
        if is_first_chain():
            log.info("%r", tuned)
        return Chain(tuned, target, state)

    def _check_data(self) -> None:
        """What was read of the model holds for the data that it had then."""
        for name, value in _data_of(self.latent_model.model).items():
            if name not in self._data or not np.array_equal(value, self._data[name]):
                raise SamplingError(
                    f"The data {name!r} were set anew after this step was made, and a part of what "
                    "was read depends on them: make a new step, PseudoMarginal()."
                )

    def _shown(self, point) -> str:
        """Theta at a point, variable by variable, not too long."""
        model, theta = self.latent_model.model, self.latent_model.split()["theta"]
        names = [model.rvs_to_values[rv].name for rv in model.free_RVs if rv.name in theta]
        values = (np.array2string(np.asarray(point[n]), precision=4, threshold=6) for n in names)
        return ", ".join(f"{n} = {value}" for n, value in zip(names, values, strict=True))

    def stop_tuning(self) -> None:
        """A chain is tuned before its first draw."""

    def reset_tuning(self) -> None:
        """Nothing is adapted on the way."""

    def __repr__(self):
        """What is integrated out and what is sampled."""
        split = self.latent_model.split()
        latent, theta = (", ".join(sorted(split[key])) for key in ("latent", "theta"))
        return f"PseudoMarginal({theta} with {latent} integrated out)"

    @staticmethod
    def competence(var, has_grad=False):
        """PyMC does not take it by itself."""
        return pm.step_methods.compound.Competence.INCOMPATIBLE


def _check_all_are_meant(vars, model: pm.Model) -> None:
    """PyMC hands all variables on, a user perhaps some."""
    if vars is None:
        return
    meant = {getattr(v, "name", v) for v in (vars if isinstance(vars, list | tuple) else [vars])}
    names = {str(rv.name): model.rvs_to_values[rv].name for rv in model.free_RVs}
    absent = [name for name, value in names.items() if not {name, value} & meant]
    if absent:
        raise ValueError(
            f"PseudoMarginalStep moves all free variables together; without {', '.join(absent)} "
            "it cannot. Leave vars= out."
        )


def _data_of(model: pm.Model) -> dict[str, np.ndarray]:
    """Copies of everything in pm.Data."""
    return {str(data.name): np.array(data.get_value()) for data in model.data_vars}


def _statistics(state: State, info: Info) -> dict:
    return {
        "pm_accepted": bool(info.moved),
        "pm_acceptance": float(np.nan_to_num(info.acceptance)),
        "pm_noise_acceptance": float(info.noise_acceptance),
        "pm_log_weight": float(state.log_weight),
        "pm_evaluations": int(info.evaluations),
        "pm_failed": int(info.failed),
    }
