"""A Gaussian q for likelihoods with kinks, whose curvature is zero wherever it exists.

The (asymmetric) Laplace density of regression on quantiles is of this kind. Averaged over
eta ~ N(., s^2) under q itself, the gradient is smooth, and by Stein's lemma the curvature is
E[-l''(eta)] = -E[l'(eta) z]/s, eta = mean + s z: no second derivative is needed.
"""

from typing import NamedTuple

import numpy as np

from pymc_pseudomarginal.linalg.curvature import Weights
from pymc_pseudomarginal.linalg.factor import Factor, Plan
from pymc_pseudomarginal.linalg.latent import Derivatives, LatentAt
from pymc_pseudomarginal.linalg.products import times, transpose_times
from pymc_pseudomarginal.numerics.errors import NoFiniteApproximation

_NODES = 8
_MAX_ITERATIONS = 20
# Bound on the squared length of a step, in standard deviations of q.
_TOLERANCE = 1e-2
# The least part of a curvature that one step may leave of it.
_MAX_FALL = 0.25


class Smoothed(NamedTuple):
    """q(x) = N(mean, P^-1); `gradient` (m,) is the averaged one at the mean."""

    mean: np.ndarray
    weights: Weights
    gradient: np.ndarray
    factor: Factor
    iterations: int


def has_kinks(plan: Plan, likelihood: Derivatives) -> bool:
    """Whether some predictor has a slope and exactly no curvature."""
    return bool(_kinks(plan, likelihood).any())


def smoothed(at: LatentAt, plan: Plan, start: np.ndarray) -> Smoothed:
    """The Gaussian of least Kullback-Leibler divergence KL(q|p), in a bounded number of steps.

    Terms without kinks enter by their derivatives at the mean.

    References
    ----------
    Opper & Archambeau (2009), The variational Gaussian approximation revisited.
    """
    mean = start
    eta = times(at.predictor.matrix, mean) + at.predictor.offset
    here = at.likelihood.derivatives(eta)
    kinks = _kinks(plan, here)
    # The squared slope of a Laplace density is its Fisher information.
    curvature = np.where(kinks, here.gradient**2, 0.0)
    gradient, smooth = here.gradient, here
    for iteration in range(1, _MAX_ITERATIONS + 1):
        weights = _weights(plan, smooth, curvature)
        factor = plan.form.factor(at.prior, at.predictor, weights)
        uphill = transpose_times(at.predictor.matrix, gradient) + at.prior.gradient(mean)
        step = factor.solve(uphill)
        length = float(step @ uphill)
        if not np.isfinite(length):
            raise NoFiniteApproximation(f"Step {iteration} of the smoothed Newton is not finite.")
        # After some free steps they shrink, so that a cycle between kinks comes to rest.
        rate = min(1.0, 8.0 / iteration)
        mean = mean + rate * step
        if (length < _TOLERANCE and iteration > 3) or iteration == _MAX_ITERATIONS:
            break
        eta = times(at.predictor.matrix, mean) + at.predictor.offset
        sd = np.sqrt(factor.predictor_variances(at.predictor))
        gradient, found, smooth = _averaged(at, eta, np.where(kinks, sd, 0.0))
        # Before the mean has arrived all data may lie on one side: W falls by steps.
        found = np.maximum(found, _MAX_FALL * curvature)
        curvature = curvature + rate * (np.where(kinks, found, 0.0) - curvature)
    return Smoothed(mean, weights, gradient, factor, iteration)


def _kinks(plan: Plan, likelihood: Derivatives) -> np.ndarray:
    diagonal = plan.curvature_form.diagonal_of(likelihood.curvature)
    return (diagonal == 0.0) & (likelihood.gradient != 0.0)


def _weights(plan: Plan, smooth: Derivatives, curvature: np.ndarray) -> Weights:
    """W of the terms that are smooth, plus the averaged curvature of the others."""
    weights = plan.curvature_form.weights(smooth.curvature)
    extra = plan.curvature_form.of_diagonal(curvature)
    return Weights(weights.indptr, weights.indices, weights.data + extra.data, weights.diagonal)


def _averaged(
    at: LatentAt, eta: np.ndarray, sd: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Derivatives]:
    """E[l'] and max(0, -E[l' z]/sd) over eta + sd z, and the derivatives at eta."""
    gradient, covariance = np.zeros_like(eta), np.zeros_like(eta)
    for z, weight in zip(*_standard_normal_nodes(), strict=True):
        slope = at.likelihood.derivatives(eta + sd * z).gradient
        gradient += weight * slope
        covariance += weight * z * slope
    curvature = np.where(sd > 0.0, np.maximum(-covariance, 0.0) / np.where(sd > 0.0, sd, 1.0), 0.0)
    return gradient, curvature, at.likelihood.derivatives(eta)


def _standard_normal_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for E f(z), z ~ N(0, 1), by Gauss and Hermite."""
    z, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return z, weights / weights.sum()
