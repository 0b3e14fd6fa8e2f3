"""Elliptical slice sampling of f given theta."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DensePrior

# Where rounding has closed the bracket around the current point, stay there.
_SMALLEST_BRACKET = 1e-12
_WHOLE = 2.0 * math.pi
# Width of the first bracket in mean angles of the moves: few are then cut short, and fewer
# angles are tried in vain. For a mean these count, and of the moves before little is left.
_WIDE, _MEMORY = 6.0, 100


@dataclass(frozen=True)
class SliceInfo:
    """What one or several elliptical-slice moves did.

    Attributes
    ----------
    evaluations : int
        Evaluations of the likelihood, the one at the starting point included.
    log_likelihood : float
        log p(y|f) at the point arrived at.
    angle : float
        By which the last move went along the ellipse, either way.
    """

    evaluations: int
    log_likelihood: float
    angle: float


@dataclass(frozen=True)
class Bracket:
    """How wide the first bracket of a slice is, learnt from the moves of a chain that is tuned.

    Most of an ellipse is where the likelihood is too low. Any width is exact that does not depend
    on the chain, so that it is frozen afterwards.

    Attributes
    ----------
    width : float
        Of the angles that are tried first, up to the whole ellipse.
    mean : float
        Running mean of the angles.
    moves : int
        That were seen.
    """

    width: float = _WHOLE
    mean: float = 0.0
    moves: int = 0

    def updated(self, angle: float) -> Bracket:
        """After one more move by that angle."""
        moves = self.moves + 1
        mean = self.mean + (angle - self.mean) / min(moves, _MEMORY)
        return Bracket(self.width, mean, moves)

    def learnt(self) -> Bracket:
        """With a width that suits the moves; the whole ellipse where they were too few."""
        known = self.moves >= _MEMORY and self.mean > 0.0
        return Bracket(min(_WIDE * self.mean, _WHOLE) if known else _WHOLE, self.mean, self.moves)


def elliptical_slice(
    rng: np.random.Generator,
    f: np.ndarray,
    prior: DensePrior,
    likelihood: Likelihood,
    *,
    moves: int = 1,
    width: float = _WHOLE,
) -> tuple[np.ndarray, SliceInfo]:
    """Move f, leaving p(f|y) ∝ N(f|m, K) p(y|f) invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    f : array, shape (n,)
        The current point, where p(y|f) > 0.
    prior : DensePrior
        N(m, K).
    likelihood : Likelihood
    moves : int
        How many moves to make in sequence.
    width : float
        Of the first bracket, which lies at random around the current point.

    Returns
    -------
    f : array, shape (n,)
    info : SliceInfo

    References
    ----------
    Murray, Adams & MacKay (2010), Elliptical slice sampling, AISTATS.
    """
    centred = f - prior.mean
    level = float(likelihood.log_density(f))
    evaluations, angle = 1, 0.0
    for _ in range(moves):
        other = prior.colour(rng.standard_normal(prior.size))
        threshold = level + np.log(rng.uniform())
        angle = width * rng.random()
        bracket = [angle - width, angle]
        while True:
            candidate = on_ellipse(centred, other, angle)
            candidate_level = float(likelihood.log_density(prior.mean + candidate))
            evaluations += 1
            if candidate_level > threshold:
                centred, level = candidate, candidate_level
                break
            bracket = shrink(bracket, angle)
            if bracket[1] - bracket[0] < _SMALLEST_BRACKET:
                angle = 0.0
                break
            lower, upper = bracket
            angle = lower + (upper - lower) * rng.random()
    return prior.mean + centred, SliceInfo(evaluations, level, _distance(angle))


def _distance(angle):
    """From zero, on a circle."""
    return min(abs(angle), _WHOLE - abs(angle))


def on_ellipse(centred: np.ndarray, other: np.ndarray, angle: float) -> np.ndarray:
    """The point at `angle` on the ellipse through `centred` (0) and `other` (π/2)."""
    return math.cos(angle) * centred + math.sin(angle) * other


def shrink(bracket: list[float], angle: float) -> list[float]:
    """The bracket cut at a rejected angle, on the side away from the current point 0."""
    lower, upper = bracket
    return [angle, upper] if angle < 0.0 else [lower, angle]
