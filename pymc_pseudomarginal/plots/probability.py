"""Predictive probabilities over two features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from pymc_pseudomarginal.plots.canvas import COLOURS, one_axes, point_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Light ends, so that the data in their full colours stand out on them.
_SHADES = ("#6CB4E0", "#FAFAFA", "#F5A876")
_MARKERS = ("o", "^")
_ROUNDING = 1e-9


def plot_probability(
    Xnew: np.ndarray,
    p: np.ndarray | xr.DataArray,
    *,
    X: np.ndarray | None = None,
    y: np.ndarray | None = None,
    ax: Axes | None = None,
    feature_names: Sequence[str] | None = None,
) -> Axes:
    """Predictive probability over two features, with the data on top.

    Parameters
    ----------
    Xnew : array, shape (m, 2)
        All points of a grid, in any order.
    p : array, shape (m,), or DataArray with dims (chain, draw, point)
        The probability of label 1 at those points. Draws are averaged.
    X : array, shape (n, 2), optional
        Where data were observed.
    y : array, shape (n,), optional
        Their labels, 0 or 1.
    ax : Axes, optional
    feature_names : two strings, optional
        Labels of the axes, with units.

    Returns
    -------
    Axes
    """
    first, second, rows, columns = _grid(Xnew)
    surface = np.empty((len(second), len(first)))
    surface[columns, rows] = _mean_probability(p, len(rows))
    names = ("Feature 1", "Feature 2") if feature_names is None else tuple(feature_names)
    if len(names) != 2:
        raise ValueError(f"feature_names must be two names; found {len(names)}.")
    data = _data(X, y)
    own_figure = ax is None
    ax = one_axes(ax, size=(6.6, 5.2))
    _draw_surface(ax, first, second, surface)
    for points, style in data:
        ax.scatter(*points.T, s=34, edgecolor="white", linewidth=0.7, zorder=3, **style)
    ax.set(xlabel=names[0], ylabel=names[1])
    handles, _ = ax.get_legend_handles_labels()
    if handles and own_figure:
        # Nothing is hidden below a legend outside; in a given figure that room is not ours.
        ax.figure.legend(handles=handles, loc="outside lower center", ncols=3)
    elif handles:
        ax.legend(loc="best", framealpha=0.9)
    return ax


def _grid(Xnew):
    """(values of both features, index of every point in both) of a full grid."""
    Xnew = np.asarray(Xnew, dtype=float)
    if Xnew.ndim != 2 or Xnew.shape[1] != 2:
        raise ValueError(
            f"Xnew must have two columns, one for each feature; found the shape {Xnew.shape}. "
            "Select two features."
        )
    if not np.isfinite(Xnew).all():
        raise ValueError("Xnew must be finite; found NaN or infinite coordinates.")
    (first, rows), (second, columns) = (_levels(column) for column in Xnew.T)
    distinct = len(set(zip(rows.tolist(), columns.tolist(), strict=True)))
    if min(len(first), len(second)) < 2 or not len(Xnew) == distinct == len(first) * len(second):
        raise ValueError(
            f"The {len(Xnew)} rows of Xnew must be all points of a grid, each once and at least "
            f"2 by 2; found {len(first)} and {len(second)} different values of the features. "
            "Make it with np.meshgrid, and ravel its arrays into the two columns."
        )
    return first, second, rows, columns


def _levels(column):
    """(different values in order, index of every entry among them), up to rounding."""
    order = np.argsort(column)
    ordered = column[order]
    new = np.diff(ordered) > _ROUNDING * np.ptp(column) if len(column) else np.empty(0, bool)
    index = np.empty(len(column), dtype=int)
    index[order] = np.concatenate([[0], np.cumsum(new)])[: len(column)]
    return ordered[np.concatenate([[True], new])[: len(column)]], index


def _mean_probability(p, size):
    p = point_values(p)
    if p.shape[1] != size:
        raise ValueError(
            f"p must have a probability for each of the {size} rows of Xnew; found {p.shape[1]}."
        )
    inside = (p >= 0.0) & (p <= 1.0)
    if not inside.all():
        raise ValueError(
            f"Probabilities must lie between 0 and 1; found {p[~inside][0]}. "
            "Give p(y = 1), not the latent f."
        )
    return p.mean(axis=0)


def _data(X, y):
    """(points, style) of every class of the data."""
    if X is None:
        if y is not None:
            raise ValueError("Found labels y without their coordinates: give X, too.")
        return []
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two columns, as Xnew; found the shape {X.shape}.")
    if y is None:
        return [(X, {"color": "0.25", "marker": "o", "label": "data"})]
    y = np.asarray(y)
    if y.shape != X.shape[:1] or not np.isin(y, (0, 1)).all():
        raise ValueError(
            f"y must be {len(X)} labels 0 or 1, one for each row of X; found the shape {y.shape} "
            f"and the values {', '.join(str(v) for v in np.unique(y)[:5])}."
        )
    return [
        (X[y == label], {"color": COLOURS[label], "marker": marker, "label": f"y = {label}"})
        for label, marker in enumerate(_MARKERS)
        if (y == label).any()
    ]


def _draw_surface(ax, first, second, surface):
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("probability", _SHADES)
    filled = ax.contourf(first, second, surface, np.linspace(0, 1, 21), cmap=shades)
    if surface.min() < 0.5 < surface.max():  # matplotlib warns of a contour that is nowhere
        ax.contour(first, second, surface, [0.5], colors="black", linewidths=2)
        ax.plot([], [], color="black", lw=2, label="p = 0.5")
    bar = ax.figure.colorbar(filled, ax=ax, ticks=np.linspace(0, 1, 5), pad=0.02)
    bar.set_label("Predictive probability p(y = 1)")
