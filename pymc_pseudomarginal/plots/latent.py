"""The latent function over one feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy.special import ndtr, ndtri

from pymc_pseudomarginal.arguments import check_probability
from pymc_pseudomarginal.plots.canvas import COLOURS, leave_room, one_axes, point_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Halvings of the bracket: its width falls by a factor of 10^12.
_BISECTIONS = 40


def plot_latent(
    x: np.ndarray,
    predictions: xr.Dataset | Mapping[str, np.ndarray],
    *,
    level: float = 0.95,
    X: np.ndarray | None = None,
    y: np.ndarray | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Posterior mean and credible band of the latent function over one feature.

    Parameters
    ----------
    x : array, shape (m,) or (m, 1)
        The new points, in any order.
    predictions : Dataset
        ``f_mean`` and ``f_var``, the moments of the normal f at the new points given each
        draw, with dims (chain, draw, point), or (point,).
    level : float
        Content of the band at every point. Its ends are quantiles of the mixture of the
        normals over the draws, which is skewed where the draws disagree.
    X : array, shape (n,) or (n, 1), optional
        Where data were observed, drawn as ticks.
    y : array, shape (n,), optional
        If they are labels 0 and 1, the ticks of 1 are at the top, those of 0 at the bottom.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    level = check_probability("level", level)
    x = _vector("x", x)
    mean, sd = _moments(predictions, len(x))
    ticks = _ticks(X, y)
    order = np.argsort(x, kind="stable")
    x, mean, sd = x[order], mean[:, order], sd[:, order]
    low, high = (mixture_quantile(mean, sd, q) for q in (0.5 - level / 2, 0.5 + level / 2))
    ax = one_axes(ax)
    band = f"{100 * level:g} % band"
    ax.fill_between(x, low, high, color=COLOURS[0], alpha=0.25, lw=0, label=band)
    ax.plot(x, mean.mean(axis=0), color=COLOURS[0], lw=2, label="posterior mean")
    for positions, height, style in ticks:
        ax.plot(
            positions,
            np.full(len(positions), height),
            ls="none",
            marker="|",
            ms=11,
            transform=ax.get_xaxis_transform(),
            **style,
        )
    ax.margins(x=0.02, y=0.1)  # the ticks stay clear of the band
    ax.set(xlabel="x", ylabel="Latent function f(x)")
    leave_room(ax, 2, below=False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.96), ncols=2)  # below the upper ticks
    return ax


def mixture_quantile(mean: np.ndarray, sd: np.ndarray, q: float) -> np.ndarray:
    """The q-quantile of equally weighted normals, shapes (S, m) to (m,).

    It lies between the least and the greatest of the components' quantiles, from which it is
    found by bisection.
    """
    ends = mean + sd * ndtri(q)
    low, high = ends.min(axis=0), ends.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            # A component without variance has all its mass at its mean.
            below = np.where(sd > 0.0, ndtr((middle - mean) / sd), middle >= mean)
            above = below.mean(axis=0) < q
            low, high = np.where(above, middle, low), np.where(above, high, middle)
    return 0.5 * (low + high)


def _moments(predictions, size):
    """(means, standard deviations) of f given each draw, shape (draws, size) each."""
    missing = [name for name in ("f_mean", "f_var") if name not in predictions]
    if missing:
        raise ValueError(f"predictions must hold f_mean and f_var; missing: {', '.join(missing)}.")
    mean, variance = (point_values(predictions[name]) for name in ("f_mean", "f_var"))
    if mean.shape != variance.shape or mean.shape[1] != size:
        raise ValueError(
            f"f_mean and f_var must have a value for each of the {size} points x and the same "
            f"draws; found {mean.shape[1]} and {variance.shape[1]} points of {len(mean)} and "
            f"{len(variance)} draws."
        )
    if not np.isfinite(mean).all() or not np.isfinite(variance).all() or (variance < 0.0).any():
        raise ValueError("f_mean must be finite and f_var finite and not negative.")
    return mean, np.sqrt(variance)


def _vector(name, values):
    values = np.asarray(values, dtype=float)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"{name} must have the shape (m,) or (m, 1); found {values.shape}. "
            "The latent is drawn over one feature; for two, see plot_probability."
        )
    return values


def _ticks(X, y):
    """(positions, height in the axes, style) of the ticks of the data."""
    if X is None:
        if y is not None:
            raise ValueError("Found y without its coordinates: give X, too.")
        return []
    X = _vector("X", X)
    y = None if y is None else np.asarray(y)
    if y is not None and y.shape != X.shape:
        raise ValueError(f"y must have one value for each of the {len(X)} X; found {y.shape}.")
    if y is None or not np.isin(y, (0, 1)).all():
        return [(X, 0.025, {"color": "0.25", "label": "data"})]
    return [
        (X[y == label], height, {"color": colour, "label": f"y = {label}"})
        for label, height, colour in ((1, 0.975, COLOURS[1]), (0, 0.025, COLOURS[2]))
        if (y == label).any()
    ]
