"""Modes of the approximate marginal posterior, and its curvature there.

A quasi-Newton ascent with gradients by differences. The density may be minus infinity in places,
flat towards minus infinity of a log scale, and known with the tolerance of an inner Newton
iteration only: steps of differences are shares of a standard deviation, not of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation

Density = Callable[[np.ndarray], float]

_ITERATIONS = 40
# Longest first step, in units of theta: log scales and correlations live on unit scale. Where the
# density goes on rising at the end of such a step, the next may be longer by the factor.
_LONGEST, _LONGER = 2.0, 4.0
# Ascent ends when a step promises less than this in the log density.
_PROMISE = 5e-3
_DIFFERENCE = 0.05
_SMALLEST_DIFFERENCE, _LARGEST_DIFFERENCE = 1e-5, 0.02
_HALVINGS = 10
# Ascents after the first go on while one gains as much as this.
_RETURNS, _GAIN = 6, 0.02
_JITTERS = 40
# Standard deviations that a curvature may stand for.
_NARROWEST, _WIDEST = 1e-6, 1e4
# Curvature, in units of steps that lower the density by a half, that is negative beyond doubt.
_SADDLE = -0.05
_MORE_ASCENTS = 4


@dataclass(frozen=True)
class Mode:
    """A local maximum.

    Attributes
    ----------
    theta : array, shape (d,)
    level : float
        Log density.
    factor : array, shape (d, d)
        F with F F' the inverse of the regularised negative Hessian, its columns along the
        eigenvectors.
    """

    theta: np.ndarray
    level: float
    factor: np.ndarray


def find_modes(
    density: Density, starts: Sequence[np.ndarray], rng: np.random.Generator
) -> list[Mode]:
    """The distinct modes that ascents from the starts arrive at, the highest first.

    Parameters
    ----------
    density : callable
        Log density at theta (d,); perhaps minus infinity.
    starts : sequence of arrays, shape (d,)
        The first is moved about until the density is finite there; the others may fail.
    rng : numpy.random.Generator

    Raises
    ------
    NoFiniteApproximation
        When the density is finite nowhere near the first start.
    """
    waiting = [finite_start(density, starts[0], rng), *starts[1:]]
    modes: list[Mode] = []
    for _ in range(len(waiting) + _MORE_ASCENTS):
        if not waiting:
            break
        theta, level, guess = climb(density, waiting.pop(0), modes)
        if math.isfinite(level) and not _known(theta, modes):
            mode, ways_up = settled(density, theta, level, guess)
            if not _known(mode.theta, modes):
                modes.append(mode)
                waiting.extend(ways_up)
    return sorted(modes, key=lambda mode: -mode.level)


def finite_start(density: Density, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The start, or a point near it where the density is finite."""
    theta = np.array(start, dtype=float)
    for i in range(_JITTERS):
        if math.isfinite(density(theta)):
            return theta
        theta = start + (0.25 + 0.1 * i) * rng.standard_normal(len(start))
    raise NoFiniteApproximation(
        "the approximate posterior density is finite neither at the starting point of the "
        f"hyper-parameters nor at {_JITTERS - 1} points around it"
    )


def climb(
    density: Density, start: np.ndarray, modes: Sequence[Mode] = ()
) -> tuple[np.ndarray, float, np.ndarray]:
    """Ascend by BFGS: theta (d,), its level, and the last inverse Hessian (d, d).

    The ascent ends early where it comes close to one of the modes that are known.
    """
    theta, level = np.array(start, dtype=float), density(start)
    inverse = np.eye(len(theta))
    if not math.isfinite(level) or not len(theta):
        return theta, level, inverse
    slope = gradient(density, theta, level, inverse)
    fresh, longest = True, _LONGEST
    for _ in range(_ITERATIONS):
        step = inverse @ slope
        length = float(np.linalg.norm(step))
        step *= min(1.0, longest / max(length, 1e-300))
        promise = float(slope @ step)
        if promise < _PROMISE and not fresh:
            break
        new, new_level = _ascend(density, theta, level, step, promise)
        if new_level <= level:
            if fresh:
                break
            inverse, fresh = np.diag(np.diag(inverse)), True
            continue
        if length > longest and new_level > level + 0.5 * promise:
            longest *= _LONGER
        new_slope = gradient(density, new, new_level, inverse)
        inverse = _updated(inverse, new - theta, slope - new_slope, fresh)
        fresh = False
        theta, level, slope = new, new_level, new_slope
        if _known(theta, modes):
            break
    return theta, level, inverse


