"""Capacity scores: how well a classifier knows when to abstain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.stats import rankdata

THRESHOLDS = np.arange(51) / 100.0
"""The paper's rho: 0.00, 0.01, ..., 0.50."""

# A distance from 0.5 that equals a threshold up to rounding is not below it.
_ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class CapacityScores:
    """Areas under accuracy and AUC against the degree of abstention, normalised to one.

    Attributes
    ----------
    accuracy : float
        Capacity accuracy.
    auc : float
        Capacity AUC.
    curves : xarray.Dataset
        Over the coordinate ``rho``: ``abstention`` (share of cases left out), ``kept``
        (their number), ``accuracy`` and ``auc``, NaN where they are not defined.
    """

    accuracy: float
    auc: float
    curves: xr.Dataset

    def __repr__(self):
        """The two scores, and how far the classifier abstains."""
        largest = float(self.curves["abstention"].max())
        return (
            f"CapacityScores(accuracy={self.accuracy:.4f}, auc={self.auc:.4f}, "
            f"abstention up to {largest:.0%})"
        )


def capacity_scores(y: np.ndarray, p: np.ndarray) -> CapacityScores:
    """Capacity accuracy and capacity AUC of predictive probabilities.

    For every rho the cases with 0.5 - rho < p < 0.5 + rho are left out, and accuracy
    and AUC are computed on the rest. The scores are the areas under these two curves
    against the share of cases left out, by the trapezoidal rule, divided by the
    largest share at which the curve is defined.

    Parameters
    ----------
    y : array, shape (n,)
        Labels, 0 or 1 (or False and True), of both classes.
    p : array, shape (n,)
        Predictive probabilities of label 1.

    Returns
    -------
    CapacityScores

    Notes
    -----
    A probability of exactly 0.5 counts as half right; ties of p count half in the AUC.
    Where no case is left neither curve is defined, and where one class is left the
    AUC is not: such points are no part of the curve. If the classifier never abstains
    (all probabilities are 0 or 1), the scores are plain accuracy and AUC.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian
    processes, section 5; Ferri & Hernández-Orallo (2004), Cautious classifiers.

    Examples
    --------
    >>> pmpm.capacity_scores([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    CapacityScores(accuracy=0.7500, auc=0.8750, abstention up to 100%)
    """
    y, p = _checked(y, p)
    distance = np.abs(p - 0.5)
    rows = [_on_the_rest(y, p, distance >= rho - _ROUNDING) for rho in THRESHOLDS]
    kept, accuracy, auc = (np.array(column) for column in zip(*rows, strict=True))
    abstention = 1.0 - kept / len(y)
    curves = xr.Dataset(
        {
            name: ("rho", values)
            for name, values in (
                ("abstention", abstention),
                ("kept", kept),
                ("accuracy", accuracy),
                ("auc", auc),
            )
        },
        coords={"rho": THRESHOLDS},
    )
    return CapacityScores(_area(abstention, accuracy), _area(abstention, auc), curves)


def _checked(y, p):
    y, p = np.asarray(y), np.asarray(p, dtype=float)
    if y.ndim != 1 or y.shape != p.shape or not len(y):
        raise ValueError(
            f"y and p must be vectors of the same length; found shapes {y.shape} and {p.shape}."
        )
    if not np.isin(y, (0, 1)).all():
        found = ", ".join(str(value) for value in np.unique(y)[:5])
        raise ValueError(f"Labels must be 0 or 1; found the values {found}. Recode them (y > 0).")
    if not ((p >= 0.0) & (p <= 1.0)).all():
        bad = p[~((p >= 0.0) & (p <= 1.0))][0]
        raise ValueError(f"Probabilities must lie between 0 and 1; found {bad}.")
    y = y.astype(bool)
    if y.all() or not y.any():
        raise ValueError(
            f"All {len(y)} labels are {int(y[0])}: the AUC needs cases of both classes."
        )
    return y, p


def _on_the_rest(y, p, kept):
    """(number kept, accuracy, AUC) on the cases that are kept."""
    y, p = y[kept], p[kept]
    n, positive = len(y), int(y.sum())
    if n == 0:
        return 0, np.nan, np.nan
    right = np.where(p == 0.5, 0.5, (p > 0.5) == y)
    if positive in (0, n):
        return n, right.mean(), np.nan
    # The share of pairs in the right order, by the ranks of the positive cases.
    pairs = rankdata(p)[y].sum() - positive * (positive + 1) / 2
    return n, right.mean(), pairs / (positive * (n - positive))


def _area(abstention, values):
    defined = ~np.isnan(values)
    abstention, values = abstention[defined], values[defined]
    if abstention[-1] == 0.0:
        return float(values[0])
    return float(np.trapezoid(values, abstention) / abstention[-1])
