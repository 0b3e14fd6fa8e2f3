"""`PseudoMarginalHMC`: theta by Hamiltonian dynamics with f integrated out, and f, exactly."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from numbers import Real

import numpy as np
import pymc as pm
from pymc.stats.convergence import SamplerWarning
from pymc.step_methods.state import dataclass_state
from pymc.step_methods.step_sizes import DualAverageAdaptation, StepSizeState

from pymc_pseudomarginal.arguments import check_approximation, check_at_least
from pymc_pseudomarginal.model.force import Force
from pymc_pseudomarginal.numerics import FOR_IMPORTANCE, NotPositiveDefinite, NumericalFailure
from pymc_pseudomarginal.step_methods.base import LatentGaussianState
from pymc_pseudomarginal.step_methods.importance_step import ImportanceStep
from pymc_pseudomarginal.step_methods.pseudo_marginal_statistics import (
    STATISTICS,
    chosen,
    idle_statistics,
    statistics,
)
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation
from pymc_pseudomarginal.transitions.effort import SIZES, Effort
from pymc_pseudomarginal.transitions.elliptical_slice import Bracket
from pymc_pseudomarginal.transitions.hamiltonian import (
    Position,
    Trajectory,
    pseudo_marginal_hmc,
)
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional, State
from pymc_pseudomarginal.transitions.tuning_record import TuningRecord
from pymc_pseudomarginal.transitions.warm_start import WarmStart

# A path varies by this share either way, so that no direction comes back to where it began.
_JITTER = 0.5
# Of dual averaging, which is drawn to ten times the first step size. It changes more gently than
# in NUTS (gamma = 0.05), which falls to many tiny steps before C is known.
_FIRST_STEP_SIZE = 0.05
_GAMMA, _KAPPA, _DELAY = 0.2, 0.75, 10


@dataclass_state
class PseudoMarginalHMCState(LatentGaussianState):
    """All that the next draw depends on besides the point itself."""

    tune: bool
    adaptation: RandomWalkAdaptation | None
    step_size: StepSizeState
    warm_start: WarmStart | None
    effort: Effort
    record: TuningRecord | None
    bracket: Bracket
    run: int
    approximation: str = field(metadata={"frozen": True})
    n_importance: int | str = field(metadata={"frozen": True})
    path_length: float = field(metadata={"frozen": True})
    max_steps: int = field(metadata={"frozen": True})
    latent_moves: int = field(metadata={"frozen": True})
    target_accept: float = field(metadata={"frozen": True})


class PseudoMarginalHMC(ImportanceStep):
    """Pseudo-marginal sampling with Hamiltonian proposals, exact for theta and f.

    The hyper-parameters theta follow the gradient of the approximate marginal posterior
    p(theta) Z_q(theta), with the latent f integrated out by EP or Laplace. What the energy of
    the trajectory accepts is put to importance-sampled estimates relative to Z_q, and f is
    taken from the importance samples by weight and moved by elliptical slice sampling. The
    draws have exactly the posterior of (theta, f). A draw costs several approximations and
    their gradients, and moves across the posterior of many hyper-parameters, where a random
    walk takes thousands of draws.

    Parameters
    ----------
    vars : list of variables or names, optional
        The hyper-parameters to move; None takes all free variables but the latent,
        which is always moved along. Those left out belong to other steps, which
        `pm.sample` adds (NUTS) where none is given.
    approximation : {"ep", "laplace"}
        The Gaussian approximation. The better its Z_q, the fewer proposals are rejected by
        the estimates: EP is worth its price here. Laplace is there for likelihoods that EP
        cannot take apart.
    n_importance : int or "auto"
        Number of importance samples N. Any N is exact; a larger one makes the estimates
        less noisy. "auto" takes the N with the best predicted ratio of acceptance and cost.
    path_length : float
        Mean length of a trajectory in units of a standard deviation of theta. In those units
        a quarter of a turn, the default, leads to a draw that does not remember the last.
    max_steps : int
        Most leapfrog steps in a trajectory, each of which costs an approximation and its
        gradient.
    latent_moves : int
        Elliptical-slice moves of f per draw.
    target_accept : float
        Acceptance by the energy to which the step size is tuned.
    model : pymc.Model, optional
        Taken from the context if not given.

    Notes
    -----
    During `tune` the chain moves on the deterministic approximation of the marginal and adapts
    the inverse mass matrix (to the covariance of theta) and the step size (by dual
    averaging). At the end N is chosen from weights at thetas of the tuned chain. Then all is
    frozen, and so is the prediction from which Newton or EP starts: q must depend on theta
    alone for the draws to be exact.

    Sample statistics are those of `PseudoMarginalMH`, with ``pm_acceptance`` that of the
    estimates, or zero where the energy rejected, and ``pm_iterations`` and
    ``pm_cubic_operations`` summed over the trajectory. Besides: ``pm_stage_one_acceptance``
    (by the energy), ``pm_energy_error`` (at the end of the trajectory or where it was given
    up; infinite where it came to a theta without approximation), ``pm_gradients`` and
    ``pm_step_size``.

    References
    ----------
    Neal (2011), MCMC using Hamiltonian dynamics, Handbook of Markov Chain Monte Carlo;
    Christen & Fox (2005), Markov chain Monte Carlo using an approximation; Filippone &
    Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian processes; Hoffman &
    Gelman (2014), The No-U-Turn Sampler, for the step size.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.PseudoMarginalHMC())
    """

    name = "pseudo_marginal_hmc"
    stats_dtypes_shapes = STATISTICS | {
        "pm_stage_one_acceptance": (np.float64, []),
        "pm_energy_error": (np.float64, []),
        "pm_gradients": (np.int64, []),
        "pm_step_size": (np.float64, []),
        "warning": (SamplerWarning, None),
    }
    progress = ImportanceStep.progress | {"spread": ("sd log w", "pm_log_weight_sd")}
    absent_where_zero = frozenset({"spread"})
    _state_class = PseudoMarginalHMCState
    # Laplace's chord steps leave W, and with it log Z, to jump from one theta to the next.
    _settings = FOR_IMPORTANCE | {"laplace": {"tolerance": 1e-2}}
    # Beside a trajectory a few samples cost nothing, and a draw that could have been an independent
    # one is a pity to lose: at n = 200 effective draws fell by a fifth with 4, in the same time.
    _sizes = tuple(size for size in SIZES if size >= 16)

    def __init__(
        self,
        vars=None,
        *,
        approximation: str = "ep",
        n_importance: int | str = "auto",
        path_length: float = 0.5 * np.pi,
        max_steps: int = 16,
        latent_moves: int = 1,
        target_accept: float = 0.8,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        self.max_steps = check_at_least("max_steps", max_steps, 1)
        if not isinstance(path_length, Real) or not 0.0 < path_length < np.inf:
            raise ValueError(f"path_length must be a positive number; found {path_length!r}.")
        self.path_length = float(path_length)
        super().__init__(
            vars,
            model,
            rng,
            approximation=check_approximation(approximation),
            n_importance=n_importance,
            annealing=0,
            annealing_moves=1,
            normals="auto",
            refresh=True,
            latent_moves=latent_moves,
            target_accept=target_accept,
        )

    def _warn_of_many(self, values):
        """Many hyper-parameters are what this step is for."""

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        super().start_chain()
        self._reset_step_size()

    def reset_tuning(self):
        """Tune from the start (PyMC calls this before a chain)."""
        super().reset_tuning()
        self._reset_step_size()

    def _reset_step_size(self):
        self.step_size = DualAverageAdaptation(
            _FIRST_STEP_SIZE, self.target_accept, _GAMMA, _KAPPA, _DELAY
        )

    def _forget(self):
        super()._forget()
        self._metric: tuple[RandomWalkAdaptation, np.ndarray] | None = None
        # With the theta of the current conditional, which it belongs to.
        self._current_force: tuple[np.ndarray, np.ndarray] | None = None

    def _compile(self):
        read = self.latent_model
        self._force = Force(read, self.approximation)
        super()._compile()
        with suppress(NumericalFailure), self._one_blas_thread():
            self._position_at(read.theta(read.initial_point))

    def _settle_proposal(self, record):
        return "Hamiltonian trajectories"

    def _approximations_per_draw(self):
        return self._leapfrog_steps(self.path_length)

    def _leapfrog_steps(self, path: float) -> int:
        steps = round(path / float(self.step_size.current(self.tune)))
        return min(max(1, steps), self.max_steps)

    def _with_force(self, conditional: Conditional) -> Position:
        q, likelihood = conditional.approximation, conditional.likelihood
        force = self._force(conditional.theta, q, likelihood, self._likelihood)
        return Position(conditional, force)

    def _position_at(self, theta: np.ndarray) -> Position:
        try:
            return self._with_force(self._evaluate(theta))
        except np.linalg.LinAlgError as error:  # of a Cholesky factor in the user's graph
            raise NotPositiveDefinite(f"The covariance cannot be computed: {error}") from error

    def _position(self, conditional: Conditional) -> Position:
        """The current conditional with its force, kept from the draw before if there is one."""
        if self._current_force is not None and self._current_force[0] is conditional.theta:
            return Position(conditional, self._current_force[1])
        return self._with_force(conditional)

    def _factor(self, size: int) -> np.ndarray:
        """L with the inverse mass matrix L Lᵀ, zero for what others move, shape (size, k)."""
        if self._metric is None or self._metric[0] is not self.adaptation:
            factor = np.zeros((size, len(self._moved)))
            factor[self._moved] = self.adaptation.factor()
            self._metric = self.adaptation, factor
        return self._metric[1]

    def _trajectory(self, size: int) -> Trajectory:
        """Drawn without regard to where the chain is."""
        step_size = float(self.step_size.current(self.tune))
        path = self.path_length * self.rng.uniform(1.0 - _JITTER, 1.0 + _JITTER)
        return Trajectory(self._factor(size), step_size, self._leapfrog_steps(path))

    def _step(self, point):
        model = self.latent_model
        theta = model.theta(point)
        conditional = self._conditional_at(theta)
        self._start_adaptation(theta)
        trajectory = self._trajectory(theta.size)
        state, position, info, way = pseudo_marginal_hmc(
            self.rng,
            State(conditional, model.f(point, conditional.prior)),
            self._position(conditional),
            self._position_at,
            trajectory,
            self.effort.n_importance,
            approximate=self.tune,
        )
        conditional = state.conditional
        f, moves = self._move_latent(state)
        self._current_force = conditional.theta, position.force
        self._keep(conditional)
        # The scale of the random walk does not count here: at its target it stays.
        self._adapt(conditional.theta, self.target_accept)
        if self.tune:
            self.step_size.update(way.acceptance, tune=True)
        updates = self._updates(conditional.theta, f, conditional.prior)
        return updates, statistics(conditional, info, moves) | chosen(self.effort) | {
            "pm_stage_one_acceptance": way.acceptance,
            "pm_energy_error": way.energy_error,
            "pm_gradients": way.gradients,
            "pm_step_size": trajectory.step_size,
            "warning": self._tell(info.accepted),
        }

    def _idle_statistics(self):
        return (
            idle_statistics()
            | chosen(self.effort)
            | {
                "pm_stage_one_acceptance": 0.0,
                "pm_energy_error": np.inf,
                "pm_gradients": 0,
                "pm_step_size": float(self.step_size.current(self.tune)),
                "warning": None,
            }
        )

    def __repr__(self):
        """The variables and the settings."""
        return self._describe(
            approximation=self.approximation,
            n_importance=self.n_importance,
            path_length=self.path_length,
            max_steps=self.max_steps,
            latent_moves=self.latent_moves,
            target_accept=self.target_accept,
        )
