"""What a step method does to propose theta from a density fitted to its tuning draws."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_choice
from pymc_pseudomarginal.numerics import NumericalFailure
from pymc_pseudomarginal.step_methods.importance_step import ImportanceStep
from pymc_pseudomarginal.transitions.effort import while_tuned
from pymc_pseudomarginal.transitions.fitted_density import FittedDensity, StudentT
from pymc_pseudomarginal.transitions.proposals import FittedOrWalk, Proposal, expected_acceptance
from pymc_pseudomarginal.transitions.pseudo_marginal import approximate_level
from pymc_pseudomarginal.transitions.tuning_record import TuningRecord

PROPOSALS = ("auto", "random-walk", "fitted")
# Thetas to each hyper-parameter at which the log posterior is interpolated: so many tuning draws,
# and as many draws from a Student t, which reach further out.
_POINTS_EACH = 16
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
    fitted : FittedDensity or None
        None before the end of tuning, and where the random walk stays.
    """

    def __init__(self, vars, model: pm.Model | None, rng, *, proposal: str, **settings):
        self.proposal = check_choice("proposal", proposal, PROPOSALS)
        super().__init__(vars, model, rng, **settings)

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        self.fitted: FittedDensity | None = None
        super().start_chain()

    def _settle_proposal(self, record: TuningRecord) -> str:
        if self.proposal == "fitted" or (self.proposal == "auto" and self._few(record)):
            fitted = self._fit(record)
            if self.proposal == "fitted" and fitted is None:
                return "random walk (too few tuning draws for a fitted density)"
            if self.proposal == "fitted" or (fitted is not None and _pays(fitted)):
                self.fitted = fitted
        return "random walk" if self.fitted is None else "proposals from a fitted density"

    def _few(self, record: TuningRecord) -> bool:
        # Others may move the rest of theta, on which the density would depend.
        return record.thetas.shape[1] == len(self._moved) <= FEW

    def _fit(self, record: TuningRecord) -> FittedDensity | None:
        """To the approximate posterior of what this step moves; None if too little is known."""
        moved = record.thetas[:, self._moved]
        d = moved.shape[1]
        if len(np.unique(moved, axis=0)) < _DRAWS_EACH * d:
            return None
        base = StudentT.fitted(moved)
        thetas = np.repeat(record.spread_out(_POINTS_EACH * d), 2, axis=0)
        thetas[1::2, self._moved] = base.draw(self.rng, len(thetas) // 2)
        levels = np.array([self._level(theta) for theta in thetas])
        known = np.isfinite(levels)
        if not known.any():
            return None
        return FittedDensity.fitted(base, thetas[known][:, self._moved], levels[known])

    def _level(self, theta):
        """Approximate log posterior density, minus infinity where there is none."""
        name = while_tuned(self._approximation_used)
        try:
            return approximate_level(self._conditional(theta, name, self._start(theta, name)))
        except NumericalFailure:
            return -np.inf

    def _proposal(self) -> Proposal:
        walk = super()._proposal()
        return walk if self.fitted is None else FittedOrWalk(self.fitted, walk)


def _pays(fitted: FittedDensity) -> bool:
    """Whether draws of the fitted density move theta faster than the walk."""
    acceptance = expected_acceptance(fitted.errors, fitted.errors)
    # Effective draws to each draw: of an independence sampler about a / (2 - a), of a
    # tuned random walk about 0.3 / d (Gelman, Gilks & Roberts 1997).
    return acceptance / (2.0 - acceptance) > 0.3 / fitted.points.shape[1]
