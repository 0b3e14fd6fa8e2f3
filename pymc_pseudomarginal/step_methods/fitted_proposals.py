"""What a step method does to propose theta from a density fitted to its tuning draws."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_choice
from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.step_methods.importance_step import ImportanceStep
from pymc_pseudomarginal.transitions.proposals import (
    FittedOrWalk,
    Proposal,
    StudentT,
    expected_acceptance,
)
from pymc_pseudomarginal.transitions.pseudo_marginal import approximate_level
from pymc_pseudomarginal.transitions.tuning_record import TuningRecord

PROPOSALS = ("auto", "random-walk", "fitted")
# Thetas drawn from a fitted density to see how often its proposals would be accepted.
_TRIALS = 32
# Different tuning draws to each hyper-parameter without which no density is fitted.
_DRAWS_EACH = 10

FEW = 5
"""Hyper-parameters up to which a density is fitted. With eleven, proposals from one were accepted
often enough and still left tails out for long: fewer effective draws than by the walk."""


class FittedProposals(ImportanceStep):
    """Base of a step method that fits a density at the end of tuning, if that pays.

    Attributes
    ----------
    proposal : {"auto", "random-walk", "fitted"}
    fitted : StudentT or None
        None before the end of tuning, and where the random walk stays.
    """

    def __init__(self, vars, model: pm.Model | None, rng, *, proposal: str, **settings):
        self.proposal = check_choice("proposal", proposal, PROPOSALS)
        super().__init__(vars, model, rng, **settings)

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        self.fitted: StudentT | None = None
        super().start_chain()

    def _settle_proposal(self, record: TuningRecord) -> str:
        moved = record.thetas[:, self._moved]
        enough = len(np.unique(moved, axis=0)) >= _DRAWS_EACH * moved.shape[1]
        if self.proposal == "fitted" and not enough:
            return "random walk (too few tuning draws for a fitted density)"
        if self.proposal != "random-walk" and enough:
            fitted = StudentT.fitted(moved)
            if self.proposal == "fitted" or self._pays(fitted, record):
                self.fitted = fitted
        return "random walk" if self.fitted is None else "proposals from a fitted density"

    def _pays(self, fitted: StudentT, record: TuningRecord) -> bool:
        """Whether independent draws of the fitted density move theta faster than the walk."""
        d = len(fitted.centre)
        # Others may move the rest of theta, on which the density would depend.
        if d > FEW or d < record.thetas.shape[1]:
            return False
        # By the approximation that was chosen, which need not be that of the record.
        kept, new = (
            np.array([self._level(theta) - fitted.log_density(theta) for theta in thetas])
            for thetas in (
                record.spread_out(_TRIALS),
                [fitted.draw(self.rng) for _ in range(_TRIALS)],
            )
        )
        acceptance = expected_acceptance(kept[np.isfinite(kept)], new)
        # Effective draws to each draw: of an independence sampler about a / (2 - a), of a
        # tuned random walk about 0.3 / d (Gelman, Gilks & Roberts 1997).
        return acceptance / (2.0 - acceptance) > 0.3 / d

    def _level(self, theta):
        """Approximate log posterior density, minus infinity where there is none."""
        try:
            return approximate_level(self._evaluate(theta))
        except NumericalFailure:
            return -np.inf

    def _proposal(self) -> Proposal:
        walk = super()._proposal()
        return walk if self.fitted is None else FittedOrWalk(self.fitted, walk)
