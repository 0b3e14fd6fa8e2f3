"""With which weights a run was made, as its statistics tell."""

from __future__ import annotations

import numpy as np
import xarray as xr

from pymc_pseudomarginal.arguments import check_approximation, check_at_least
from pymc_pseudomarginal.transitions.effort import Effort


def read_settings(
    stats: xr.Dataset,
    approximation: str | None,
    n_importance: int | None,
    annealing: int | None,
) -> Effort:
    """The arguments where they are given, else what the statistics of the run tell.

    Where the chains differ it is the least of them: Laplace, fewest samples and temperatures.
    """
    absent = [
        argument
        for argument, given, name in (
            ("approximation", approximation, "pm_ep"),
            ("n_importance", n_importance, "pm_n_importance"),
        )
        if given is None and name not in stats
    ]
    if absent:
        raise ValueError(
            f"The run does not tell its {' and '.join(absent)}: its statistics are "
            f"{', '.join(map(str, stats.data_vars))}. Give what it was sampled with, "
            'e.g. certify(idata, approximation="laplace", n_importance=16).'
        )
    if approximation is None:
        approximation = "ep" if _last(stats, "pm_ep") else "laplace"
    if n_importance is None:
        n_importance = _last(stats, "pm_n_importance")
    if annealing is None:
        annealing = _last(stats, "pm_annealing") if "pm_annealing" in stats else 0
    return Effort(
        check_approximation(approximation),
        check_at_least("n_importance", n_importance, 1),
        check_at_least("annealing", annealing, 0),
    )


def per_draw(stats: xr.Dataset, name: str) -> np.ndarray:
    """A statistic, shape (chain, draw, K); K is 1 unless several steps report it."""
    values = stats[name].transpose("chain", "draw", ...).to_numpy()
    return values.reshape(*values.shape[:2], -1)


def _last(stats, name):
    """The smallest value at the last draws of the chains: a run may change it while it tunes."""
    return int(per_draw(stats, name)[:, -1].min())
