"""Triangular densities fitted to weighted points: regressions, then mixtures of what remains."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.kernels.mixing import log_sum_exp
from pymc_pseudomarginal.kernels.triangular import (
    WIDEST,
    TriangularDensity,
    highest_coordinate,
    monomials,
)
from pymc_pseudomarginal.tuning.mixture_fit import regular_factor, weighted_moments

COMPONENTS = 4
# Steps of regression, and the one after which what is not significant is left out.
_ALTERNATIONS, _SCREENING = 8, 3
_EM_STEPS = 60
# Standard errors that a coefficient must be away from zero to be kept.
_SIGNIFICANT = 3.5
_RIDGE = 2.0
_LONGEST = 0.5
# A residual counts as no more than this many standard deviations.
_OUTLYING = 4.0
_NARROWEST, _WIDER = 0.15, 1.05
_LIGHTEST = 1e-9
_SMALLEST_SHARE = 0.02


def fit_triangular(
    points: np.ndarray, weights: np.ndarray, components: int = COMPONENTS
) -> TriangularDensity:
    """The triangular density that describes weighted points.

    Parameters
    ----------
    points : array, shape (m, d)
    weights : array, shape (m,)
        Not negative; they add up to one.
    components : int
        Normals for what remains of each coordinate.
    """
    # Far outside, draws of a wide density are points of no weight and of any size.
    heavy = weights > _LIGHTEST * weights.max()
    points, weights = points[heavy], weights[heavy] / weights[heavy].sum()
    d = points.shape[1]
    counts = weights / float(weights @ weights)
    order = _order(points, counts)
    centre, covariance = weighted_moments(points[:, order], weights)
    factor = regular_factor(covariance)
    v = np.linalg.solve(factor, (points[:, order] - centre).T).T
    features, highest = monomials(v), highest_coordinate(d)
    bends, slopes = np.zeros((d, features.shape[1])), np.zeros((d, d))
    mixtures = []
    for j in range(d):
        before = highest < j
        bends[j, before], slopes[j, :j] = _regressions(
            v[:, j], features[:, before], v[:, :j], counts
        )
        rest = (v[:, j] - features @ bends[j]) * np.exp(-np.clip(v @ slopes[j], -WIDEST, WIDEST))
        mixtures.append(_mixture(rest, weights, components))
    parts = (np.stack(part) for part in zip(*mixtures, strict=True))
    return TriangularDensity(order, centre, factor, bends, slopes, *parts)


def _order(points, counts):
    """Those first that shape others more than others shape them, by fits to every pair."""
    d = points.shape[1]
    mean, covariance = weighted_moments(points, counts / counts.sum())
    v = (points - mean) / np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    gains = np.zeros((d, d))
    for i in range(d):
        features = np.column_stack([np.ones(len(v)), v[:, i], v[:, i] ** 2])
        for j in range(d):
            if i != j:
                gains[i, j] = _gain(v[:, j], features, v[:, [i]], counts)
    return np.argsort(-(gains - gains.T).sum(axis=1), kind="stable")


def _gain(outcome, features, sources, counts):
    """Log likelihood that a bent mean and a changing width explain beyond a straight line."""
    bend, slope = _regressions(outcome, features, sources, counts)
    z = (outcome - features @ bend) * np.exp(-sources @ slope)
    line = np.linalg.lstsq(
        np.sqrt(counts)[:, None] * features[:, :2], np.sqrt(counts) * outcome, rcond=None
    )[0]
    z0 = outcome - features[:, :2] @ line
    total = counts.sum()
    spread = counts @ (sources @ slope) / total
    return 0.5 * np.log(counts @ z0**2) - 0.5 * np.log(counts @ z**2) - spread


def _regressions(outcome, features, sources, counts):
    """Coefficients of the mean over features and of the log width over sources, by scoring."""
    slope, kept = np.zeros(sources.shape[1]), np.ones(features.shape[1], bool)
    used = np.ones(len(slope), bool)
    for i in range(_ALTERNATIONS):
        widths = _widths(sources, slope)
        bend, errors = _line(outcome, features[:, kept], counts / widths**2)
        z = (outcome - features[:, kept] @ bend) / widths
        z = z / np.sqrt(counts @ z**2 / counts.sum())
        step, slope_errors = _scoring(z, sources, slope, counts)
        slope = slope + used * step
        if i == _SCREENING:
            scale = np.sqrt(counts @ ((outcome - features[:, kept] @ bend) / widths) ** 2)
            scale = scale / np.sqrt(counts.sum())
            significant = np.abs(bend) > _SIGNIFICANT * errors * scale
            significant[0] = True
            kept[kept] = significant
            used = np.abs(slope) > _SIGNIFICANT * slope_errors
            slope = slope * used
    full = np.zeros(features.shape[1])
    full[kept] = _line(outcome, features[:, kept], counts / _widths(sources, slope) ** 2)[0]
    return full, slope


def _widths(sources, slope):
    return np.exp(np.clip(sources @ slope, -WIDEST, WIDEST))


def _scoring(z, sources, slope, counts):
    """A step of Fisher's scoring for the slopes of log widths, and their standard errors."""
    centred = sources - counts @ sources / counts.sum()
    z = np.clip(z, -_OUTLYING, _OUTLYING)
    information = 2.0 * (counts * centred.T) @ centred + _RIDGE * np.eye(len(slope))
    covariance = np.linalg.inv(information)
    step = covariance @ (centred.T @ (counts * (z**2 - 1.0)) - _RIDGE * slope)
    step *= min(1.0, _LONGEST / max(np.abs(step).max(initial=0.0), _LONGEST))
    return step, np.sqrt(np.diagonal(covariance))


def _line(outcome, features, counts):
    """Ridge regression and the standard errors of its coefficients for residuals of unit size."""
    gram = (counts * features.T) @ features + _RIDGE * np.eye(features.shape[1])
    inverse = np.linalg.inv(gram)
    return inverse @ (features.T @ (counts * outcome)), np.sqrt(np.diagonal(inverse))


def _mixture(rest, weights, count):
    """Weights, means and standard deviations (K,) of normals fitted to numbers by EM."""
    order = np.argsort(rest)
    edges = np.searchsorted(np.cumsum(weights[order]), np.linspace(0, 1, count + 1)[1:-1])
    groups = np.split(order, edges)
    mean = weights @ rest
    sd = max(np.sqrt(weights @ (rest - mean) ** 2), 1e-6)
    shares = np.full(count, 1.0 / count)
    means = np.array([rest[g].mean() if len(g) else mean for g in groups])
    sds = np.full(count, 0.6 * sd)
    for _ in range(_EM_STEPS):
        logs = np.log(shares / sds) - 0.5 * ((rest[:, None] - means) / sds) ** 2
        parts = weights[:, None] * np.exp(logs - log_sum_exp(logs)[:, None])
        totals = np.maximum(parts.sum(axis=0), 1e-12)
        means = (rest @ parts) / totals
        variances = ((rest[:, None] - means) ** 2 * parts).sum(axis=0) / totals
        sds = np.sqrt(variances + (_NARROWEST * sd) ** 2)
        shares = np.maximum(totals, _SMALLEST_SHARE)
        shares = shares / shares.sum()
    return shares, means, np.sqrt(_WIDER) * sds
