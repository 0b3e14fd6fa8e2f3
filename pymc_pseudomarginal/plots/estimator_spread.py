"""The spread of the estimated posterior density along one hyper-parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pymc_pseudomarginal.plots.canvas import REFERENCE, coloured, leave_room, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUANTILES = (0.025, 0.975)


def plot_estimator_spread(spread: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Mean and quantiles of the estimated posterior density along one hyper-parameter.

    For every number N of importance samples, the mean of the estimates of p(y|theta) p(theta)
    is drawn solid and their 2.5 % and 97.5 % quantiles dashed. All are divided by one
    constant, with which the mean of the largest N integrates to one over the values given.
    The prior density is dash-dotted.

    Parameters
    ----------
    spread : Dataset
        As returned by `estimator_spread`. Values at which the numerics failed are left out.
    ax : Axes, optional

    Returns
    -------
    Axes

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian processes,
    figure 2.
    """
    name, spread = _checked(spread)
    values, densities = spread[name].to_numpy(), _densities(spread, name)
    ax = one_axes(ax)
    means, bounds = [], []
    for n, density, colour in coloured(densities):
        low, high = np.quantile(density, _QUANTILES, axis=0)
        style = {"color": colour, "lw": 1.2, "ls": "--"}
        means += ax.plot(values, density.mean(axis=0), color=colour, lw=2, label=f"mean, N = {n}")
        ax.plot(values, low, **style)
        label = f"2.5 % and 97.5 % quantiles, N = {n}"
        bounds += ax.plot(values, high, label=label, **style)
    density = np.exp(spread["log_prior"])
    prior = ax.plot(values, density, color=REFERENCE, lw=1.8, ls="-.", label="prior density")
    ax.set(xlabel=name, ylabel="Estimated posterior density")
    ax.set_ylim(bottom=0.0)
    ax.margins(x=0.02)
    leave_room(ax, len(densities) + 1, below=False)
    ax.legend(handles=[*means, *prior, *bounds], loc="upper right", ncols=2)
    return ax


def _checked(spread):
    """(name of the hyper-parameter, the spread at values in order and without failures)."""
    missing = [v for v in ("log_estimate", "log_prior") if v not in spread]
    if missing:
        raise ValueError(
            f"spread must be the Dataset that estimator_spread returns; missing: {missing}."
        )
    (name,) = spread["log_prior"].dims
    found = spread.sizes[name]
    spread = spread.dropna(name).sortby(name)
    if spread.sizes[name] < 2:
        raise ValueError(
            f"A density needs at least two values of {name} with estimates; found "
            f"{spread.sizes[name]} among {found}. Run estimator_spread for more values."
        )
    return name, spread


def _densities(spread, name):
    """N -> normalised estimates of the posterior density, shape (repeat, values)."""
    log_joint = spread["log_estimate"] + spread["log_prior"]
    log_joint = log_joint.transpose("n_importance", "repeat", name)
    joint = np.exp(log_joint - log_joint.max())
    sizes = sorted(spread["n_importance"].to_numpy().tolist())
    constant = float(joint.sel(n_importance=sizes[-1]).mean("repeat").integrate(name))
    return {n: (joint.sel(n_importance=n) / constant).to_numpy() for n in sizes}
