"""The rules by which a run passes or not, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

# Above it, chains have not mixed; below so many effective draws per chain, R-hat and ESS are
# themselves too noisy to tell (Vehtari et al. 2021, Rank-normalization, folding, and localization).
_RHAT = 1.01
_ESS_PER_CHAIN = 100

# Above this shape, a mean of weights comes near its expectation only after more samples than
# anybody draws; lower for small samples, see `tail_limit` (Vehtari et al. 2024, Pareto smoothed
# importance sampling).
_PARETO_K = 0.7
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

# Of the proposals: a failed one is rejected, so that the draws are from a posterior without the
# thetas at which the numerics fail. Random walks try a few such thetas in any run.
_FAILED = 0.01

# More importance samples are not worth a try, whatever the noise.
_MANY_TIMES = 16
# Of annealing, where there was none.
_FIRST_TEMPERATURES = 16

NAMES = {"laplace": "Laplace", "ep": "EP"}
"""The approximations as they are written in a sentence."""


@dataclass(frozen=True)
class Finding:
    """Something that speaks against a run.

    Attributes
    ----------
    what : str
        A short name: "tail of the weights", "noise", "stuck chain", "failed proposals",
        "failed approximation", "single chain", "R-hat" or "effective sample size".
    problem : str
        What was found, with the figures.
    remedy : str
        What to do, other than what the run did already.
    """

    what: str
    problem: str
    remedy: str

    def __str__(self):
        return f"{self.what}: {self.problem} {self.remedy}"


def find_problems(dataset: xr.Dataset) -> tuple[Finding, ...]:
    """What the figures of a `Certificate` say against a run, the weights first."""
    rules = (_approximation, _tail, _noise, _stuck, _failures, _single, _rhat, _ess)
    return tuple(finding for rule in rules if (finding := rule(dataset)) is not None)


def tail_limit(samples: int) -> float:
    """The largest Pareto shape at which so many weights can be averaged, at least 100."""
    return min(_PARETO_K, 1.0 - 1.0 / np.log10(samples))


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


def _stuck(dataset):
    runs, explained = dataset["longest_run"].values, float(dataset["explained_run"])
    worst = int(np.argmax(runs))
    chain, longest = dataset["chain"].values[worst], int(runs[worst])
    never = float(dataset["acceptance"][worst]) == 0.0
    if not longest > explained and not never:
        return None
    if never:
        problem = f"Chain {chain} accepted none of {longest} proposals."
    else:
        problem = (
            f"Chain {chain} did not accept for {longest} draws in a row; the acceptance otherwise "
            f"explains about {explained:.0f} at the most."
        )
    if _weights_are_bad(dataset):
        remedy = f"Sample with {_better_weights(dataset)}."
    else:
        more = 4 * dataset.attrs["n_importance"]
        remedy = f"Sample with more tuning draws, or with n_importance={more}."
    return Finding("stuck chain", problem, remedy)


def _failures(dataset):
    failed = int(dataset["failed"].sum())
    proposals = dataset.sizes["chain"] * dataset.attrs["draws"]
    if not failed > _FAILED * proposals:
        return None
    return Finding(
        "failed proposals",
        f"The numerics failed at {failed} of {proposals} proposals, which were rejected: the draws "
        "leave these thetas out, whatever their probability.",
        "Use priors that keep away from them (very long lengthscales, very large variances), or a "
        "larger jitter in gp.prior.",
    )


def _single(dataset):
    if dataset.sizes["chain"] > 1:
        return None
    return Finding(
        "single chain", "There is one chain, and no other to compare it with.", "Sample 4 chains."
    )


def _rhat(dataset):
    label, worst = _worst(dataset, "rhat", np.nanargmax)
    if label is None or worst <= _RHAT:
        return None
    return Finding(
        "R-hat",
        f"R-hat of {label} is {worst:.3f}, above {_RHAT}: the chains have not come together.",
        _longer(dataset, f"{2 * dataset.attrs['draws']}, after more tuning draws"),
    )


def _ess(dataset):
    label, worst = _worst(dataset, "ess_bulk", np.nanargmin)
    needed = _ESS_PER_CHAIN * dataset.sizes["chain"]
    if label is None or worst >= needed:
        return None
    draws = dataset.attrs["draws"] * needed / worst
    magnitude = 10 ** max(0, int(np.floor(np.log10(draws))) - 1)
    return Finding(
        "effective sample size",
        f"The bulk ESS of {label} is {worst:.0f}, below {needed}: means and intervals of it, and "
        "these figures themselves, are noisy.",
        _longer(dataset, f"{int(np.ceil(draws / magnitude)) * magnitude}"),
    )


def _longer(dataset, draws):
    if _weights_are_bad(dataset):
        return "Make the weights better first; how many draws it takes depends on them."
    return f"Sample more draws per chain, about {draws}."


def _weights_are_bad(dataset):
    return _tail(dataset) is not None or _noise(dataset) is not None


def _better_weights(dataset):
    """How to make the weights less spread, in words of the step's arguments."""
    annealing = dataset.attrs["annealing"]
    temperatures = 2 * annealing if annealing else _FIRST_TEMPERATURES
    ways = ['approximation="ep"'] if dataset.attrs["approximation"] == "laplace" else []
    annealed = f"annealing={temperatures}"
    if dataset.attrs["step"] != "PseudoMarginalMH":  # the only one that anneals
        annealed = f"PseudoMarginalMH({annealed})"
    return " or ".join([*ways, annealed])


def _worst(dataset, name, where):
    """(label, value) of the worst element of theta and f; (None, None) if there is none."""
    labels = list(dataset["hyperparameter"].values)
    values = [dataset[name].values]
    if f"latent_{name}" in dataset:
        labels += [f"{dataset.attrs['latent']}[{i}]" for i in range(dataset.sizes["latent"])]
        values.append(dataset[f"latent_{name}"].values)
    together = np.concatenate(values)
    if np.isnan(together).all():
        return None, None
    at = int(where(together))
    return labels[at], float(together[at])
