"""What the chains say against a run, whatever made them: the rules, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import chdtri

# Above it, chains have not mixed; below so many effective draws per chain, R-hat and ESS are
# themselves too noisy to tell (Vehtari et al. 2021, Rank-normalization, folding, and localization).
_RHAT = 1.01
_ESS_PER_CHAIN = 100
# Probability that one R-hat among all is called large though the chains have come together.
_RARE = 0.01

# Of the proposals: a failed one is rejected, so that the draws are from a posterior without the
# thetas at which the numerics fail. Random walks try a few such thetas in any run.
_FAILED = 0.01


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


@dataclass(frozen=True)
class Advice:
    """Remedies that depend on how a run was sampled.

    Attributes
    ----------
    stuck : str
        With ``{chain}`` and ``{draw}``, where the longest run without acceptance begins.
    apart, short : str
        Of a large R-hat and of a small ESS, with ``{draws}``, the number per chain to try next.
    """

    stuck: str
    apart: str
    short: str


def chain_problems(dataset: xr.Dataset, advice: Advice) -> tuple[Finding, ...]:
    """What the figures of the chains say against a run."""
    found = (
        _stuck(dataset, advice.stuck),
        _failures(dataset),
        _single(dataset),
        _rhat(dataset, advice),
        _ess(dataset, advice.short),
    )
    return tuple(finding for finding in found if finding is not None)


def is_stuck(dataset: xr.Dataset) -> bool:
    """Whether a chain rested for longer than chance explains, or never moved."""
    too_long = dataset["longest_run"] > dataset["explained_run"]
    return bool((too_long | (dataset["acceptance"] == 0.0)).any())


def _stuck(dataset, advice):
    if not is_stuck(dataset):
        return None
    never = dataset["acceptance"].values == 0.0
    worst = int(np.argmax(never if never.any() else dataset["longest_run"].values))
    chain, longest = dataset["chain"].values[worst], int(dataset["longest_run"][worst])
    draw, explained = dataset["run_start"].values[worst], float(dataset["explained_run"])
    if never.any():
        problem = f"Chain {chain} accepted none of {longest} proposals."
    else:
        problem = (
            f"Chain {chain} did not accept for {longest} draws in a row, from draw {draw} on; the "
            f"acceptance otherwise explains about {explained:.0f} at the most."
        )
    return Finding("stuck chain", problem, advice.format(chain=chain, draw=draw))


def _failures(dataset):
    failed, proposals = int(dataset["failed"].sum()), int(dataset["proposals"].sum())
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


def _rhat(dataset, advice):
    labels, values = _of_all_elements(dataset, "rhat")
    if not (values > _RHAT).any():
        return None
    worst = int(np.nanargmax(values))
    found = f"R-hat of {labels[worst]} is {values[worst]:.3f}, above {_RHAT}"
    draws = 2 * dataset.attrs["draws"]
    if values[worst] < _rhat_by_chance(dataset, worst):
        problem = f"{found}, as chance gives it in one of {len(labels)} elements: the run is short."
        return Finding("R-hat", problem, advice.short.format(draws=draws))
    problem = f"{found}: the chains have not come together."
    return Finding("R-hat", problem, advice.apart.format(draws=draws))


def _rhat_by_chance(dataset, at):
    """What R-hat of the worst of all elements may be though its chains have come together.

    The means of the M halves of the chains then differ by what their effective draws explain:
    R-hat² is about 1 + chi²/((M - 1) ESS/M), with M - 1 degrees of freedom. It is the larger of
    two, of the draws and of their distances from the median. None of it holds for a small ESS.
    """
    values, ess = (_of_all_elements(dataset, name)[1] for name in ("rhat", "ess_bulk"))
    if not ess[at] >= _ESS_PER_CHAIN * dataset.sizes["chain"]:
        return 1.0
    halves = 2 * dataset.sizes["chain"]
    rare = chdtri(halves - 1, _RARE / (2 * np.isfinite(values).sum()))
    return np.sqrt(1.0 + rare / (halves - 1) * halves / ess[at])


def _ess(dataset, advice):
    needed = _ESS_PER_CHAIN * dataset.sizes["chain"]
    found = [
        (value, label, kind)
        for kind in ("bulk", "tail")
        for label, value in zip(*_of_all_elements(dataset, f"ess_{kind}"), strict=True)
        if value < needed
    ]
    if not found:
        return None
    worst, label, kind = min(found)
    noisy = "means and intervals" if kind == "bulk" else "intervals"
    draws = dataset.attrs["draws"] * needed / worst
    magnitude = 10 ** max(0, int(np.floor(np.log10(draws))) - 1)
    return Finding(
        "effective sample size",
        f"The {kind} ESS of {label} is {worst:.0f}, below {needed}: {noisy} of it, and "
        "these figures themselves, are noisy.",
        advice.format(draws=int(np.ceil(draws / magnitude)) * magnitude),
    )


def _of_all_elements(dataset: xr.Dataset, name: str) -> tuple[list[str], np.ndarray]:
    """Labels and a figure of the elements of theta and, if it was recorded, of the latent."""
    labels, values = list(dataset["hyperparameter"].values), [dataset[name].values]
    if f"latent_{name}" in dataset:
        labels += list(dataset["latent"].values)
        values.append(dataset[f"latent_{name}"].values)
    return labels, np.concatenate(values)
