"""Importance weights at given theta: their spread, their tail, and what they say about q."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from rich.progress import track

from pymc_pseudomarginal.numerics import NumericalFailure

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


NAMES = {"laplace": "Laplace", "ep": "EP"}
"""The approximations as they are written in a sentence."""

FIGURES = ("log_weight_sd", "pareto_k", "bias", "bias_error")
"""What `weight_figures` tells of the weights at a theta."""

# Above this shape, a mean of weights comes near its expectation only after more samples than
# anybody draws; lower for small samples, see `tail_limit` (Vehtari et al. 2024, Pareto smoothed
# importance sampling).
_PARETO_K = 0.7

# Standard normals held at a time: 16 MB of them.
_BLOCK = 2**21
# Estimates by which their standard deviation is predicted: it is then known to about 3 %.
_RESAMPLES = 500
# Log weights that differ by less are equal up to rounding, and have no tail.
_EQUAL = 1e-8


def at_each(
    draws: Iterable[int],
    figures: Callable[[int], dict[str, float]],
    names: Iterable[str],
    *,
    progressbar: bool,
) -> dict[str, tuple]:
    """Figures of one draw after the other, over the dimension ``theta``; NaN where they fail."""
    table = []
    for draw in track(list(draws), "Weights at posterior draws", disable=not progressbar):
        try:
            # What overflows at an extreme theta shows as a failure.
            with np.errstate(all="ignore"):
                table.append(figures(draw))
        except NumericalFailure:
            table.append({})
    return {name: ("theta", np.array([row.get(name, np.nan) for row in table])) for name in names}


def blocks(samples: int, width: int) -> list[int]:
    """S samples of a width in parts that fit into memory."""
    rows = max(1, _BLOCK // (2 * width))
    return [min(rows, samples - first) for first in range(0, samples, rows)]


def weight_figures(log_marginal: float, log_weights: np.ndarray) -> dict[str, float]:
    """`FIGURES` of S log weights, shape (S,), of a q with log Z_q = log_marginal."""
    largest = log_weights.max()
    if largest == -np.inf:  # no sample reached where the likelihood is positive
        return dict.fromkeys(FIGURES, np.inf)
    weights = np.exp(log_weights - largest)
    return {
        "log_weight_sd": spread(log_weights),
        "pareto_k": pareto_shape(log_weights),
        "bias": log_marginal - (largest + np.log(weights.mean())),
        "bias_error": weights.std(ddof=1) / weights.mean() / np.sqrt(len(weights)),
    }


def tail_limit(samples: int) -> float:
    """The largest Pareto shape at which so many weights can be averaged, at least 100."""
    return min(_PARETO_K, 1.0 - 1.0 / np.log10(samples))


def bias_variation(bias: np.ndarray, error: np.ndarray) -> dict[str, tuple]:
    """Range of the bias, and its standard deviation without what its error explains."""
    known = np.isfinite(bias)
    if known.sum() < 2:
        return {"bias_sd": ((), np.nan), "bias_range": ((), np.nan)}
    variance = bias[known].var(ddof=1) - np.mean(error[known] ** 2)
    return {
        "bias_sd": ((), np.sqrt(max(variance, 0.0))),
        "bias_range": ((), np.ptp(bias[known])),
    }


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
    return spread(log_sums) * np.sqrt(size / N)


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


def spread(values: np.ndarray) -> float:
    """Standard deviation; infinite if a value is."""
    return float(np.std(values)) if np.isfinite(values).all() else np.inf
