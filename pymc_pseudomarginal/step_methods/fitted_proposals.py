"""What a step method does to propose theta from a density fitted to its tuning draws."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_choice
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
from pymc_pseudomarginal.transitions.student_t import StudentT
from pymc_pseudomarginal.transitions.tuning_record import TuningRecord

PROPOSALS = ("auto", "random-walk", "fitted")


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
        if self.proposal == "random-walk":
            if self._filters:
                self.fitted = self._fit(record)
            return "random walk" if self.fitted is None else "random walk past a fitted density"
        if self.proposal == "fitted" or self._all_are_few:
            fitted = self._fit(record)
            if self.proposal == "fitted" and fitted is None:
                return "random walk (too few tuning draws for a fitted density)"
            if self.proposal == "fitted" or (fitted is not None and _pays(fitted)):
                self.fitted = fitted
        return "random walk" if self.fitted is None else "proposals from a fitted density"

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


def _pays(fitted: FittedDensity) -> bool:
    """Whether draws of the fitted density move theta faster than the walk."""
    acceptance = expected_acceptance(fitted.errors, fitted.errors)
    # Effective draws to each draw: of an independence sampler about a / (2 - a), which moves across
    # the density exceed; of a tuned random walk about 0.3 / d (Gelman, Gilks & Roberts 1997).
    return acceptance / (2.0 - acceptance) > 0.3 / len(fitted.base.centre)
