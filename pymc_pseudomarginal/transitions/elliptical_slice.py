"""Elliptical slice sampling of f given theta."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DensePrior

# Where rounding has closed the bracket around the current point, stay there.
_SMALLEST_BRACKET = 1e-12


@dataclass(frozen=True)
class SliceInfo:
    """What one or several elliptical-slice moves did.

    Attributes
    ----------
    evaluations : int
        Evaluations of the likelihood, the one at the starting point included.
    log_likelihood : float
        log p(y|f) at the point arrived at.
    """

    evaluations: int
    log_likelihood: float


def elliptical_slice(
    rng: np.random.Generator,
    f: np.ndarray,
    prior: DensePrior,
    likelihood: Likelihood,
    *,
    moves: int = 1,
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
    evaluations = 1
    for _ in range(moves):
        other = prior.colour(rng.standard_normal(prior.size))
        threshold = level + np.log(rng.uniform())
        angle = rng.uniform(0.0, 2.0 * math.pi)
        bracket = [angle - 2.0 * math.pi, angle]
        while True:
            candidate = on_ellipse(centred, other, angle)
            candidate_level = float(likelihood.log_density(prior.mean + candidate))
            evaluations += 1
            if candidate_level > threshold:
                centred, level = candidate, candidate_level
                break
            bracket = shrink(bracket, angle)
            if bracket[1] - bracket[0] < _SMALLEST_BRACKET:
                break
            lower, upper = bracket
            angle = lower + (upper - lower) * rng.random()
    return prior.mean + centred, SliceInfo(evaluations, level)


def on_ellipse(centred: np.ndarray, other: np.ndarray, angle: float) -> np.ndarray:
    """The point at `angle` on the ellipse through `centred` (0) and `other` (π/2)."""
    return math.cos(angle) * centred + math.sin(angle) * other


def shrink(bracket: list[float], angle: float) -> list[float]:
    """The bracket cut at a rejected angle, on the side away from the current point 0."""
    lower, upper = bracket
    return [angle, upper] if angle < 0.0 else [lower, angle]
