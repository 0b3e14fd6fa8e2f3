"""Table 1: how well chains of the hyper-parameters mix, by scheme.

The paper compares Metropolis-Hastings with an importance-sampled marginal likelihood (PM, with the
Laplace approximation or EP and 1, 16 or 64 importance samples) with its two best alternatives, AA
and SURR. The data are simulated: 50 or 200 of them with 2 or 10 inputs, and an isotropic or an ARD
covariance. All PM schemes share one random walk, tuned by PM EP (64) in a pilot run; AA and SURR
tune their own. Beside them runs the default sampler of this package.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from examples.benchmarks.tables import UNKNOWN, number, table
from examples.paper.chains import SAMPLERS
from examples.paper.claims import Claim
from examples.paper.estimates import Estimate
from examples.paper.published import TABLE_1
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

TITLE = "Table 1: efficiency and convergence of the samplers on simulated data"
SCHEMES = tuple(SAMPLERS)
SCALES = {
    "quick": {"chains": 3, "burn_in": 400, "draws": 500, "repeats": 1, "pilot": 600},
    "medium": {"chains": 4, "burn_in": 1000, "draws": 5000, "repeats": 1, "pilot": 2000},
    "paper": {"chains": 10, "burn_in": 5000, "draws": 10000, "repeats": 1, "pilot": 5000},
}
draw = no_figure


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """Pilot runs, then chains."""
    return chain_tasks(settings, results, SCHEMES)


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """Our table for each kernel beside the paper's, and ratios between schemes."""
    finished = Finished(settings, results)
    lengths = ", ".join(str(round(share * settings["draws"])) for share in CHECKPOINTS)
    reading = (
        "ESS is that of the hyper-parameter which has the lowest, per 10 000 iterations, and R-hat "
        f"that of the one which has the highest, after {lengths} iterations (the paper: 1000, "
        "2000, 5000 and 10 000). In parentheses are standard deviations between chains; divided "
        "by the square root of the number of chains they are the standard errors of the means"
        f"{_typical_error(finished)}. The paper has published neither its data nor the "
        "length-scale with which it simulated ten inputs, so that ESS and acceptance need not "
        "agree with it; the ratios between schemes, below the tables, should."
    )
    parts = [finished.summary(SCHEMES), reading]
    for kernel, title in KERNELS.items():
        parts += [f"{title}:", _kernel_table(finished, kernel)]
    parts.append(_against_the_paper(finished))
    pairs = [(PM, "AA"), (PM, "SURR"), (PM, "PM EP (1)"), (PM, "PM LA (64)")]
    pairs += [("PM LA (64)", "PM LA (1)"), ("default", PM)]
    parts += [
        "Ratios of ESS, as geometric means over the data sets, with bounds of two standard errors. "
        "These and the errors of the claims come from the variation between chains, widened to "
        "Student's t for their number; they do not cover that other data and pilot runs would give "
        f"other chains. {_few(finished)}",
        ratios(finished, "ESS", pairs, _published_ess),
    ]
    return "\n\n".join(parts)


def _typical_error(finished: Finished) -> str:
    relative = [
        estimate.variance**0.5 / estimate.value
        for cell in CELLS
        for scheme in SCHEMES
        if len(values := finished.values("ESS", cell, scheme)) > 1
        for estimate in [Estimate.of_mean(values)]
    ]
    return f" ({100 * np.median(relative):.0f} % of ESS in the median row)" if relative else ""


def _against_the_paper(finished: Finished) -> str:
    """Our ESS over the paper's for each scheme, over the cells; what that may mean."""
    found = []
    for scheme in SCHEMES:
        logs = [
            np.log(np.mean(values) / _published_ess(cell, scheme))
            for cell in CELLS
            if np.isfinite(_published_ess(cell, scheme))
            and len(values := finished.values("ESS", cell, scheme))
        ]
        if logs:
            low, middle, high = map(number, np.exp([min(logs), np.mean(logs), max(logs)]))
            found.append(f"{scheme} {middle} ({low} to {high})")
    return (
        "ESS here over that of the paper, geometric means over the data sets, with the lowest and "
        f"the highest: {'; '.join(found)}. The next section has how far that depends on the data."
    )


def _few(finished: Finished) -> str:
    rows = [(cell, scheme) for cell in CELLS for scheme in SCHEMES]
    rows = [row for row in rows if finished.chains(*row)]
    few = sum(not finished.known(*row) for row in rows)
    return (
        f"In {few} of {len(rows)} rows a chain has fewer than {FEW} effective draws on average, "
        "too few to know their number: two such schemes are not compared."
    )


def _kernel_table(finished: Finished, kernel: str) -> str:
    header = ["n", "d", "scheme", "ESS", "paper", "R-hat", "paper", "acceptance, %", "paper"]
    rows = [
        _row(finished, cell, scheme)
        for cell in CELLS
        if cell.kernel == kernel
        for scheme in SCHEMES
    ]
    return table(header, rows)


def _row(finished: Finished, cell: Cell, scheme: str) -> list[str]:
    paper = [UNKNOWN] * 3
    if row := TABLE_1.get((*cell, scheme)):
        paper = [
            f"{row.ess:.0f} ({row.ess_sd:.0f})",
            listed(row.rhats),
            f"{row.acceptance} ({row.acceptance_sd})",
        ]
    ours = [
        mean_and_sd(finished.values("ESS", cell, scheme)),
        listed(finished.rhats(cell, scheme)),
        mean_and_sd(finished.values("acceptance in percent", cell, scheme)),
    ]
    beside = [text for both in zip(ours, paper, strict=True) for text in both]
    return [str(cell.n), str(cell.d), scheme, *beside]


def _published_ess(cell: Cell, scheme: str) -> float:
    row = TABLE_1.get((*cell, scheme))
    return row.ess if row else np.nan


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """PM against AA and SURR in each cell; EP against LA and N against 1 over all cells."""
    finished = Finished(settings, results)
    found = []
    for cell in CELLS:
        for other in ("AA", "SURR"):
            text = f"{cell}: {PM} has a higher ESS per iteration than {other}"
            found += finished.claim(text, "ESS", [(cell, PM, other)])
    for name in ("LA", "EP"):
        one, many = f"PM {name} (1)", f"PM {name} (64)"
        text = f"Acceptance falls when N is small: {many} accepts more than {one}"
        pairs = [(cell, many, one) for cell in CELLS]
        found += finished.claim(text, "acceptance in percent", pairs, log=False)
    for N in (1, 16, 64):
        ep, la = f"PM EP ({N})", f"PM LA ({N})"
        text = f"{ep} has a higher ESS per iteration than {la}"
        found += finished.claim(text, "ESS", [(cell, ep, la) for cell in CELLS])
    return found
