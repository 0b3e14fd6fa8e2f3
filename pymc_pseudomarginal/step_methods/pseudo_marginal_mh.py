"""`PseudoMarginalMH`: theta with f integrated out, and f, exactly."""

from __future__ import annotations

import logging
from dataclasses import field

import numpy as np
import pymc as pm
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.arguments import (
    check_approximation,
    check_at_least,
    check_probability,
)
from pymc_pseudomarginal.numerics import APPROXIMATIONS, ImportanceSet, NumericalFailure
from pymc_pseudomarginal.step_methods.base import LatentGaussianStep, named_variables
from pymc_pseudomarginal.step_methods.pseudo_marginal_statistics import (
    STATISTICS,
    ProgressOfPseudoMarginal,
    idle_statistics,
    statistics,
)
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.proposals import RandomWalk
from pymc_pseudomarginal.transitions.pseudo_marginal import (
    Conditional,
    Info,
    State,
    pseudo_marginal_mh,
)

_log = logging.getLogger(__name__)

# More hyper-parameters than a random walk explores in reasonable time.
_MANY = 20


@dataclass_state
class PseudoMarginalMHState(StepMethodState):
    """All that the next draw depends on besides the point itself."""

    tune: bool
    adaptation: RandomWalkAdaptation | None
    anchor: np.ndarray | None
    last_theta: np.ndarray | None
    retained: ImportanceSet | None
    approximation: str = field(metadata={"frozen": True})
    n_importance: int = field(metadata={"frozen": True})
    refresh: bool = field(metadata={"frozen": True})
    latent_moves: int = field(metadata={"frozen": True})
    target_accept: float = field(metadata={"frozen": True})


