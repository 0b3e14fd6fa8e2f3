"""Clocks that the benchmarks share: the unit of time is one Cholesky factorisation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf


class Factorisation:
    """LAPACK's dpotrf of an n×n matrix, the unit in which a draw is measured.

    Parameters
    ----------
    n : int
    """

    def __init__(self, n: int):
        # Equal correlations: no entry of the factor is so small that arithmetic slows down.
        self._matrix = np.asfortranarray(0.5 * np.eye(n) + 0.5)
        self._work = np.empty_like(self._matrix)

    def seconds(self) -> float:
        """Of one factorisation in place, without the copy that it needs."""
        np.copyto(self._work, self._matrix)
        start = time.perf_counter()
        dpotrf(self._work, lower=1, overwrite_a=1, clean=0)
        return time.perf_counter() - start


def interleaved(
    work: Callable[[], object], n: int, repetitions: int
) -> tuple[list[float], list[float]]:
    """Seconds of `work` and of the factorisation, taken in turn.

    In turn, so that whatever else the machine does slows both.
    """
    unit = Factorisation(n)
    unit.seconds()
    works, units = [], []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        works.append(time.perf_counter() - start)
        units.append(unit.seconds())
    return works, units


class DrawClock:
    """A callback of `pm.sample` on one core that times its draws after tuning.

    The factorisation is timed after every draw, and not counted to the next.

    Parameters
    ----------
    n : int
    step : step method
        The step of the chain, whose share of a draw is timed too.

    Attributes
    ----------
    draws, steps, units : list of float
        Seconds of every draw, of the step in it, and of the factorisation after it.
    """

    def __init__(self, n: int, step):
        self.draws: list[float] = []
        self.steps: list[float] = []
        self.units: list[float] = []
        self._unit = Factorisation(n)
        self._previous: float | None = None
        self._untimed = step.step
        step.step = self._timed_step

    def _timed_step(self, point):
        start = time.perf_counter()
        result = self._untimed(point)
        self._step = time.perf_counter() - start
        return result

    def __call__(self, trace, draw) -> None:
        """What PyMC calls when it has recorded a draw."""
        now = time.perf_counter()
        if draw.tuning:
            return
        # The first draw after tuning has frozen the proposal, and is left out.
        if self._previous is not None:
            self.draws.append(now - self._previous)
            self.steps.append(self._step)
            self.units.append(self._unit.seconds())
        self._previous = time.perf_counter()


def quartiles(values: Sequence[float]) -> dict[str, float]:
    """The median, and the lower and upper quartile."""
    lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75])
    return {"median": float(median), "lower": float(lower), "upper": float(upper)}


def divided(spread: dict[str, float], by: float) -> dict[str, float]:
    """A spread in another unit."""
    return {name: value / by for name, value in spread.items()}


def in_factorisations(works: Sequence[float], units: Sequence[float]) -> dict:
    """Times of work in median times of the factorisation, and both in milliseconds."""
    unit = float(np.median(units))
    return {
        "ratio": divided(quartiles(works), unit),
        "milliseconds": 1e3 * float(np.median(works)),
        "dpotrf_milliseconds": 1e3 * unit,
    }
