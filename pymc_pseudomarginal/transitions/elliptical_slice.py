"""Elliptical slice sampling of f given theta."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.prior import DensePrior

# Where rounding has closed the bracket around the current point, stay there.
_SMALLEST_BRACKET = 1e-12
# Angles whose likelihoods are evaluated at once: about half of what a move needs.
_TOGETHER = 4


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
        upper = rng.uniform(0.0, 2.0 * math.pi)
        bracket = [upper - 2.0 * math.pi, upper]
        while bracket[1] - bracket[0] >= _SMALLEST_BRACKET:
            angles, bracket = next_angles(rng, bracket)
            candidates = on_ellipse(centred, other, angles)
            levels = likelihood.log_density(prior.mean + candidates)
            above = levels > threshold
            first = int(above.argmax())
            if above[first]:
                evaluations += first + 1
                centred, level = candidates[first], float(levels[first])
                break
            evaluations += len(angles)
    return prior.mean + centred, SliceInfo(evaluations, level)


def next_angles(rng: np.random.Generator, bracket: list[float]) -> tuple[np.ndarray, list[float]]:
    """The next few angles to try, shape (k,), and the bracket after all of them failed.

    Each is where the one before, had it failed, would have left the bracket: together they cost
    one evaluation of a matrix, and those after the first that succeeds are forgotten.
    """
    angles = []
    for u in rng.random(_TOGETHER):
        angles.append(bracket[0] + u * (bracket[1] - bracket[0]))
        bracket = shrink(bracket, angles[-1])
    return np.array(angles), bracket


def on_ellipse(centred: np.ndarray, other: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Points of the ellipse through `centred` (0) and `other` (π/2), shape (k, n)."""
    return np.cos(angles)[:, None] * centred + np.sin(angles)[:, None] * other


def shrink(bracket: list[float], angle: float) -> list[float]:
    """The bracket cut at a rejected angle, on the side away from the current point 0."""
    lower, upper = bracket
    return [angle, upper] if angle < 0.0 else [lower, angle]
