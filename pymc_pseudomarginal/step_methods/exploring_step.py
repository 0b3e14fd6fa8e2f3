"""What the step methods share that explore an approximation around their tuning draws."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.model import UnsupportedModelError
from pymc_pseudomarginal.numerics import NumericalFailure, given_sites
from pymc_pseudomarginal.step_methods.marginal_step import MarginalStep
from pymc_pseudomarginal.transitions.effort import FITTED, while_tuned
from pymc_pseudomarginal.transitions.fitted_sites import FittedSites
from pymc_pseudomarginal.transitions.pseudo_marginal import approximate_level
from pymc_pseudomarginal.transitions.student_t import StudentT
from pymc_pseudomarginal.transitions.tuning_record import Exploration, TuningRecord
from pymc_pseudomarginal.transitions.warm_start import Prediction, WarmStart

# Thetas from which another approximation learns where to start.
_ANCHORS = 32
# Thetas to each hyper-parameter that are explored at the end of tuning: so many tuning draws,
# and as many draws from a Student t, which reach further out.
_POINTS_EACH = 24
# Different tuning draws to each hyper-parameter without which nothing is fitted to them.
_DRAWS_EACH = 10

FEW = 5
"""Hyper-parameters up to which functions of them are interpolated. With eleven, proposals from a
fitted density were accepted often enough and still left tails out for long."""


class ExploringStep(MarginalStep):
    """Base of the step methods that may know the sites of EP without running it.

    At the end of tuning EP is run at some thetas, and its sites are fitted to theta.

    Attributes
    ----------
    sites : FittedSites or None
        None before the end of tuning, and where none are fitted.
    """

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        self.sites: FittedSites | None = None
        self._end_exploration()
        super().start_chain()

    def _approximate(self, theta, name, prior, likelihood, start):
        sites = self._sites(theta) if name == FITTED and not self.tune else None
        if sites is not None:
            return given_sites(prior, likelihood, sites)
        return super()._approximate(theta, while_tuned(name), prior, likelihood, start)

    def _sites(self, theta: np.ndarray) -> np.ndarray | None:
        """Those of EP at theta, as they were fitted; None where too little is known of them."""
        if self.sites is not None:
            return self.sites(theta)
        # With many hyper-parameters what served as a start must do.
        prediction = self._prediction
        known = prediction is not None and prediction.level.ndim == 2
        return prediction(theta) if known and prediction.covers(theta) else None

    def _fit_sites(self, record: TuningRecord) -> None:
        try:
            found = self._explore(record, while_tuned(FITTED))
        except UnsupportedModelError:
            if self.approximation == "auto":
                return
            raise
        if found is not None:
            base = StudentT.fitted(record.thetas)
            self.sites = FittedSites.fitted(base, found.thetas, found.anchors)

    def _explore(self, record: TuningRecord, name: str) -> Exploration | None:
        """An approximation around the tuning draws; None where these are too few."""
        if name not in self._explored:
            self._explored[name] = self._explore_anew(record, name)
        return self._explored[name]

    def _explore_anew(self, record, name):
        d = record.thetas.shape[1]
        if len(np.unique(record.thetas, axis=0)) < _DRAWS_EACH * d:
            return None
        near = record.spread_out(_POINTS_EACH * d)
        far = StudentT.fitted(record.thetas).draw(self.rng, len(near))
        thetas, levels, anchors = [], [], []
        for theta in np.concatenate([near, far]):
            try:
                there = self._conditional(theta, name, self._start(name))
            except NumericalFailure:
                continue
            thetas.append(theta)
            levels.append(approximate_level(there))
            anchors.append(there.approximation.anchor)
        if not thetas:
            return None
        return Exploration(np.array(thetas), np.array(levels), np.array(anchors))

    def _end_exploration(self) -> None:
        """Forget what was found on the way."""
        self._explored: dict[str, Exploration | None] = {}

    def _start(self, name: str) -> Prediction | None:
        """Where the approximation of that name starts: the prediction is of one of them only."""
        used = while_tuned(self._approximation_used)
        known = self._prediction is not None and while_tuned(name) == used
        return self._prediction if known else None

    def _learn_to_start(self, name: str, record: TuningRecord) -> WarmStart | None:
        learnt, name = None, while_tuned(name)
        for theta in record.spread_out(_ANCHORS):
            prediction = None if learnt is None else learnt.prediction
            try:
                anchor = self._conditional(theta, name, prediction).approximation.anchor
            except NumericalFailure:
                continue
            learnt = (learnt or WarmStart.starting_at(theta, anchor)).updated(theta, anchor)
        return None if learnt is None else learnt.refitted()
