"""g: fitted, measured, corrected by what was measured, and measured again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.kernels.grid_density import GridDensity
from pymc_pseudomarginal.kernels.proposals import CoveringDensity, ThetaProposals
from pymc_pseudomarginal.kernels.student_t import StudentMixture
from pymc_pseudomarginal.kernels.target import Target
from pymc_pseudomarginal.kernels.triangular import TriangularDensity
from pymc_pseudomarginal.tuning.choice import effective
from pymc_pseudomarginal.tuning.correction import fitted_correction
from pymc_pseudomarginal.tuning.interpolation import Densities
from pymc_pseudomarginal.tuning.lattice import MOST_AXES, Lattice
from pymc_pseudomarginal.tuning.marginal import Marginal, laplace_level
from pymc_pseudomarginal.tuning.mixture_fit import regular_factor
from pymc_pseudomarginal.tuning.modes import Mode
from pymc_pseudomarginal.tuning.pilot import Pilot, run_pilot
from pymc_pseudomarginal.tuning.scattered import Scattered
from pymc_pseudomarginal.tuning.trial import NEVER, Trial, try_proposals

_WIDE_SHARE, _WIDE_DEGREES = 0.08, 4.0
_MOMENT_DRAWS = 2000
_MOST_FITS = 3
# Effective draws per draw of independent theta at fixed noise from which on no better fit is
# looked for, and what the last one must have gained over the one before.
_GOOD, _WORTHWHILE = 0.5, 1.2
_WALK_STEPS, _FEW_STEPS, _LARGE = 10, 3, 5000


@dataclass(frozen=True)
class Fit:
    """g and what it is worth.

    Attributes
    ----------
    density : CoveringDensity
        g.
    unit : array, shape (d, d)
        Cholesky factor of its covariance without the wide component.
    pilot : Pilot
    walk : Trial
        Of random walks of step scale times the unit.
    scale : float
    joint, fixed : arrays, shape (k,)
        Acceptance of draws of g with fresh noise, and at fixed noise, from draws of the target,
        of the pilot and of the walks.
    """

    density: CoveringDensity
    unit: np.ndarray
    pilot: Pilot
    walk: Trial
    scale: float
    joint: np.ndarray
    fixed: np.ndarray

    @property
    def worth(self) -> float:
        """Effective draws of theta for every draw of g at fixed noise."""
        return effective(self.fixed)


def best_fit(
    marginal: Marginal, modes: Sequence[Mode], rng: np.random.Generator, budget: int
) -> tuple[Fit, Target, int]:
    """Explore from the modes, fit and measure, up to three times.

    Parameters
    ----------
    marginal : Marginal
        The density to explore, with the target.
    modes : sequence of Mode
        The highest first.
    rng : numpy.random.Generator
    budget : int
        Evaluations that exploring may take about.

    Returns
    -------
    fit : Fit
    target : Target
        With what it learnt.
    evaluations : int
        Thetas at which q was computed to measure the fits.
    """
    target, centre = marginal.target, modes[0].theta
    if not len(centre):
        return _measured(_NO_DENSITY, centre[None].T, target, rng, centre), target, 1
    explored = _explored(marginal, modes, rng, budget // 2)
    target = target.learn_start(marginal.conditionals())
    fits = [_measured(*_covering(explored.density(), rng), target, rng, centre)]
    while len(fits) < _MOST_FITS and fits[-1].worth < _GOOD and _improved(fits):
        correction = _learnt(fits[-1], marginal)
        if isinstance(explored, Lattice) and len(centre) > 1:
            explored = Scattered(marginal, modes, rng)
        if isinstance(explored, Scattered):
            explored.explore(budget * (len(fits) + 2) // (_MOST_FITS + 1))
        fits.append(_measured(*_covering(explored.density(correction), rng), target, rng, centre))
    spent = sum(fit.pilot.evaluations + fit.walk.evaluations for fit in fits)
    return max(fits, key=lambda fit: fit.worth), target, spent


def walk_proposals(density: CoveringDensity, factor: np.ndarray) -> ThetaProposals:
    """Random walks alone, with steps N(0, factor factor')."""
    return ThetaProposals(density, factor, 0.0, np.array([0.0, 0.0, 1.0]))


def _explored(marginal, modes, rng, budget):
    """A lattice where one is affordable and does, else a search by walkers."""
    d = len(modes[0].theta)
    if d <= MOST_AXES:
        lattice = Lattice.explored(marginal, modes)
        if lattice.complete or d == 1:
            return lattice
    scattered = Scattered(marginal, modes, rng)
    scattered.explore(budget)
    return scattered


def _improved(fits):
    return len(fits) < 2 or fits[-1].worth > _WORTHWHILE * fits[-2].worth


def _measured(
    density: CoveringDensity,
    unit: np.ndarray,
    target: Target,
    rng: np.random.Generator,
    centre: np.ndarray,
) -> Fit:
    """A pilot, then walks from where it was: they come to places that g does not propose."""
    pilot = run_pilot(target, density, rng, centre)
    if not len(centre):
        return Fit(density, unit, pilot, NEVER, 1.0, pilot.joint, pilot.fixed)
    scale = 2.38 / math.sqrt(len(centre))
    steps = _WALK_STEPS if target.size < _LARGE else _FEW_STEPS
    proposals = walk_proposals(density, scale * unit)
    walk = try_proposals(proposals, target, rng, pilot, unit, steps)
    levels = pilot.fresh.levels_at(np.array([state.u for state in walk.states]))
    joint, fixed = pilot.fresh.acceptances(walk.states, levels)
    joint, fixed = np.concatenate([pilot.joint, joint]), np.concatenate([pilot.fixed, fixed])
    return Fit(density, unit, pilot, walk, scale, joint, fixed)


def _covering(
    fitted: GridDensity | StudentMixture | TriangularDensity, rng: np.random.Generator
) -> tuple[CoveringDensity, np.ndarray]:
    """The fitted density with the wide component, and the factor of its covariance."""
    sample = fitted.draw(rng, _MOMENT_DRAWS)
    d = sample.shape[1]
    unit = regular_factor(np.cov(sample.T).reshape(d, d))
    # In many dimensions even a little more width in each is far outside.
    wider = 1.0 + min(1.0, 4.0 / d)
    wide = StudentMixture.single(sample.mean(axis=0), wider * unit, _WIDE_DEGREES)
    return CoveringDensity(fitted, wide, _WIDE_SHARE), unit


def _learnt(fit: Fit, marginal: Marginal) -> Densities:
    """What the pilot says of the posterior over Laplace's; all that was evaluated is remembered."""
    fresh = fit.pilot.fresh
    levels = np.array([laplace_level(state.conditional) for state in fresh.states])
    for theta, level in zip(fresh.thetas, levels, strict=True):
        marginal.remember(theta, float(level))
    for state in fit.walk.states:
        marginal.remember(state.theta, laplace_level(state.conditional))
    differences = fit.pilot.log_ratios + fresh.log_densities - levels
    return fitted_correction(fresh.thetas, fit.pilot.log_ratios, differences, fit.unit)


_NOTHING = StudentMixture.single(np.empty(0), np.empty((0, 0)), _WIDE_DEGREES)
_NO_DENSITY = CoveringDensity(_NOTHING, _NOTHING, _WIDE_SHARE)
