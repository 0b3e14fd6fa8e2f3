"""Importance weights at given theta: their spread, their tail, and what they say about q."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from rich.progress import track

from pymc_pseudomarginal.model import LatentGaussianModel
from pymc_pseudomarginal.numerics import APPROXIMATIONS, NumericalFailure
from pymc_pseudomarginal.transitions.effort import Effort
from pymc_pseudomarginal.transitions.point_sets import weighted_sampler

# ArviZ 1 moved the function into a package of its own, and there it takes the log likelihoods of
# leave-one-out weights: the negative of log weights.
try:
    from arviz import psislw

    def _pareto_smoothing(log_weights):
        return psislw(log_weights)

except ImportError:
    from arviz_stats.base import array_stats

    def _pareto_smoothing(log_weights):
        return array_stats.psislw(-log_weights)


FIGURES = ("log_weight_sd", "log_estimate_sd", "pareto_k", "bias", "bias_error")
"""What is told of the weights at a theta."""

# Standard normals held at a time: 16 MB of them.
_BLOCK = 2**21
# Estimates by which their standard deviation is predicted: it is then known to about 3 %.
_RESAMPLES = 500
# Log weights that differ by less are equal up to rounding, and have no tail.
_EQUAL = 1e-8


def weight_figures(
    read: LatentGaussianModel,
    thetas: Iterable[np.ndarray],
    settings: Effort,
    *,
    samples: int,
    rng: np.random.Generator,
    progressbar: bool,
) -> dict[str, np.ndarray]:
    """`FIGURES` at every theta.

    Parameters
    ----------
    read : LatentGaussianModel
    thetas : sequence of arrays, shape (d,) each, T of them
        On the unconstrained scale.
    settings : Effort
    samples : int
        S, the number of weights at each of them.
    rng : numpy.random.Generator
    progressbar : bool

    Returns
    -------
    dict of arrays, shape (T,)
        NaN where the covariance has no factor, or no finite approximation exists.

    Notes
    -----
    q is run to convergence. In the chain it stopped earlier and started from a prediction that
    no trace records, which hardly changes the weights (`numerics.FOR_IMPORTANCE`); but log Z_q is
    the deterministic approximation that is used elsewhere only if it has converged.
    """
    approximate = APPROXIMATIONS[settings.approximation]
    sampler, bound = weighted_sampler(settings.annealing), read.bind_data()
    rows = max(1, _BLOCK // (2 * read.size))
    blocks = [min(rows, samples - first) for first in range(0, samples, rows)]
    table = []
    for theta in track(list(thetas), "Weights at posterior draws", disable=not progressbar):
        try:
            # What overflows at an extreme theta shows as a failure.
            with np.errstate(all="ignore"):
                likelihood = bound(theta)
                q = approximate(read.prior(theta), likelihood)
                parts = [sampler(rng, q, likelihood, block).log_weights for block in blocks]
                log_weights = np.concatenate(parts)
                row = _figures(q.log_marginal, log_weights, settings.n_importance, rng)
        except NumericalFailure:
            row = (np.nan,) * len(FIGURES)
        table.append(row)
    return dict(zip(FIGURES, np.array(table, dtype=float).T, strict=True))


def _figures(log_marginal, log_weights, N, rng):
    """`FIGURES` of S log weights, in that order."""
    largest = log_weights.max()
    if largest == -np.inf:  # no sample reached where the likelihood is positive
        return np.inf, np.inf, np.inf, np.inf, np.inf
    weights = np.exp(log_weights - largest)
    bias = log_marginal - (largest + np.log(weights.mean()))
    error = weights.std(ddof=1) / weights.mean() / np.sqrt(len(weights))
    return (
        _sd(log_weights),
        predicted_log_sd(log_weights, N, rng),
        pareto_shape(log_weights),
        bias,
        error,
    )


def predicted_log_sd(log_weights: np.ndarray, N: int, rng: np.random.Generator) -> float:
    """Standard deviation of the log of the mean of N weights.

    Parameters
    ----------
    log_weights : array, shape (S,)
    N : int
    rng : numpy.random.Generator
        Draws N of the S weights again and again, with replacement: unlike the first-order
        formula, sd(w) / (mean(w) sqrt(N)), this is right for weights that are far apart, too.
    """
    S = len(log_weights)
    size = min(N, S)
    which = rng.integers(S, size=(_RESAMPLES, size))
    log_sums = np.logaddexp.reduce(log_weights[which], axis=1)
    # More than S are not at hand; with so many, the first order is good enough.
    return _sd(log_sums) * np.sqrt(size / N)


def pareto_shape(log_weights: np.ndarray) -> float:
    """Shape k of the generalised Pareto distribution of the largest weights.

    Parameters
    ----------
    log_weights : array, shape (S,)
        At least 25, five of which make a tail.

    Returns
    -------
    float
        Weights have moments of all orders below 1/k: their variance is infinite from k = 1/2
        on. -inf if the weights are all equal, and inf if a few dwarf all others.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling, Journal
    of Machine Learning Research 25(72).
    """
    if np.ptp(log_weights) < _EQUAL:
        return -np.inf
    try:
        with np.errstate(all="ignore"):
            k = float(_pareto_smoothing(log_weights)[1])
    except ValueError:  # the largest are all equal: a bounded tail
        return -np.inf
    # Neither version fits weights so far apart that all but a few are zero.
    return np.inf if np.isnan(k) else k


def _sd(values):
    """Standard deviation; infinite if a value is."""
    return float(np.std(values)) if np.isfinite(values).all() else np.inf
