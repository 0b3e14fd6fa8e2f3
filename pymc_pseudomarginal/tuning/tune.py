"""Tuning that cannot miss: modes first, then where the mass is, then what it is worth.

Nothing that was fitted is used before its acceptance was measured on draws to which it was not
fitted, and all is decided by counts and the generator, never by a clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pymc_pseudomarginal.kernels.grid_density import GridDensity
from pymc_pseudomarginal.kernels.proposals import ThetaProposals
from pymc_pseudomarginal.kernels.rotation import QUARTER_TURN
from pymc_pseudomarginal.kernels.target import Target
from pymc_pseudomarginal.tuning.choice import FAIR, Rates, choose
from pymc_pseudomarginal.tuning.fitting import Fit, best_fit, walk_proposals
from pymc_pseudomarginal.tuning.marginal import Marginal
from pymc_pseudomarginal.tuning.modes import find_modes
from pymc_pseudomarginal.tuning.trial import NEVER, Trial, try_proposals
from pymc_pseudomarginal.tuning.tuned import Measured, Tuned

# Where no other places to begin the search for modes at are given: pairs on opposite sides of the
# start, one of them only where there are many hyper-parameters, and how far from it they are.
_PAIRS, _MANY, _APART = 2, 4, 2.0
_RHOS = (0.3, 0.6, 0.85)
_SHORTER = 0.5
_STEPS = 10
# Acceptance of independent proposals of theta from which on nothing else is tried.
_WELL = 0.5


def tune(
    target: Target,
    start: np.ndarray,
    rng: np.random.Generator,
    draws: int = 1000,
    points: Sequence[np.ndarray] = (),
) -> Tuned:
    """Find where the posterior is, fit a density there, measure it, and choose the moves.

    Parameters
    ----------
    target : Target
        As it is before it learnt anything; draws need `target.thawed(tuned.frozen)`.
    start : array, shape (d,)
        Where the first search for a mode begins.
    rng : numpy.random.Generator
    draws : int
        Evaluations of q that exploring may take about, where the model needs many.
    points : sequence of arrays, shape (d,), optional
        Where further searches begin, draws of the prior for example; around the start if not
        given.

    Raises
    ------
    NoFiniteApproximation
        When the posterior density is finite nowhere near the start.
    """
    start = np.asarray(start, dtype=float)
    marginal = Marginal(target)
    modes = find_modes(marginal, _starts(start, points, rng), rng)
    fit, target, spent = best_fit(marginal, modes, rng, draws)
    walk, scale = _best_walk(fit, target, rng)
    autoregression, rho = _best_autoregression(fit, target, rng)
    pilot, d = fit.pilot, target.dim_theta
    progresses = (autoregression.progress, walk.progress)
    choice = choose(Rates(fit.joint, fit.fixed, *progresses, pilot.noise, pilot.kicks), d)
    spent += marginal.evaluations + autoregression.evaluations
    return Tuned(
        proposals=ThetaProposals(fit.density, scale * fit.unit, rho, choice.shares),
        joint_share=choice.joint_share,
        moves=choice.moves,
        kicks=pilot.kicks,
        angle=QUARTER_TURN,
        settle=_settling(d, fit),
        measured=Measured(
            joint=float(fit.joint.mean()),
            fixed=float(fit.fixed.mean()) if d else math.nan,
            autoregression=autoregression.acceptance,
            walk=walk.acceptance,
            noise=pilot.noise,
            modes=len(modes),
            evaluations=spent + (walk.evaluations if walk is not fit.walk else 0),
        ),
        frozen=target.frozen(),
    )


def _starts(
    start: np.ndarray, points: Sequence[np.ndarray], rng: np.random.Generator
) -> list[np.ndarray]:
    """The start first, then the points, or some around it."""
    if not len(start) or len(points):
        return [start, *points]
    pairs = 1 if len(start) > _MANY else _PAIRS
    aside = _APART * rng.standard_normal((pairs, len(start)))
    return [start, *(start + aside), *(start - aside)]


def _best_walk(fit: Fit, target: Target, rng: np.random.Generator) -> tuple[Trial, float]:
    """The trial of the walk that fitting made, or one of half the length; and its scale."""
    if not target.dim_theta:
        return NEVER, 1.0
    results = [(fit.walk, fit.scale)]
    if fit.fixed.mean() < _WELL:
        scale = _SHORTER * fit.scale
        proposals = walk_proposals(fit.density, scale * fit.unit)
        results.append((_tried(fit, proposals, target, rng), scale))
    return max(results, key=lambda result: result[0].progress)


def _best_autoregression(fit: Fit, target: Target, rng: np.random.Generator) -> tuple[Trial, float]:
    """The best correlation of autoregressive steps, where independent ones are not good."""
    if not target.dim_theta:
        return NEVER, 0.0
    if isinstance(fit.density.fitted, GridDensity) or fit.fixed.mean() >= _WELL:
        return NEVER, 0.0
    results = []
    for rho in _RHOS:
        proposals = ThetaProposals(fit.density, fit.unit, rho, np.array([0.0, 1.0, 0.0]))
        results.append((_tried(fit, proposals, target, rng), rho))
    fair = [result for result in results if result[0].acceptance >= FAIR]
    return max(fair, key=lambda result: result[0].progress, default=(NEVER, 0.0))


def _tried(fit: Fit, proposals: ThetaProposals, target: Target, rng: np.random.Generator) -> Trial:
    return try_proposals(proposals, target, rng, fit.pilot, fit.unit, _STEPS)


def _settling(dim_theta: int, fit: Fit) -> int:
    """Draws until an over-dispersed start is forgotten."""
    return 5 if fit.fixed.mean() >= FAIR else 10 * dim_theta
