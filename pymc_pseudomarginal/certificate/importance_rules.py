"""The rules by which a run of `PseudoMarginalMH` or `PseudoMarginalHMC` passes or not.

Its chains carry an estimate of p(y|theta) from N weights: noisy ones make them stick.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from pymc_pseudomarginal.certificate.verdict import Advice, Finding, chain_problems
from pymc_pseudomarginal.certificate.weights import NAMES, tail_limit

# Of the thetas; the shape is an estimate and may be above by chance at one of them.
_SHARE = 0.1
# Where the log estimate varies by less, the tail is not looked at: no weight among S can then be
# more than 0.2 sqrt(S / N) of the whole estimate. Weights that hardly differ often show a large
# shape in samples of a thousand, and a harmless one in larger samples.
_NEGLIGIBLE = 0.2

# Standard deviation of the log estimate that balances samples against sticking, at a typical theta:
# 1.2 in Doucet et al. (2015), Efficient implementation of MCMC when using an unbiased likelihood
# estimator, Biometrika 102; 1.8 for random walks in many dimensions in Sherlock et al. (2015), On
# the efficiency of pseudo-marginal random walk Metropolis algorithms, Annals of Statistics 43.
# Here further samples cost little beside the factorisations, which speaks for the smaller.
_NOISE = 1.2

# More importance samples are not worth a try, whatever the noise.
_MANY_TIMES = 16
# Of annealing, where there was none.
_FIRST_TEMPERATURES = 16


def find_problems(dataset: xr.Dataset) -> tuple[Finding, ...]:
    """What the figures of a `Certificate` say against a run, the weights first."""
    of_weights = tuple(
        finding for rule in (_approximation, _tail, _noise) if (finding := rule(dataset))
    )
    return of_weights + chain_problems(dataset, _advice(dataset))


def _approximation(dataset):
    failed = int(dataset["bias"].isnull().sum())
    if not failed:
        return None
    used = dataset.attrs["approximation"]
    other = "laplace" if used == "ep" else "ep"
    return Finding(
        "failed approximation",
        f"The covariance has no factor, or the {NAMES[used]} approximation is not finite, at "
        f"{failed} of {dataset.sizes['theta']} posterior draws.",
        f'Sample with approximation="{other}", or with a larger jitter in gp.prior.',
    )


def _tail(dataset):
    shapes, samples = dataset["pareto_k"].values, dataset.attrs["samples"]
    limit = tail_limit(samples)
    heavy = int(((shapes > limit) & (dataset["log_estimate_sd"].values > _NEGLIGIBLE)).sum())
    if not heavy > _SHARE * len(shapes):
        return None
    return Finding(
        "tail of the weights",
        f"The Pareto shape k of the weights is above {limit:.2f} at {heavy} of {len(shapes)} "
        f"posterior draws, and up to {np.nanmax(shapes):.2f}: a mean of them is ruled by a few, "
        "and the chain may stick at one that it has not met yet.",
        f"Sample with {_better_weights(dataset)}; more importance samples alone help little.",
    )


def _noise(dataset):
    sds = dataset["log_estimate_sd"].dropna("theta").values
    if not len(sds) or not np.median(sds) > _NOISE:
        return None
    N, typical = dataset.attrs["n_importance"], float(np.median(sds))
    remedy = f"Sample with {_better_weights(dataset)}."
    if _tail(dataset) is None:  # else the noise does not fall as one over the root of N
        factor = min((typical / _NOISE) ** 2, _MANY_TIMES)
        more = 2 ** int(np.ceil(np.log2(factor * N)))
        remedy = f"Sample with n_importance={max(more, 2 * N)}, or {_better_weights(dataset)}."
    return Finding(
        "noise",
        f"With n_importance={N} the log of the estimate has a standard deviation of "
        f"{typical:.2g} at half of the posterior draws or more, and up to {sds.max():.2g}; more "
        f"than {_NOISE} makes the chain stick.",
        remedy,
    )


def _advice(dataset):
    if _tail(dataset) is not None or _noise(dataset) is not None:
        first = "Make the weights better first; how many draws it takes depends on them."
        return Advice(f"Sample with {_better_weights(dataset)}.", first, first)
    more = 4 * dataset.attrs["n_importance"]
    return Advice(
        stuck=f"Sample with more tuning draws, or with n_importance={more}.",
        apart="Sample more draws per chain, about {draws}, after more tuning draws.",
        short="Sample more draws per chain, about {draws}.",
    )


def _better_weights(dataset):
    """How to make the weights less spread, in words of the step's arguments."""
    annealing = dataset.attrs["annealing"]
    temperatures = 2 * annealing if annealing else _FIRST_TEMPERATURES
    ways = ['approximation="ep"'] if dataset.attrs["approximation"] == "laplace" else []
    annealed = f"annealing={temperatures}"
    if dataset.attrs["step"] != "PseudoMarginalMH":  # the only one that anneals
        annealed = f"PseudoMarginalMH({annealed})"
    return " or ".join([*ways, annealed])
