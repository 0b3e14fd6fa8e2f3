"""What the draws of a run say about themselves: mixing, convergence, runs without acceptance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import arviz as az
import numpy as np
import xarray as xr
from rich.progress import track

from pymc_pseudomarginal.certificate.settings import per_draw

# Probability that chance alone gives a run without acceptance that is called too long.
_CHANCE = 1e-6
# Elements that take a second or two.
_MANY = 500


def by_element(posterior: xr.Dataset, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Draws of every element of the named variables, shape (chain, draw), by labels as ls[0].

    An element is named by its coordinates, where the variable has some: u[Anna].
    """
    elements = {}
    for name in names:
        variable = posterior[name].transpose("chain", "draw", ...)
        values, coordinates = variable.to_numpy(), [variable[d].values for d in variable.dims[2:]]
        for index in np.ndindex(values.shape[2:]):
            at = [str(labels[i]) for labels, i in zip(coordinates, index, strict=True)]
            elements[f"{name}[{', '.join(at)}]" if at else name] = values[(..., *index)]
    return elements


def acceptance_figures(stats: xr.Dataset) -> dict[str, tuple]:
    """Of every chain: acceptance rate, longest run without acceptance, failed proposals.

    Returns
    -------
    dict of (dims, values), as an xarray.Dataset takes them
        ``acceptance``, ``longest_run``, ``run_start``, the draw at which that begins, and
        ``failed`` over ``chain``; and ``explained_run``, the longest run that chance explains in
        a run of so many draws.
    """
    # Where several steps moved theta in a draw, one of them is enough.
    accepted = per_draw(stats, "pm_accepted").astype(bool).any(axis=-1)
    failed = per_draw(stats, "pm_failed").sum(axis=(1, 2))
    longest, start = np.array([_longest_run(chain) for chain in accepted]).T
    return {
        "acceptance": ("chain", accepted.mean(axis=1)),
        "longest_run": ("chain", longest),
        "run_start": ("chain", stats["draw"].values[start]),
        "failed": ("chain", failed.astype(int)),
        "explained_run": ((), _explained_run(accepted, longest)),
    }


def _longest_run(accepted):
    """Length and first draw of the longest run without acceptance; `accepted` is of one chain."""
    at = np.flatnonzero(np.concatenate([[True], accepted, [True]]))
    runs = np.diff(at) - 1
    longest = int(runs.argmax())
    return int(runs[longest]), min(int(at[longest]), len(accepted) - 1)


def _explained_run(accepted, longest):
    """L with draws (1 - rate)^L = _CHANCE.

    The rate is that outside of the longest run of every chain: a chain that sticks for most of
    its length would explain itself by its low acceptance.
    """
    outside = accepted.size - longest.sum()
    rate = accepted.sum() / outside if outside else 0.0
    if rate == 0.0:
        return 0.0  # a chain that never moves is explained by nothing
    with np.errstate(divide="ignore"):
        return float(np.log(_CHANCE / accepted.size) / np.log1p(-rate))


def convergence_figures(
    elements: Mapping[str, np.ndarray], dimension: str, prefix: str = "", *, progressbar: bool
) -> dict[str, tuple]:
    """R-hat, bulk and tail ESS of every element, with draws of shape (chain, draw).

    All are NaN for elements that are constant, as the diagonal of a correlation matrix, and
    R-hat for a single chain.

    Returns
    -------
    dict of (dims, values), as an xarray.Dataset takes them
        ``rhat``, ``ess_bulk`` and ``ess_tail`` over `dimension`, their names with the prefix.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and
    localization: an improved R-hat, Bayesian Analysis 16(2).
    """
    bar = progressbar and len(elements) > _MANY
    each = track(elements.values(), "Convergence", total=len(elements), disable=not bar)
    with np.errstate(all="ignore"):  # chains that each stay at a value of their own
        table = np.array([_convergence(draws) for draws in each]).reshape(-1, 3).T
    names = ("rhat", "ess_bulk", "ess_tail")
    return {prefix + name: (dimension, row) for name, row in zip(names, table, strict=True)}


def _convergence(draws):
    """R-hat, bulk and tail ESS of one element."""
    if np.ptp(draws) == 0.0:
        return np.nan, np.nan, np.nan
    rhat = float(az.rhat(draws)) if len(draws) > 1 else np.nan
    tail = float(az.ess(draws, method="tail", prob=(0.05, 0.95)))
    return rhat, float(az.ess(draws, method="bulk")), tail
