"""Accuracy and AUC of classifiers that may abstain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pymc_pseudomarginal.plots.canvas import coloured, leave_room, named, two_axes
from pymc_pseudomarginal.scores import CapacityScores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = (
    ("accuracy", "Accuracy on the cases kept", "capacity accuracy"),
    ("auc", "AUC on the cases kept", "capacity AUC"),
)


def plot_capacity(
    scores: CapacityScores | Mapping[str, CapacityScores],
    *,
    ax: Sequence[Axes] | None = None,
) -> np.ndarray:
    """Accuracy and AUC against the degree of abstention.

    Parameters
    ----------
    scores : CapacityScores or mapping of name to CapacityScores
        Those of one classifier, or of several to compare.
    ax : two Axes, optional
        For accuracy and for AUC.

    Returns
    -------
    array of Axes, shape (2,)
    """
    scores = named(scores)
    for name, value in scores.items():
        if not isinstance(value, CapacityScores):
            raise ValueError(
                f"scores{'' if name is None else f'[{name!r}]'} must be a CapacityScores, as "
                f"capacity_scores(y, p) returns it; found {type(value).__name__}."
            )
    axes = two_axes(ax)
    for panel, (kind, label, score) in zip(axes, _PANELS, strict=True):
        for name, value, colour in coloured(scores):
            curve = value.curves[["abstention", kind]].dropna("rho")
            text = f"{name or score}: {getattr(value, kind):.3f}"
            panel.plot(curve["abstention"], curve[kind], color=colour, lw=2, label=text)
        panel.set(xlabel="Degree of abstention (share of cases left out)", ylabel=label)
        leave_room(panel, len(scores) + (None not in scores), below=True)
        panel.legend(title=None if None in scores else score, loc="lower right")
    return axes
