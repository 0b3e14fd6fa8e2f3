"""Two and more hyper-parameters: weighted points that show where the posterior is.

Values of the log density are exact, so that they are interpolated, not counted: walkers on the
interpolation cost nothing, some of their places are looked up, and what is found there is
interpolated again, until nothing is found that was not expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from pymc_pseudomarginal.kernels.proposals import CoveringDensity
from pymc_pseudomarginal.kernels.student_t import StudentMixture
from pymc_pseudomarginal.kernels.triangular import TriangularDensity
from pymc_pseudomarginal.tuning.interpolation import DEEPEST, Densities, interpolated
from pymc_pseudomarginal.tuning.marginal import Marginal
from pymc_pseudomarginal.tuning.mixture_fit import fit_mixture, regular_factor, weighted_moments
from pymc_pseudomarginal.tuning.modes import Mode
from pymc_pseudomarginal.tuning.triangular_fit import fit_triangular
from pymc_pseudomarginal.tuning.walkers import walked

# Places looked up in a round: so many, so many for each hyper-parameter, and no less than this
# share of those before, so that there are few rounds.
_LOOKS, _LOOKS_EACH, _GROWTH = 8, 8, 0.3
_FEWEST_ROUNDS = 2
# Root mean square errors of what was expected, in the tails and in the bulk, that end the search.
_OUTER, _INNER = 0.8, 0.3
_LARGEST_ERROR = 3.0
# Depth below the best from which on a place is none to begin at.
_UPPER = 12.0
# Half of the looks are so far beyond the bulk, in standard deviations.
_FARTHER = 1.0
_STEPS, _LAST_STEPS, _LAST_STEPS_EACH = 60, 60, 30
_BEGINNINGS = 200
_AROUND = 1.5
_DRAWS, _WIDE_SHARE, _WIDER, _DEGREES = 3000, 0.2, 1.2, 4.0
_FEWEST_EFFECTIVE = 400
# Standard deviation of log(density / fit) from which on another kind of fit is tried.
_POOR_FIT = 0.6


class Scattered:
    """A search for where the approximate marginal posterior is.

    Parameters
    ----------
    marginal : Marginal
        The log density, and what is known of it.
    modes : sequence of Mode
    rng : numpy.random.Generator
    """

    def __init__(self, marginal: Marginal, modes: Sequence[Mode], rng: np.random.Generator):
        d = len(modes[0].theta)
        self._marginal, self._rng = marginal, rng
        self._fewest = _LOOKS + _LOOKS_EACH * d
        self._heat = (1.0 + _FARTHER / math.sqrt(d)) ** -2
        self._places = _around(modes, rng, self._fewest)
        self._found = marginal.looked_up(self._places)
        self._expected = self._found

    @property
    def evaluations(self) -> int:
        """Number of places that were looked up."""
        return len(self._found)

    def explore(self, budget: int) -> None:
        """Look until nothing is found that was not expected.

        Parameters
        ----------
        budget : int
            Places to look up at most, with those before.
        """
        rounds, settled = 0, False
        while rounds < _FEWEST_ROUNDS or not settled:
            count = max(self._fewest, int(_GROWTH * self.evaluations))
            if self.evaluations + count > budget and rounds:
                break
            settled = self._look(count // 2)
            rounds += 1

    def density(self, correction: Densities | None = None) -> TriangularDensity | StudentMixture:
        """A fit to what was found, times exp(correction(thetas)) if there is one."""
        log_density, begin = self._interpolated()
        steps = _LAST_STEPS + _LAST_STEPS_EACH * begin.shape[1]
        points, levels = walked(log_density, begin, self._rng, steps)
        points, weights, levels = _sharpened(log_density, points, levels, self._rng)
        if correction is not None:
            logs = correction(points)
            weights = weights * np.exp(logs - logs.max())
            weights, levels = weights / weights.sum(), levels + logs
        return _fitted(points, weights, levels)

    def _look(self, half):
        """Walkers, in the tails and in the bulk; whether the log density is as expected there."""
        log_density, begin = self._interpolated()
        heat, rng = self._heat, self._rng
        outer, outer_levels = walked(lambda x: heat * log_density(x), begin, rng, _STEPS)
        inner, inner_levels = walked(log_density, outer, rng, _STEPS)
        far, close = (rng.choice(len(outer), size=half) for _ in range(2))
        places = np.concatenate([outer[far], inner[close]])
        expected = np.concatenate([outer_levels[far] / heat, inner_levels[close]])
        found = self._marginal.looked_up(places)
        self._places = np.concatenate([self._places, places])
        self._found = np.concatenate([self._found, found])
        self._expected = np.concatenate([self._expected, expected])
        errors = np.maximum(found - expected, -DEEPEST)
        return _size(errors[:half]) < _OUTER and _size(errors[half:]) < _INNER

    def _interpolated(self):
        """The log density, and places of weight to begin at."""
        # Weights of what was found over what was expected: walkers may have been led astray.
        logs = np.clip(self._found - self._expected, -DEEPEST, 2.0)
        logs = np.where(self._found > self._found.max() - _UPPER, logs, -np.inf)
        weights = np.exp(logs - logsumexp(logs))
        near = fit_triangular(self._places, weights, components=1)
        begin = self._rng.choice(len(weights), size=_BEGINNINGS, p=weights)
        known = self._marginal
        return interpolated(known.thetas, known.values, near), self._places[begin]


def _fitted(points, weights, levels):
    """The triangular density or, where it fits badly and the other one better, the mixture."""
    triangular = fit_triangular(points, weights)
    rest = levels - triangular.log_density(points)
    if weights @ (rest - weights @ rest) ** 2 < _POOR_FIT**2:
        return triangular
    scores = []
    for fit in (fit_triangular, _mixture):
        # Rows in turn, so that a walker is on one side only.
        density = fit(points[::2], weights[::2] / weights[::2].sum())
        scores.append(weights[1::2] @ density.log_density(points[1::2]))
    return triangular if scores[0] > scores[1] else _mixture(points, weights)


def _mixture(points, weights):
    return fit_mixture(points, weights, most=8)


def _sharpened(log_density, points, levels, rng):
    """Independent draws of a fit, weighted, where they are worth more than the walkers'."""
    equal = np.full(len(points), 1.0 / len(points))
    mean, covariance = weighted_moments(points, equal)
    wide = StudentMixture.single(mean, _WIDER * regular_factor(covariance), _DEGREES)
    density = CoveringDensity(fit_triangular(points, equal), wide, _WIDE_SHARE)
    drawn = density.draw(rng, _DRAWS)
    drawn_levels = log_density(drawn)
    logs = drawn_levels - density.log_density(drawn)
    weights = np.exp(logs - logsumexp(logs))
    if weights @ weights * _FEWEST_EFFECTIVE > 1.0:
        return points, equal, levels
    return drawn, weights, drawn_levels


def _around(modes, rng, count):
    """Draws of normals around the modes, by their masses."""
    masses = np.array([mode.level + np.linalg.slogdet(mode.factor)[1] for mode in modes])
    shares = np.maximum(np.exp(masses - logsumexp(masses)), 0.1)
    chosen = rng.choice(len(modes), size=count, p=shares / shares.sum())
    noise = _AROUND * rng.standard_normal((count, len(modes[0].theta)))
    return np.array(
        [modes[k].theta + modes[k].factor @ z for k, z in zip(chosen, noise, strict=True)]
    )


def _size(errors):
    return math.sqrt(np.mean(np.clip(errors, -_LARGEST_ERROR, _LARGEST_ERROR) ** 2))
