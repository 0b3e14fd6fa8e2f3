"""Mixtures of Student t densities fitted to weighted points by EM.

Reference: Peel and McLachlan (2000), Robust mixture modelling using the t distribution.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from pymc_pseudomarginal.kernels.student_t import StudentMixture

_DEGREES = 6.0
_ITERATIONS = 40
# A density that is too wide loses a little everywhere, one that is too narrow sticks outside.
_WIDER = 1.05
_RIDGE = 1e-2
_SMALLEST_SHARE = 0.02


def weighted_moments(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and covariance (d, d) of points (m, d), with weights (m,) that add up to one."""
    mean = weights @ points
    centred = points - mean
    return mean, (weights * centred.T) @ centred


def regular_factor(covariance: np.ndarray, ridge: float = 1e-8) -> np.ndarray:
    """Cholesky factor of a covariance that may be singular, (d, d) to (d, d)."""
    scales = np.sqrt(np.maximum(np.diagonal(covariance), 1e-12))
    correlation = covariance / np.outer(scales, scales) + ridge * np.eye(len(scales))
    return scales[:, None] * np.linalg.cholesky(correlation)


def fit_mixture(points: np.ndarray, weights: np.ndarray, most: int = 4) -> StudentMixture:
    """The mixture of one to `most` components that describes weighted points best.

    Parameters
    ----------
    points : array, shape (m, d)
    weights : array, shape (m,)
        Not negative; they add up to one.
    most : int
    """
    d = points.shape[1]
    effective = 1.0 / float(weights @ weights)
    parameters = 1 + d + d * (d + 1) / 2
    best, best_score = None, -np.inf
    for count in range(1, most + 1):
        if count > 1 and effective < 5 * parameters * count:
            break
        mixture = _em(points, weights, count)
        gain = effective * float(weights @ mixture.log_density(points))
        score = gain - 0.5 * parameters * count * np.log(effective)
        if score > best_score:
            best, best_score = mixture, score
    assert best is not None
    return StudentMixture(best.weights, best.centres, np.sqrt(_WIDER) * best.factors, best.degrees)


def _em(points, weights, count):
    mean, covariance = weighted_moments(points, weights)
    factor = regular_factor(covariance)
    centres = _spread_centres(points, weights, mean, factor, count)
    mixture = StudentMixture(
        np.full(count, 1.0 / count),
        centres,
        np.repeat(factor[None], count, axis=0),
        np.full(count, _DEGREES),
    )
    for _ in range(_ITERATIONS):
        mixture = _em_step(points, weights, mixture, covariance)
    return mixture


def _em_step(points, weights, mixture, overall):
    d = points.shape[1]
    parts, distances = mixture.log_parts(points)
    shares = weights * np.exp(parts - logsumexp(parts, axis=0))
    scales = (_DEGREES + d) / (_DEGREES + distances)
    totals = np.maximum(shares.sum(axis=1), 1e-12)
    drawn = shares * scales
    centres = (drawn @ points) / np.maximum(drawn.sum(axis=1), 1e-300)[:, None]
    factors = []
    for centre, part, total in zip(centres, drawn, totals, strict=True):
        centred = points - centre
        covariance = (part * centred.T) @ centred / total
        factors.append(regular_factor(covariance + _RIDGE * overall))
    totals = np.maximum(totals, _SMALLEST_SHARE)
    return StudentMixture(totals / totals.sum(), centres, np.stack(factors), mixture.degrees)


def _spread_centres(points, weights, mean, factor, count):
    """Quantiles along the direction in which the points are most skewed or long."""
    if count == 1:
        return mean[None]
    z = np.linalg.solve(factor, (points - mean).T).T
    skewness = weights @ (z**3)
    norm = np.linalg.norm(skewness)
    direction = skewness / norm if norm > 1e-8 else np.eye(len(mean))[0]
    place = z @ direction
    order = np.argsort(place)
    levels = np.cumsum(weights[order])
    edges = np.searchsorted(levels, np.linspace(0, 1, count + 1)[1:-1])
    groups = np.split(order, edges)
    found = []
    for group in groups:
        total = weights[group].sum()
        found.append(weights[group] @ points[group] / total if total > 0 else mean)
    return np.stack(found)
