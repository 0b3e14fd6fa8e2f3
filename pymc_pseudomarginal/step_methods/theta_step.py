"""What the step methods share that move theta by a tuned random walk."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_at_least, check_probability
from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.step_methods.base import LatentGaussianStep, named_variables
from pymc_pseudomarginal.step_methods.compat import log
from pymc_pseudomarginal.step_methods.progress import RunningMeans
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation
from pymc_pseudomarginal.transitions.proposals import Proposal

# More hyper-parameters than a random walk explores in reasonable time.
_MANY = 20
# Latent values from which factorising their covariance once more is felt.
_LARGE = 200


class ThetaStep(RunningMeans, LatentGaussianStep):
    """Base of the step methods that move theta, and the latent along with it.

    During tuning the random walk adapts to `target_accept`; then it is frozen.

    Attributes
    ----------
    vars : list of value variables
        Those moved, the latent and what is unobserved below it included.
    tune : bool
    adaptation : RandomWalkAdaptation or None
        None before the first draw.
    """

    progress = {"acceptance": ("Accept", "pm_acceptance")}

    def __init__(
        self, vars, model: pm.Model | None, rng, *, latent_moves: int, target_accept: float
    ):
        self.latent_moves = check_at_least("latent_moves", latent_moves, 0)
        self.target_accept = check_probability("target_accept", target_accept)
        super().__init__(model, rng)
        self._moved = self._choose_variables(vars)
        self._tell_of_recording()
        self.start_chain()
        self._compile()

    def _choose_variables(self, vars) -> np.ndarray:
        """Set `vars` and return the positions in theta that this step moves."""
        read, name = self.latent_model, type(self).__name__
        chosen = named_variables(vars, read)
        moved = [rv for rv in read.hyperparameters if chosen is None or rv in chosen]
        left = [rv.name for rv in read.hyperparameters if rv not in moved]
        if not moved:
            raise ValueError(
                f"{name} has no hyper-parameter to move (the model has "
                f"{[rv.name for rv in read.hyperparameters]}). Use EllipticalSlice for "
                f"{read.latent.name!r} alone."
            )
        if left:
            self._refuse_to_share(left)
            log.info(
                "%s leaves %s to other steps (NUTS where none is given).", name, ", ".join(left)
            )
        values = [read.model.rvs_to_values[rv] for rv in moved]
        self._warn_of_many(values)
        self.vars = [*values, read.latent_value, *read.unobserved.values]
        return np.r_[tuple(read.slices[value.name] for value in values)]

    def _refuse_to_share(self, left: list[str]) -> None:
        """Raise if other steps may not move the hyper-parameters of these names."""

    def _warn_of_many(self, values) -> None:
        read = self.latent_model
        sizes = {value: int(np.prod(read.shapes[value.name])) for value in values}
        if sum(sizes.values()) > _MANY:
            log.warning(
                "%s moves %d hyper-parameters by a random walk, which explores so many slowly; "
                "PseudoMarginalHMC is made for many. "
                "If %s is a vector of Gaussian effects, put its covariance into that of %s "
                "instead.",
                type(self).__name__,
                sum(sizes.values()),
                read.model.values_to_rvs[max(sizes, key=sizes.get)].name,
                read.latent.name,
            )

    def _tell_of_recording(self) -> None:
        read = self.latent_model
        if read.latent.whitened and read.size >= _LARGE:
            log.info(
                "PyMC computes %s from %s for every draw that it records, which builds and "
                "factorises its covariance once more. With pm.gp.Latent, "
                "gp.prior(..., reparameterize=False) avoids that.",
                read.latent.name,
                read.latent.free_rv.name,
            )

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        super().start_chain()
        self.tune = True
        self.adaptation: RandomWalkAdaptation | None = None
        self._forget()

    def _forget(self):
        """Forget what is remembered for speed only."""
        self._walk: tuple[RandomWalkAdaptation, Proposal] | None = None

    def reset_tuning(self):
        """Tune from the start (PyMC calls this before a chain)."""
        self.adaptation = None
        self._forget()

    def stop_tuning(self):
        """Freeze the proposal."""
        self.tune = False
        self._forget()

    def _log_prior(self, theta: np.ndarray) -> float:
        log_prior = self.latent_model.log_prior(theta)
        if not np.isfinite(log_prior):
            raise NumericalFailure("The log prior of the hyper-parameters is not finite.")
        return log_prior

    def _compile(self):
        """Evaluate once, so that all is compiled before the chains go their ways."""
        read = self.latent_model
        theta = read.theta(read.initial_point)
        try:
            with self._one_blas_thread():
                prior = self._evaluate(theta).prior
                read.draw_unobserved(np.random.default_rng(0), theta, prior.mean)
        except NumericalFailure:
            pass  # the chain may start elsewhere; if not, its first step will say so

    def _evaluate(self, theta: np.ndarray):
        """What the transition knows at theta; raises NumericalFailure where there is nothing."""
        raise NotImplementedError

    def _start_adaptation(self, theta: np.ndarray) -> None:
        if self.adaptation is None:
            self.adaptation = RandomWalkAdaptation.starting_at(theta[self._moved])

    def _proposal(self) -> Proposal:
        """Of the moved part of theta, as it is tuned now."""
        return self.adaptation.proposal()

    def _propose(self, rng, theta):
        if self._walk is None or self._walk[0] is not self.adaptation:
            self._walk = self.adaptation, self._proposal()
        return self._of_all(self._walk[1])(rng, theta)

    def _of_all(self, proposal: Proposal) -> Proposal:
        """Of theta, by a proposal of its moved part."""

        def propose(rng, theta):
            proposed = theta.copy()
            proposed[self._moved], log_ratio = proposal(rng, theta[self._moved])
            return proposed, log_ratio

        return propose

    def _adapt(self, theta: np.ndarray, acceptance: float) -> None:
        if self.tune:
            self.adaptation = self.adaptation.updated(
                theta[self._moved], acceptance, self.target_accept
            )

    def _updates(self, theta, f, prior) -> dict[str, np.ndarray]:
        """The value variables at (theta, f), what is unobserved drawn anew."""
        model = self.latent_model
        updates = model.hyper_point(theta)
        updates[model.latent_value.name] = model.stored_latent(f, prior)
        return updates | model.draw_unobserved(self.rng, theta, f)

    def _describe(self, **settings) -> str:
        """For `repr`: the variables and the settings."""
        read = self.latent_model
        rvs, hyper = read.model.values_to_rvs, read.hyper_values
        moved = [rvs[value].name for value in self.vars if value in hyper]
        names = ", ".join([*moved, read.latent.name])
        shown = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        return f"{type(self).__name__}([{names}], {shown})"
