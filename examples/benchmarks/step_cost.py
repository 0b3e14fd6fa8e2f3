"""How many Cholesky factorisations one draw takes."""

from __future__ import annotations

import itertools

import numpy as np
from threadpoolctl import threadpool_limits

from examples.benchmarks.problems import Chain, probit_model, tuning_draws
from examples.benchmarks.tables import UNKNOWN, number, spread, table
from examples.benchmarks.timing import in_factorisations, interleaved

TITLE = "The cost of a draw"
READING = (
    "One `PseudoMarginalMH.step` after tuning, in times of one factorisation by LAPACK's `dpotrf` "
    "of an n×n matrix: the median, with the quartiles over the draws in brackets. Cubic "
    "operations are the factorisations and inversions that the step itself counts, each worth one "
    "to two `dpotrf`; what the ratio exceeds them by is everything else. Growth is the exponent of "
    "n between a size and the one before it, where 3 is that of a factorisation in theory."
)
# Draws that are timed at every size.
FULL = {"repetitions": {50: 300, 200: 200, 768: 60, 2000: 20}}
QUICK = {"repetitions": {50: 60, 200: 40}}

SAMPLERS = (("laplace", 1), ("laplace", 16), ("ep", 16), ("fitted", 16))


@threadpool_limits.wrap(limits=1)
def measure(repetitions: dict[int, int]) -> dict:
    """Time the step at every size, for Laplace and EP.

    Parameters
    ----------
    repetitions : dict
        Number of timed draws by n.
    """
    rows = []
    for approximation, n_importance in SAMPLERS:
        own = [_row(approximation, n_importance, n, timed) for n, timed in repetitions.items()]
        for before, row in itertools.pairwise(own):
            row["growth"] = _growth(before, row, "milliseconds")
            row["dpotrf_growth"] = _growth(before, row, "dpotrf_milliseconds")
        rows += own
    return {"rows": rows}


def _row(approximation: str, n_importance: int, n: int, repetitions: int) -> dict:
    chain = Chain(probit_model(n, 2), approximation=approximation, n_importance=n_importance)
    chain.tune(tuning_draws(n))
    statistics = []
    times = interleaved(lambda: statistics.append(chain.draw()), n, repetitions)

    def mean(name):
        return float(np.mean([one[name] for one in statistics]))

    return {
        "approximation": approximation,
        "n_importance": n_importance,
        "n": n,
        "repetitions": repetitions,
        **in_factorisations(*times),
        "cubic_operations": mean("pm_cubic_operations"),
        "iterations": mean("pm_iterations"),
        "acceptance": mean("pm_accepted"),
    }


def _growth(before: dict, after: dict, name: str) -> float:
    return float(np.log(after[name] / before[name]) / np.log(after["n"] / before["n"]))


def as_markdown(result: dict) -> str:
    """The table."""
    header = (
        *("approximation", "N", "n", "draw / dpotrf", "cubic operations", "iterations"),
        *("acceptance", "ms per draw", "ms per dpotrf", "growth of draw", "growth of dpotrf"),
    )
    return table(header, [_cells(row) for row in result["rows"]])


def _cells(row: dict) -> tuple[str, ...]:
    growth = [row.get(name) for name in ("growth", "dpotrf_growth")]
    return (
        row["approximation"],
        str(row["n_importance"]),
        str(row["n"]),
        spread(row["ratio"]),
        f"{row['cubic_operations']:.1f}",
        f"{row['iterations']:.1f}",
        f"{row['acceptance']:.2f}",
        number(row["milliseconds"]),
        number(row["dpotrf_milliseconds"]),
        *(UNKNOWN if slope is None else f"{slope:.1f}" for slope in growth),
    )
