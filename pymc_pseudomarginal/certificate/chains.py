"""What the draws of a run say about themselves: mixing, convergence, runs without acceptance."""

from __future__ import annotations

from collections.abc import Mapping

import arviz as az
import numpy as np
import xarray as xr

from pymc_pseudomarginal.certificate.settings import per_draw

# Probability that chance alone gives a run without acceptance that is called too long.
_CHANCE = 1e-6


def by_element(posterior: xr.Dataset, shapes: Mapping[str, tuple[int, ...]]) -> dict:
    """Draws of every element of the named variables, shape (chain, draw), by labels as ls[0]."""
    elements = {}
    for name, shape in shapes.items():
        values = posterior[name].transpose("chain", "draw", ...).to_numpy()
        for index in np.ndindex(shape):
            label = f"{name}[{', '.join(map(str, index))}]" if index else name
            elements[label] = values[(..., *index)]
    return elements


def acceptance_figures(stats: xr.Dataset) -> dict[str, tuple]:
    """Of every chain: acceptance rate, longest run without acceptance, failed proposals.

    Returns
    -------
    dict of (dims, values), as an xarray.Dataset takes them
        ``acceptance``, ``longest_run`` and ``failed`` over ``chain``, and ``explained_run``, the
        longest run that chance explains in a run of so many draws.
    """
    # Where several steps moved theta in a draw, one of them is enough.
    accepted = per_draw(stats, "pm_accepted").astype(bool).any(axis=-1)
    failed = per_draw(stats, "pm_failed").sum(axis=(1, 2))
    longest = np.array([_longest_run(chain) for chain in accepted])
    return {
        "acceptance": ("chain", accepted.mean(axis=1)),
        "longest_run": ("chain", longest),
        "failed": ("chain", failed.astype(int)),
        "explained_run": ((), _explained_run(accepted, longest)),
    }


def _longest_run(accepted):
    """Length of the longest run of draws without acceptance; `accepted` is of one chain."""
    at = np.flatnonzero(np.concatenate([[True], accepted, [True]]))
    return int(np.diff(at).max()) - 1


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


def convergence(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R-hat and bulk ESS of every element, shape (chain, draw, E) to two of shape (E,).

    Both are NaN for elements that are constant, as the diagonal of a correlation matrix, and
    R-hat for a single chain.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and
    localization: an improved R-hat, Bayesian Analysis 16(2).
    """
    rhat, ess = np.full((2, draws.shape[2]), np.nan)
    with np.errstate(all="ignore"):  # chains that each stay at a value of their own
        for i in range(draws.shape[2]):
            chains = draws[:, :, i]
            if np.ptp(chains) == 0.0:
                continue
            ess[i] = float(az.ess(chains, method="bulk"))
            if len(chains) > 1:
                rhat[i] = float(az.rhat(chains))
    return rhat, ess
