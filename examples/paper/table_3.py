"""Table 3: PM, AA and SURR with each Gibbs update repeated 20 times.

Repeating the update of the hyper-parameters, and then that of f, takes away most of what the random
walk costs. What is left is the dependence of the hyper-parameters on the coordinates of f that AA
and SURR hold fixed; PM holds none. PM is PM EP (64), with the random walk of a pilot run.
"""

from __future__ import annotations

from collections.abc import Mapping

from examples.benchmarks.tables import table
from examples.paper.claims import Claim
from examples.paper.published import TABLE_3
from examples.paper.simulated_chains import (
    CELLS,
    CHECKPOINTS,
    FEW,
    KERNELS,
    PM,
    Cell,
    Finished,
    chain_tasks,
    listed,
    mean_and_sd,
    no_figure,
    ratios,
)
from examples.paper.tasks import Task

TITLE = "Table 3: efficiency and convergence with repeated updates"
SCHEMES = (PM, "AA", "SURR")
SCALES = {
    "quick": {"chains": 3, "burn_in": 400, "draws": 60, "repeats": 20, "pilot": 600},
    "medium": {"chains": 4, "burn_in": 1000, "draws": 500, "repeats": 20, "pilot": 2000},
    "paper": {"chains": 10, "burn_in": 5000, "draws": 10000, "repeats": 20, "pilot": 5000},
}

draw = no_figure


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """Pilot runs, then chains."""
    return chain_tasks(settings, results, SCHEMES)


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """Our table for each kernel beside the paper's, and ratios between schemes."""
    finished = Finished(settings, results)
    lengths = ", ".join(str(round(share * settings["draws"])) for share in CHECKPOINTS)
    parts = [
        finished.summary(SCHEMES)
        + f" After burn-in an iteration is {settings['repeats']} proposals of the "
        "hyper-parameters, and as many moves of f for AA and SURR.",
        "ESS of the worst hyper-parameter is per 10 000 such iterations, and ESS/op. is ESS "
        "divided by the cubic operations of one proposal, as in the paper. R-hat is after "
        f"{lengths} iterations (the paper: 1000, 2000, 5000 and 10 000). In parentheses are "
        "standard deviations between chains; divided by the square root of the number of chains "
        "they are the standard errors of the means. The data are not the paper's, so that ratios "
        "between schemes compare better than ESS does.",
    ]
    for kernel, title in KERNELS.items():
        parts += [f"{title}:", _kernel_table(finished, kernel)]
    pairs = [(PM, "AA"), (PM, "SURR")]
    parts.append(
        "Ratios, as geometric means over the data sets, with bounds of two standard errors. They "
        f"leave out cells where both schemes have fewer than {FEW} effective draws per chain, and "
        "for ESS per operation those where one has."
    )
    parts += [ratios(finished, quantity, pairs, _PUBLISHED[quantity]) for quantity in _PUBLISHED]
    return "\n\n".join(parts)


_PUBLISHED = {
    "ESS": lambda cell, scheme: TABLE_3[*cell, scheme].ess,
    "ESS per cubic operation": lambda cell, scheme: TABLE_3[*cell, scheme].ess_per_operation,
}


def _kernel_table(finished: Finished, kernel: str) -> str:
    header = ["n", "d", "scheme", "ESS", "paper", "ESS/op.", "paper", "R-hat", "paper"]
    cells = [cell for cell in CELLS if cell.kernel == kernel]
    return table(header, [_row(finished, cell, scheme) for cell in cells for scheme in SCHEMES])


def _row(finished: Finished, cell: Cell, scheme: str) -> list[str]:
    row = TABLE_3[*cell, scheme]
    return [
        *(str(cell.n), str(cell.d), scheme),
        mean_and_sd(finished.values("ESS", cell, scheme)),
        f"{row.ess:.0f} ({row.ess_sd:.0f})",
        mean_and_sd(finished.values("ESS per cubic operation", cell, scheme)),
        f"{row.ess_per_operation:.0f} ({row.ess_per_operation_sd:.0f})",
        listed(finished.rhats(cell, scheme)),
        listed(row.rhats),
    ]


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """PM against AA and SURR in each cell, wherever the paper's numbers have it ahead."""
    finished = Finished(settings, results)
    found = []
    for quantity, published in _PUBLISHED.items():
        for cell in CELLS:
            for other in ("AA", "SURR"):
                if published(cell, PM) > published(cell, other):
                    text = f"{cell}, repeated updates: {PM} has a higher {quantity} than {other}"
                    found += finished.claim(text, quantity, [(cell, PM, other)])
    return found
