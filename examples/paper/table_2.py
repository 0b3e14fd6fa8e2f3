"""Table 2: cubic operations per iteration, and what an effective draw costs.

The paper counts factorisations, inversions and products of n×n matrices, and divides the ESS of
Table 1 by them. The chains are those of Table 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from examples.benchmarks.tables import UNKNOWN, number, table
from examples.paper.claims import Claim
from examples.paper.published import TABLE_1, TABLE_2
from examples.paper.simulated_chains import (
    CELLS,
    FEW,
    GROUPS,
    KERNELS,
    Cell,
    Finished,
    mean_and_sd,
    no_figure,
)
from examples.paper.table_1 import SCALES as SCALES
from examples.paper.table_1 import SCHEMES
from examples.paper.table_1 import tasks as tasks

TITLE = "Table 2: cubic operations per iteration"
STORED_AS = "table-1"
_COST = "ESS per cubic operation"
_ROWS = (*GROUPS, "AA", "SURR", "default")

draw = no_figure


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """Operations, and ESS per operation, beside the paper's."""
    finished = Finished(settings, results)
    return "\n\n".join(
        [
            "From the chains of Table 1. " + finished.summary(SCHEMES),
            "Cubic operations per proposal; in parentheses their standard deviation between "
            "chains, which are those of all N for PM LA and PM EP. What differs from the paper: "
            "Newton and EP start where a linear function of the hyper-parameters, frozen at the "
            "end of tuning, predicts the mode or the sites, and they stop as soon as their "
            f"Gaussian is good enough for importance sampling.{_factors(finished)}",
            _table(_ROWS, lambda cell, row: _operations(finished, cell, row)),
            "ESS per 10 000 iterations divided by cubic operations per iteration. PM is the one "
            "of the six PM schemes that has the highest value by the paper's numbers in that cell; "
            f"{_ahead(finished)}",
            _table(("PM", *_ROWS[-3:]), lambda cell, row: _efficiency(finished, cell, row)),
        ]
    )


def _table(schemes, entries) -> str:
    """A row for each data set and scheme, two columns of `entries` for each kernel."""
    rows = [
        [str(n), str(d), scheme, *(e for k in KERNELS for e in entries(Cell(n, d, k), scheme))]
        for n, d in dict.fromkeys((cell.n, cell.d) for cell in CELLS)
        for scheme in schemes
    ]
    return table(["n", "d", "scheme", "isotropic", "paper", "ARD", "paper"], rows)


def _operations(finished: Finished, cell: Cell, scheme: str) -> list[str]:
    row = TABLE_2.get((*cell, scheme))
    paper = f"{row.operations} ({row.operations_sd})" if row else UNKNOWN
    return [mean_and_sd(finished.values("cubic operations", cell, scheme)), paper]


def _factors(finished: Finished) -> str:
    """By how much the paper's counts exceed ours."""
    factors = {}
    for scheme in GROUPS:
        ours = {cell: finished.values("cubic operations", cell, scheme) for cell in CELLS}
        logs = [
            np.log(TABLE_2[*cell, scheme].operations / values.mean())
            for cell, values in ours.items()
            if len(values)
        ]
        if logs:
            factors[scheme] = f"{number(np.exp(np.mean(logs)))} times ours for {scheme}"
    return f" The paper's counts are {' and '.join(factors.values())}." if factors else ""


def _efficiency(finished: Finished, cell: Cell, row: str) -> list[str]:
    scheme = _best_pm(cell) if row == "PM" else row
    ours = mean_and_sd(finished.values(_COST, cell, scheme))
    paper = number(_published(cell, scheme)) if (*cell, scheme) in TABLE_1 else UNKNOWN
    return [f"{scheme}: {ours}", paper] if row == "PM" else [ours, paper]


def _published(cell: Cell, scheme: str) -> float:
    """ESS per cubic operation by the paper's Tables 1 and 2."""
    group = next((name for name, members in GROUPS.items() if scheme in members), scheme)
    return TABLE_1[*cell, scheme].ess / TABLE_2[*cell, group].operations


def _best_pm(cell: Cell) -> str:
    """The PM scheme of the highest ESS per operation in the paper; ours have no say in it."""
    schemes = [scheme for members in GROUPS.values() for scheme in members]
    return max(schemes, key=lambda scheme: _published(cell, scheme))


def _ahead(finished: Finished) -> str:
    """In how many cells PM is ahead."""
    texts = []
    for other in ("AA", "SURR"):
        pairs = [(cell, _best_pm(cell), other) for cell in CELLS]
        paper = sum(_published(cell, pm) > _published(cell, other) for cell, pm, _ in pairs)
        pairs = finished.comparable(_COST, pairs)
        ours = sum(finished.difference(_COST, [pair]).value > 0 for pair in pairs)
        texts.append(
            f"ahead of {other} in {paper} of {len(CELLS)} cells by the paper's numbers and in "
            f"{ours} of {len(pairs)} here"
        )
    return f"it is {', and '.join(texts)} (where both have {FEW} or more effective draws a chain)."


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """Operations compared, and ESS per operation where the paper's numbers have PM ahead."""
    finished = Finished(settings, results)
    found = []
    for more, fewer in (("PM EP", "PM LA"), ("PM LA", "AA"), ("PM LA", "SURR"), ("PM EP", "SURR")):
        text = f"{more} needs more cubic operations per iteration than {fewer}"
        found += finished.claim(text, "cubic operations", [(cell, more, fewer) for cell in CELLS])
    for other in ("AA", "SURR"):
        pairs = [(cell, _best_pm(cell), other) for cell in CELLS]
        text = f"PM (the paper's best in each cell) has a higher {_COST} than {other} in general"
        found += finished.claim(text, _COST, pairs)
        for cell, pm, _ in pairs:
            if _published(cell, pm) > _published(cell, other):
                text = f"{cell}: {pm} has a higher {_COST} than {other}"
                found += finished.claim(text, _COST, [(cell, pm, other)])
    return found