class PseudoMarginalMH(ProgressOfPseudoMarginal, LatentGaussianStep):
    """Pseudo-marginal Metropolis-Hastings for latent Gaussian models, exact for theta and f.

    The hyper-parameters theta are moved with the latent f integrated out by importance
    sampling from a Gaussian approximation of p(f|y, theta); then f is drawn from the
    importance samples of the kept theta and moved by elliptical slice sampling. The
    estimate is noisy but unbiased, so that the draws have exactly the posterior of
    (theta, f), whatever the quality of the approximation; that decides the speed only.

    Parameters
    ----------
    vars : list of variables or names, optional
        The hyper-parameters to move; None takes all free variables but the latent,
        which is always moved along. Those left out belong to other steps, which
        `pm.sample` adds (NUTS) where none is given.
    approximation : {"laplace", "ep"}
        The Gaussian approximation. EP costs about twice as much per draw and has
        weights of smaller spread.
    n_importance : int
        Number of importance samples N. Any N is exact; a larger one makes the
        estimate less noisy.
    refresh : bool
        Whether to draw the companions of the current f anew for every proposal.
        False gives Algorithm 1 of Filippone & Girolami (2014), which retains the
        estimate until the next acceptance and may stick at an overestimate.
    latent_moves : int
        Elliptical-slice moves of f per draw.
    target_accept : float
        Acceptance to which the proposal is tuned, on the approximate marginal.
    model : pymc.Model, optional
        Taken from the context if not given.

    Notes
    -----
    During `tune` the chain moves on the deterministic approximation of the marginal,
    so that it cannot stick, and adapts the covariance and scale of its random walk.
    Then the walk is frozen, and so is the anchor from which Newton or EP starts: q
    must depend on theta alone for the draws to be exact.

    Sample statistics, one value per draw: ``pm_accepted``, ``pm_acceptance``
    (probability), ``pm_log_estimate`` and ``pm_log_approximation`` (of log p(y|theta)
    at the theta arrived at), ``pm_log_weight_sd`` (spread of the proposal's log
    weights; for N = 1 the distance of the only one from the approximation),
    ``pm_iterations`` (Newton iterations or EP sweeps), ``pm_cubic_operations``
    (factorisations of n×n matrices), ``pm_failed`` (1 where the proposal had no
    finite estimate and was rejected), ``pm_slice_evaluations``.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian
    processes, IEEE Transactions on Pattern Analysis and Machine Intelligence 36(11).

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.PseudoMarginalMH())
    """

    name = "pseudo_marginal_mh"
    stats_dtypes_shapes = STATISTICS
    _state_class = PseudoMarginalMHState

    def __init__(
        self,
        vars=None,
        *,
        approximation: str = "laplace",
        n_importance: int = 16,
        refresh: bool = True,
        latent_moves: int = 1,
        target_accept: float = 0.25,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        self.approximation = check_approximation(approximation)
        self.n_importance = check_at_least("n_importance", n_importance, 1)
        self.refresh = bool(refresh)
        self.latent_moves = check_at_least("latent_moves", latent_moves, 0)
        self.target_accept = check_probability("target_accept", target_accept)
        super().__init__(model, rng)
        self._moved = self._choose_variables(vars)
        self.start_chain()
        self._compile()

    def _choose_variables(self, vars) -> np.ndarray:
        """Set `vars` and return the positions in theta that this step moves."""
        read = self.latent_model
        chosen = named_variables(vars, read)
        moved = [rv for rv in read.hyperparameters if chosen is None or rv in chosen]
        left = [rv.name for rv in read.hyperparameters if rv not in moved]
        if not moved:
            raise ValueError(
                "PseudoMarginalMH has no hyper-parameter to move (the model has "
                f"{[rv.name for rv in read.hyperparameters]}). Use EllipticalSlice for "
                f"{read.latent.name!r} alone."
            )
        if left and not self.refresh:
            raise ValueError(
                f"refresh=False retains an estimate that another step would make stale by moving "
                f"{', '.join(left)}. Include it in vars, or use refresh=True."
            )
        if left:
            _log.info(
                "PseudoMarginalMH leaves %s to other steps (NUTS where none is given).",
                ", ".join(left),
            )
        values = [read.model.rvs_to_values[rv] for rv in moved]
        self._warn_of_many(values)
        self.vars = [*values, read.latent_value, *read.unobserved.values]
        return np.r_[tuple(read.slices[value.name] for value in values)]

    def _warn_of_many(self, values) -> None:
        read = self.latent_model
        sizes = {value: int(np.prod(read.shapes[value.name])) for value in values}
        if sum(sizes.values()) > _MANY:
            _log.warning(
                "PseudoMarginalMH moves %d hyper-parameters by a random walk, which explores so "
                "many slowly. If %s is a vector of Gaussian effects, put its covariance into "
                "that of %s instead.",
                sum(sizes.values()),
                read.model.values_to_rvs[max(sizes, key=sizes.get)].name,
                read.latent.name,
            )

    def _compile(self):
        """Evaluate once, so that all is compiled before the chains go their ways."""
        read = self.latent_model
        theta = read.theta(read.initial_point)
        try:
            with self._one_blas_thread():
                conditional = self._evaluate(theta)
                read.draw_unobserved(np.random.default_rng(0), theta, conditional.prior.mean)
        except NumericalFailure:
            pass  # the chain may start elsewhere; if not, its first step will say so

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        super().start_chain()
        self.tune = True
        self.adaptation: RandomWalkAdaptation | None = None
        self.anchor: np.ndarray | None = None
        self.last_theta: np.ndarray | None = None
        self.retained: ImportanceSet | None = None
        self._forget()

    def _forget(self):
        self._current: Conditional | None = None
        self._current_anchor: np.ndarray | None = None
        self._walk: tuple[RandomWalkAdaptation, RandomWalk] | None = None

    def reset_tuning(self):
        """Tune from the start (PyMC calls this before a chain)."""
        self.adaptation = None
        self._forget()

    def stop_tuning(self):
        """Freeze the proposal, and the anchor at the centre of the tuning draws."""
        if self.tune and self.adaptation is not None and self.adaptation.updates:
            centre = self.last_theta.copy()
            centre[self._moved] = self.adaptation.mean
            try:
                with self._one_blas_thread():
                    self.anchor = self._evaluate(centre).approximation.anchor
            except NumericalFailure:
                self.anchor = None
        self.tune = False
        # Retained under another q, a set has weights of another density.
        self.retained = None
        self._forget()

    def _evaluate(self, theta: np.ndarray) -> Conditional:
        model = self.latent_model
        log_prior = model.log_prior(theta)
        if not np.isfinite(log_prior):
            raise NumericalFailure("The log prior of the hyper-parameters is not finite.")
        approximate = APPROXIMATIONS[self.approximation]
        likelihood = self._likelihood(theta)
        approximation = approximate(model.prior(theta), likelihood, start=self.anchor)
        return Conditional(theta, log_prior, likelihood, approximation)

    def _conditional_at(self, theta: np.ndarray) -> Conditional:
        """The current conditional, evaluated anew only if theta or the anchor changed."""
        known = self._current
        if (
            known is None
            or self._current_anchor is not self.anchor
            or not np.array_equal(known.theta, theta)
        ):
            return self._evaluate(theta)
        return known

    def _propose(self, rng, theta):
        if self._walk is None or self._walk[0] is not self.adaptation:
            self._walk = self.adaptation, self.adaptation.proposal()
        proposed = theta.copy()
        proposed[self._moved], log_ratio = self._walk[1](rng, theta[self._moved])
        return proposed, log_ratio

    def _step(self, point):
        model = self.latent_model
        theta = model.theta(point)
        conditional = self._conditional_at(theta)
        if self.adaptation is None:
            self.adaptation = RandomWalkAdaptation.starting_at(theta[self._moved])
        if self.retained is not None and not np.array_equal(theta, self.last_theta):
            self.retained = None  # a set of another theta, from before the chain was moved
        state, info = pseudo_marginal_mh(
            self.rng,
            State(conditional, model.f(point, conditional.prior), self.retained),
            self._evaluate,
            self._propose,
            self.n_importance,
            refresh=self.refresh,
            approximate=self.tune,
        )
        conditional = state.conditional
        f, moves = elliptical_slice(
            self.rng, state.f, conditional.prior, conditional.likelihood, moves=self.latent_moves
        )
        self._remember(state, info)
        updates = model.hyper_point(conditional.theta)
        updates[model.latent_value.name] = model.stored_latent(f, conditional.prior)
        updates |= model.draw_unobserved(self.rng, conditional.theta, f)
        return updates, statistics(conditional, info, moves)

    def _idle_statistics(self):
        return idle_statistics()

    def _remember(self, state: State, info: Info) -> None:
        conditional = state.conditional
        self._current, self._current_anchor = conditional, self.anchor
        self.retained, self.last_theta = state.retained, conditional.theta
        if self.tune:
            self.adaptation = self.adaptation.updated(
                conditional.theta[self._moved], info.acceptance, self.target_accept
            )

    def __repr__(self):
        """The variables and the settings."""
        rvs = self.latent_model.model.values_to_rvs
        hyper = self.latent_model.hyper_values
        moved = [rvs[value].name for value in self.vars if value in hyper]
        names = ", ".join([*moved, self.latent_model.latent.name])
        return (
            f"PseudoMarginalMH([{names}], approximation={self.approximation!r}, "
            f"n_importance={self.n_importance}, refresh={self.refresh}, "
            f"latent_moves={self.latent_moves}, target_accept={self.target_accept})"
        )