def settled(
    density: Density, theta: np.ndarray, level: float, guess: np.ndarray
) -> tuple[Mode, list[np.ndarray]]:
    """Where an ascent ends that goes on in units of the curvature, and ways up from a saddle.

    On a narrow ridge that is oblique to the axes, differences along these say nothing of the way
    along it, and the first ascent ends on its side.
    """
    ways_up: list[np.ndarray] = []
    for again in range(_RETURNS + 1):
        factor, from_here = curvature_factor(density, theta, level, guess)
        ways_up += from_here
        if again == _RETURNS or not len(theta):
            break
        origin, axes = theta, factor

        def from_there(z: np.ndarray, origin=origin, axes=axes) -> float:
            return density(origin + axes @ z)

        z, higher, inverse = climb(from_there, np.zeros(len(theta)))
        gain = higher - level
        if gain > 0.0:
            theta, level, guess = origin + axes @ z, higher, axes @ inverse @ axes.T
        if gain < _GAIN:
            break
    return Mode(theta, level, factor), ways_up


def gradient(density: Density, theta: np.ndarray, level: float, inverse: np.ndarray) -> np.ndarray:
    """Differences to the side where the density is finite, shape (d,)."""
    found = np.zeros(len(theta))
    steps = np.clip(
        _DIFFERENCE * np.sqrt(np.diagonal(inverse)), _SMALLEST_DIFFERENCE, _LARGEST_DIFFERENCE
    )
    for i, step in enumerate(steps):
        for signed in (step, -step):
            shifted = theta.copy()
            shifted[i] += signed
            there = density(shifted)
            if math.isfinite(there):
                found[i] = (there - level) / signed
                break
    return found


def curvature_factor(
    density: Density, theta: np.ndarray, level: float, guess: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """F with F F' = (-Hessian)^-1, by second differences, regularised, shape (d, d).

    The steps are those at which the density has fallen by about a half, so that the curvature is
    that of the bulk and the tolerance of the density does not matter. Also points to either side
    of a saddle, if theta is one, from which to ascend again.
    """
    d = len(theta)
    if not d:
        return np.empty((0, 0)), []
    steps, falls = np.empty(d), np.empty((d, 2))
    for i in range(d):
        first = math.sqrt(max(guess[i, i], _NARROWEST**2))
        steps[i], falls[i] = _fallen(density, theta, level, i, min(first, 1.0))
    # In units of the steps, so that scales of different size do not hide each other.
    unit = np.diag(falls.sum(axis=1))
    for i in range(d):
        for j in range(i):
            shifted = theta.copy()
            shifted[[i, j]] += steps[[i, j]]
            fall = min(level - density(shifted), 50.0)
            unit[i, j] = unit[j, i] = fall - falls[i, 0] - falls[j, 0]
    values, vectors = np.linalg.eigh(unit)
    aside = 2.0 * steps * vectors[:, 0]
    ways_up = [theta + aside, theta - aside] if values[0] < _SADDLE else []
    values = np.clip(values, 0.02, 50.0)
    covariance = steps[:, None] * ((vectors / values) @ vectors.T) * steps
    variances, axes = np.linalg.eigh(covariance)
    return axes * np.sqrt(np.clip(variances, _NARROWEST**2, _WIDEST**2)), ways_up


def _fallen(density, theta, level, i, step):
    """A step along axis i at which the density falls by .1 to 2.5, and both falls."""
    low, high = _NARROWEST, _WIDEST
    for _ in range(12):
        falls = np.array([level - density(_shifted(theta, i, s)) for s in (step, -step)])
        falls = np.minimum(falls, 50.0)
        mean = falls.mean()
        if 0.1 <= mean <= 2.5:
            break
        low, high = (step, high) if mean < 0.1 else (low, step)
        aim = step * math.sqrt(0.5 / max(mean, 0.005))
        step = aim if low < aim < high else math.sqrt(low * high)
        if high < 1.05 * low:
            break
    return step, np.maximum(falls, -5.0)


def _shifted(theta, i, step):
    shifted = theta.copy()
    shifted[i] += step
    return shifted


def _ascend(density, theta, level, step, promise):
    """The first of ever shorter steps that gains enough."""
    share = 1.0
    for _ in range(_HALVINGS):
        new = theta + share * step
        new_level = density(new)
        if new_level >= level + 1e-4 * share * promise:
            return new, new_level
        share *= 0.4
    return theta, level


def _updated(inverse, step, yielded, fresh):
    """BFGS; skipped where the density is not concave along the step."""
    product = float(step @ yielded)
    if product <= 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(yielded)):
        return inverse
    if fresh:
        inverse = np.eye(len(step)) * product / float(yielded @ yielded)
    across = np.eye(len(step)) - np.outer(step, yielded) / product
    return across @ inverse @ across.T + np.outer(step, step) / product


def _known(theta, modes):
    distances = [np.linalg.solve(mode.factor, theta - mode.theta) for mode in modes]
    return any(float(np.linalg.norm(distance)) < 1.0 for distance in distances)
