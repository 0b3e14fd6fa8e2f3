"""What the plots share: where they draw, in which colours, and how they name several inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe & Ito's colours, which colour-blind readers can tell apart, with a darker vermilion.
COLOURS = ("#0072B2", "#C44E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
REFERENCE = "0.45"
"""Grey of lines to compare with."""

_PANEL = (6.0, 4.2)


def one_axes(ax: Axes | None, size: tuple[float, float] = _PANEL) -> Axes:
    """`ax`, or the axes of a new figure of that size in inches."""
    if ax is None:
        return _pyplot().subplots(figsize=size, layout="constrained")[1]
    if isinstance(ax, np.ndarray) and ax.size == 1:
        return ax.item()
    if not hasattr(ax, "plot"):
        raise ValueError(f"ax must be one matplotlib Axes; found {type(ax).__name__}.")
    return ax


def two_axes(ax: Any) -> np.ndarray:
    """The two axes in `ax`, or those of a new figure, side by side; shape (2,)."""
    if ax is None:
        figsize = (1.7 * _PANEL[0], _PANEL[1])
        return _pyplot().subplots(1, 2, figsize=figsize, layout="constrained")[1]
    axes = np.ravel(np.array(ax, dtype=object))
    if len(axes) != 2 or not all(hasattr(panel, "plot") for panel in axes):
        raise ValueError(
            f"This plot has two panels: ax must hold two matplotlib Axes; found {len(axes)}. "
            "Make them with plt.subplots(1, 2)[1]."
        )
    return axes


def named(inputs: Any) -> dict[str | None, Any]:
    """A mapping as it is; anything else under the name None."""
    if not isinstance(inputs, Mapping):
        return {None: inputs}
    if not inputs:
        raise ValueError("Found an empty mapping: there is nothing to plot.")
    return dict(inputs)


def coloured(inputs: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, str]]:
    """(name, input, colour) for every input."""
    for (name, value), colour in zip(inputs.items(), cycle(COLOURS), strict=False):
        yield name, value, colour


def point_values(values: Any) -> np.ndarray:
    """Values over points as an array of shape (draws, point).

    Takes shape (point,), or (chain, draw, point) with the dims of a DataArray in any order.
    """
    if hasattr(values, "dims"):
        sampled = [dim for dim in ("chain", "draw") if dim in values.dims]
        values = values.transpose(*sampled, ...).to_numpy()
        fits = values.ndim == len(sampled) + 1
    else:
        values = np.asarray(values)
        fits = values.ndim in (1, 3)
    if not fits:
        raise ValueError(
            "Values at points must have the dims (point,) or (chain, draw, point); "
            f"found the shape {values.shape}."
        )
    return values.astype(float).reshape(-1, values.shape[-1])


def leave_room(ax: Axes, rows: int, *, below: bool) -> None:
    """Extend the y axis below or above what is drawn, for a legend of so many rows."""
    share = min(0.08 * rows + 0.05, 0.6)
    low, high = ax.get_ylim()
    if below:
        ax.set_ylim(high - (high - low) / (1.0 - share), high)
    else:
        ax.set_ylim(low, low + (high - low) / (1.0 - share))


def _pyplot():
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed. "
            'Install it with: pip install "pymc_pseudomarginal[plots]"'
        ) from error
    return pyplot
