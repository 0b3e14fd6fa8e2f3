"""Tilted moments by adaptive Gauss-Hermite quadrature, for likelihoods without closed forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_pseudomarginal.numerics.likelihoods.base import TiltedMoments

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
# Weights of the integral of a function itself, that is, without the factor exp(-x²/2).
_LOG_WEIGHTS = np.log(_WEIGHTS) + 0.5 * _NODES**2
_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)

_MAX_NEWTON = 50
_MAX_HALVINGS = 40
_MODE_TOLERANCE = 1e-2  # in standard deviations; the second pass centres the nodes anyway


def tilted_moments_by_quadrature(
    log_densities: Callable[[np.ndarray], np.ndarray],
    derivatives: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    mean: np.ndarray,
    variance: np.ndarray,
) -> TiltedMoments:
    """Moments of p(y_i|f_i) N(f_i|mean_i, variance_i) for all i at once.

    The nodes are placed twice: around the mode with the curvature found there, and
    then around the mean with the standard deviation that the first pass gave. So a
    cavity that is much wider than the likelihood costs no accuracy.

    Parameters
    ----------
    log_densities : callable
        f of shape (Q, n) -> log p(y_i|f_qi), shape (Q, n).
    derivatives : callable
        f of shape (n,) -> its gradient and negative curvature W >= 0, each (n,).
    mean, variance : array, shape (n,)
        Of the cavities.

    References
    ----------
    Naylor & Smith (1982), Applications of a method for the efficient computation of
    posterior distributions, Applied Statistics 31.
    """

    def log_tilted(f):
        prior = -0.5 * ((f - mean) ** 2 / variance + np.log(variance)) - _LOG_ROOT_2PI
        return log_densities(f) + prior

    centre, scale = _mode(log_tilted, derivatives, mean, variance)
    moments = _integrate(log_tilted, centre, scale)
    return _integrate(log_tilted, moments.mean, np.sqrt(moments.variance))


def _integrate(log_tilted, centre, scale):
    offsets = scale * _NODES[:, None]
    log_terms = log_tilted(centre + offsets) + _LOG_WEIGHTS[:, None]
    # A node in a forbidden region carries no mass; NaN is left to show.
    peak = log_terms.max(axis=0)
    terms = np.exp(log_terms - peak)
    total = terms.sum(axis=0)
    shift = (terms * offsets).sum(axis=0) / total
    spread = (terms * (offsets - shift) ** 2).sum(axis=0) / total
    return TiltedMoments(peak + np.log(total) + np.log(scale), centre + shift, spread)


def _mode(log_tilted, derivatives, mean, variance):
    """Mode and curvature scale of every tilted density, by safeguarded Newton steps."""
    f = mean
    level = log_tilted(f[None])[0]
    for _ in range(_MAX_NEWTON):
        gradient, W = derivatives(f)
        scale = 1.0 / np.sqrt(W + 1.0 / variance)
        step = scale**2 * (gradient - (f - mean) / variance)
        # Where a mode is found, rounding would make a further step look like a descent.
        step[np.abs(step) < _MODE_TOLERANCE * scale] = 0.0
        if not step.any() or not np.isfinite(step).all():
            break
        f, level = _ascend(log_tilted, f, level, step)
    return f, scale


def _ascend(log_tilted, f, level, step):
    """F moved along each step, halved where the density does not increase."""
    for _ in range(_MAX_HALVINGS):
        candidate = f + step
        candidate_level = log_tilted(candidate[None])[0]
        worse = ~(candidate_level >= level)
        if not worse.any():
            return candidate, candidate_level
        step = np.where(worse, 0.5 * step, step)
    return np.where(worse, f, candidate), np.where(worse, level, candidate_level)
