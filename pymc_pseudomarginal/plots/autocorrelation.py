"""Autocorrelation of samplers, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import arviz as az
import numpy as np
import xarray as xr

from pymc_pseudomarginal.diagnostics import as_chains, autocorrelation
from pymc_pseudomarginal.plots.canvas import REFERENCE, coloured, named, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_autocorrelation(
    samples: np.ndarray | xr.DataArray | Mapping[str, np.ndarray | xr.DataArray],
    *,
    max_lag: int = 100,
    ax: Axes | None = None,
) -> Axes:
    """Autocorrelation of one or several samplers, averaged over their chains.

    The legend gives the effective sample size per draw.

    Parameters
    ----------
    samples : array, shape (chain, draw), or mapping of sampler to such arrays
        Draws of one scalar.
    max_lag : int
        The largest lag, as far as the chains are long enough.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    samples = {name: as_chains(chains) for name, chains in named(samples).items()}
    curves = {name: autocorrelation(chains, max_lag) for name, chains in samples.items()}
    ax = one_axes(ax)
    ax.axhline(0.0, color=REFERENCE, lw=1)
    for name, curve, colour in coloured(curves):
        chains = samples[name]
        text = f"ESS per draw {float(az.ess(chains)) / chains.size:.2g}"
        label = text if name is None else f"{name}: {text}"
        ax.plot(curve["lag"], curve.mean("chain"), color=colour, lw=2, label=label)
    ax.set(xlabel="Lag (draws)", ylabel="Autocorrelation, mean over chains")
    ax.margins(x=0.02)
    ax.legend(loc="best")
    return ax
