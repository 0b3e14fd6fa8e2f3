"""R-hat as the chains grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pymc_pseudomarginal.diagnostics import running_rhat
from pymc_pseudomarginal.plots.canvas import REFERENCE, coloured, named, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Beyond this the early prefixes would hide what happens near one.
_LARGEST_ON_A_LINEAR_SCALE = 3.0


def plot_running_rhat(
    samples: np.ndarray | xr.DataArray | Mapping[str, np.ndarray | xr.DataArray],
    *,
    n_points: int = 100,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """R-hat of growing prefixes of the chains, solid, and its upper bound, dashed.

    Parameters
    ----------
    samples : array, shape (chain, draw), or mapping of sampler to such arrays
        Draws of one scalar.
    n_points : int
        At most this many prefixes.
    confidence : float
        See `pymc_pseudomarginal.diagnostics.running_rhat`: 0.95 draws the 97.5 % bound.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    results = {
        name: running_rhat(chains, n_points=n_points, confidence=confidence)
        for name, chains in named(samples).items()
    }
    ax = one_axes(ax)
    ax.axhline(1.0, color=REFERENCE, lw=1)
    bound = f"{50 * (1 + confidence):g} % bound"
    for name, result, colour in coloured(results):
        suffix = "" if name is None else f", {name}"
        ax.plot(result["draw"], result["rhat"], color=colour, lw=2, label=rf"$\hat R${suffix}")
        ax.plot(result["draw"], result["upper"], color=colour, ls="--", label=bound + suffix)
    largest = max(float(result["upper"].max()) for result in results.values())
    if largest > _LARGEST_ON_A_LINEAR_SCALE:
        _use_log_scale(ax)
    ax.set(xlabel="Draws per chain", ylabel=r"Potential scale reduction factor $\hat R$")
    ax.margins(x=0.02)
    ax.legend(loc="best")
    return ax


def _use_log_scale(ax):
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
