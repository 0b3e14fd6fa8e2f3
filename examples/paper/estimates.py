"""Numbers with errors, from few independent chains or folds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np
from scipy import stats

from examples.paper.claims import DECISIVE


@dataclass(frozen=True)
class Estimate:
    """A number with the variance of its error, and the degrees of freedom of that variance."""

    value: float
    variance: float
    freedom: float

    @classmethod
    def of_mean(cls, values: np.ndarray, *, log: bool = False) -> Estimate:
        """The mean of two or more independent values, or its logarithm by the delta method."""
        mean, variance = float(np.mean(values)), float(np.var(values, ddof=1)) / len(values)
        if log:
            mean, variance = float(np.log(mean)), variance / mean**2
        return cls(mean, variance, len(values) - 1)

    @property
    def error(self) -> float:
        """Standard error, widened so that two of them mean for Student's t what they should.

        A few chains know their variance so badly that it often looks too small.
        """
        level = stats.norm.cdf(DECISIVE)
        return float(np.sqrt(self.variance) * stats.t.ppf(level, self.freedom) / DECISIVE)


def weighted_sum(terms: Iterable[tuple[float, Estimate]]) -> Estimate:
    """Of independent estimates, with the degrees of freedom of Welch and Satterthwaite."""
    weights, estimates = zip(*terms, strict=True)
    values, variances, freedoms = np.array([astuple(estimate) for estimate in estimates]).T
    parts = np.square(weights) * variances
    total = parts.sum()
    freedom = total**2 / np.sum(parts**2 / freedoms) if total > 0 else freedoms.sum()
    return Estimate(float(values @ weights), float(total), float(freedom))
