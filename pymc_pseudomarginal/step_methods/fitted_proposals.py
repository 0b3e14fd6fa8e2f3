"""What a step method does to propose theta from a density fitted to its tuning draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_choice
from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.step_methods.compat import message
from pymc_pseudomarginal.step_methods.exploring_step import FEW
from pymc_pseudomarginal.step_methods.importance_step import ImportanceStep
from pymc_pseudomarginal.transitions.effort import FITTED, while_tuned
from pymc_pseudomarginal.transitions.fitted_density import FittedDensity
from pymc_pseudomarginal.transitions.proposals import (
    FilteredWalk,
    FittedOrWalk,
    Proposal,
    expected_acceptance,
)
from pymc_pseudomarginal.transitions.pseudo_marginal import Info, State
from pymc_pseudomarginal.transitions.student_t import StudentT
from pymc_pseudomarginal.transitions.trial import acceptance_on_trial
from pymc_pseudomarginal.transitions.tuning_record import TuningRecord

PROPOSALS = ("auto", "random-walk", "fitted")

# Acceptance on trial below which nothing fitted is used, asked for or not: an independence sampler
# with it has 0.08 effective draws to a draw, as a random walk has in four dimensions, and what
# is accepted less often in the mean is so because it is hardly ever in places.
_FAIR = 0.15
# Fresh proposals on trial to each hyper-parameter; half as many are counted. Exploring for the fit
# took twice as many evaluations.
_TRIALS_EACH = 24


class FittedProposals(ImportanceStep):
    """Base of a step method that fits a density at the end of tuning, if that pays.

    Attributes
    ----------
    proposal : {"auto", "random-walk", "fitted"}
    delayed_acceptance : bool
    fitted : FittedDensity or None
        None before the end of tuning, and where the random walk stays as it is.
    """

    def __init__(
        self,
        vars,
        model: pm.Model | None,
        rng,
        *,
        proposal: str,
        delayed_acceptance: bool,
        **settings,
    ):
        self.proposal = check_choice("proposal", proposal, PROPOSALS)
        self.delayed_acceptance = bool(delayed_acceptance)
        super().__init__(vars, model, rng, **settings)
        if self.delayed_acceptance and self.approximation == FITTED and not self._all_are_few:
            raise ValueError(
                "delayed_acceptance needs an approximation of the marginal likelihood, which "
                f'approximation="fitted" has for up to {FEW} hyper-parameters, all of which this '
                'step moves. Use approximation="ep".'
            )

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        self.fitted: FittedDensity | None = None
        super().start_chain()

    def _settle_proposal(self, record: TuningRecord) -> str:
        if not (self._filters if self.proposal == "random-walk" else self._would_fit):
            return "random walk"
        fitted = self._fit(record)
        if fitted is None:
            few = self.proposal == "fitted"
            return "random walk" + " (too few tuning draws for a fitted density)" * few
        if self.proposal == "auto" and not _pays(
            expected_acceptance(fitted.errors, fitted.errors), fitted
        ):
            return "random walk"
        self._use_if_accepted(fitted, record.thetas[-1])
        if self.fitted is None:
            return "random walk"
        past = self.proposal == "random-walk"
        return "random walk past a fitted density" if past else "proposals from a fitted density"

    @property
    def _would_fit(self) -> bool:
        return self.proposal == "fitted" or self._all_are_few

    def _use_if_accepted(self, fitted: FittedDensity, theta: np.ndarray) -> None:
        """Nothing that is fitted says by itself whether it is so to the posterior."""
        self.fitted = fitted
        acceptance = self._try(theta)
        enough = self.proposal != "auto" or _pays(acceptance, fitted)
        if acceptance < _FAIR or not enough:
            self.fitted = None
            self._said.append(
                message(
                    f"{type(self).__name__}: the random walk stays, since proposals from a fitted "
                    f"density were accepted with a probability of {acceptance:.2f} on trial. A "
                    "longer tuning may help.",
                    "info",
                )
            )

    def _try(self, theta: np.ndarray) -> float:
        """Acceptance of fresh proposals by the fitted density, from theta on."""
        walk = self.adaptation.proposal()
        kind = self._proposal()
        try:
            there = self._evaluate(theta)
            f = there.importance_set(self.rng, self.effort.n_importance).pick(self.rng)
            return acceptance_on_trial(
                State(there, f),
                lambda state, proposal: self._transition(state, self._of_all(proposal)),
                replace(kind, share=1.0),
                walk,
                _TRIALS_EACH * len(self._moved),
            )
        except NumericalFailure:
            return 0.0

    def _transition(self, state: State, propose: Proposal) -> tuple[State, Info]:
        """Of the chain, after tuning."""
        raise NotImplementedError

    @property
    def _all_are_few(self) -> bool:
        # Others may move the rest of theta, on which the density would depend.
        size = sum(int(np.prod(shape)) for shape in self.latent_model.shapes.values())
        return size == len(self._moved) <= FEW

    @property
    def _filters(self) -> bool:
        """Whether a first stage is by a density that is fitted at the end of tuning."""
        return self.delayed_acceptance and self._approximation_used == FITTED

    @property
    def _delays(self) -> bool:
        """Whether a first stage is by the approximate marginal."""
        return self.delayed_acceptance and self._approximation_used != FITTED

    def _candidates(self):
        if not self.delayed_acceptance or self._all_are_few:
            return super()._candidates()
        used = self._approximation_used
        return ["laplace", "ep"] if (self.approximation, used) == ("auto", "laplace") else [used]

    def _fit(self, record: TuningRecord) -> FittedDensity | None:
        """To the approximate posterior of what this step moves; None if too little is known."""
        found = self._explore(record, while_tuned(self._approximation_used))
        if found is None:
            return None
        base = StudentT.fitted(record.thetas[:, self._moved])
        return FittedDensity.fitted(base, found.thetas[:, self._moved], found.levels)

    def _proposal(self) -> Proposal:
        walk = super()._proposal()
        if self.fitted is None:
            return walk
        if self.proposal == "random-walk":
            return FilteredWalk(walk, self.fitted)
        return FittedOrWalk(self.fitted, walk)


def _pays(acceptance: float, fitted: FittedDensity) -> bool:
    """Whether draws of a fitted density, so often accepted, move theta faster than the walk."""
    # Effective draws to each draw: of an independence sampler about a / (2 - a), which moves across
    # the density exceed; of a tuned random walk about 0.3 / d (Gelman, Gilks & Roberts 1997).
    return acceptance / (2.0 - acceptance) > 0.3 / len(fitted.base.centre)
