"""Beside Table 1: how far its figures depend on the data that were simulated.

The paper's data are not published, and those of Table 1 are one set of each size. Here the chains
run on several sets, one chain of each scheme on each, so that errors cover what other data do. The
schemes tune their own random walks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from examples.benchmarks.tables import UNKNOWN, number, table
from examples.paper.chains import draw_chain, smallest_ess
from examples.paper.claims import Claim
from examples.paper.estimates import Estimate
from examples.paper.models import gp_probit, prior_draw, simulated
from examples.paper.published import TABLE_1
from examples.paper.simulated_chains import PM, no_figure
from examples.paper.tasks import Task

TITLE = "Beside Table 1: efficiency on other simulated data"
SIZES = ((50, 2), (50, 10))
SCHEMES = (PM, "AA", "SURR")
SCALES = {
    "quick": {"sets": 3, "burn_in": 400, "draws": 500},
    "medium": {"sets": 10, "burn_in": 1000, "draws": 5000},
    "paper": {"sets": 20, "burn_in": 5000, "draws": 10000},
}
draw = no_figure


def chain(
    *, n: int, d: int, data_set: int, scheme: str, burn_in: int, draws: int, seed: int
) -> dict:
    """Run a chain on one of the data sets.

    Returns
    -------
    dict
        ESS of the worst hyper-parameter per 10 000 iterations, of logarithms (``ess``) and of the
        hyper-parameters themselves (``natural``).
    """
    rng = np.random.default_rng(seed)
    model, _ = gp_probit(*simulated(n, d, data_set))
    start, seed = prior_draw(model, rng), int(rng.integers(2**32))
    found = draw_chain(model, scheme, start, burn_in=burn_in, draws=draws, seed=seed)
    scales = {"ess": found.psi, "natural": np.exp(found.psi)}
    return {name: 1e4 * smallest_ess(values) / draws for name, values in scales.items()}


def _name(n: int, d: int, scheme: str, data_set: int) -> str:
    return f"n={n} d={d}, {scheme}, data set {data_set}"


def _sets(settings: Mapping) -> Sequence[int]:
    """Their numbers; 0 is that of Table 1."""
    return range(1, settings["sets"] + 1)


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """One for every chain."""
    lengths = {name: settings[name] for name in ("burn_in", "draws")}
    return [
        Task(
            _name(n, d, scheme, data_set),
            chain,
            {"n": n, "d": d, "scheme": scheme, "data_set": data_set, **lengths},
        )
        for n, d in SIZES
        for data_set in _sets(settings)
        for scheme in SCHEMES
    ]


def _ess(
    settings: Mapping, results: Mapping[str, dict], n: int, d: int, scale: str = "ess"
) -> np.ndarray:
    """Of all schemes on the data sets that all of them have run on, shape (sets, schemes)."""
    rows = [[_name(n, d, scheme, data_set) for scheme in SCHEMES] for data_set in _sets(settings)]
    found = [[results[name][scale] for name in row] for row in rows if set(row) <= results.keys()]
    return np.array(found).reshape(-1, len(SCHEMES))


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """ESS over the data sets beside the paper's."""
    rows = []
    for n, d in SIZES:
        values, natural = (_ess(settings, results, n, d, scale) for scale in ("ess", "natural"))
        for scheme, column, other in zip(SCHEMES, values.T, natural.T, strict=True):
            paper = TABLE_1[n, d, "isotropic", scheme]
            below = str(int(np.sum(column < paper.ess)))
            published = f"{paper.ess:.0f} ({paper.ess_sd:.0f})"
            median = number(np.median(other)) if len(other) else UNKNOWN
            rows.append([str(n), str(d), scheme, *_cells(column), published, below, median])
    header = ["n", "d", "scheme", "data sets", "median ESS", "lowest", "highest", "paper"]
    return (
        f"Isotropic covariance; a chain of each scheme on {settings['sets']} data sets, simulated "
        "like those of Table 1 with other seeds, from the prior, with "
        f"{settings['burn_in']} iterations of burn-in and {settings['draws']} to keep. ESS of the "
        "worst hyper-parameter per 10 000 iterations, on the logarithmic scale; *below* is on how "
        "many data sets it is less than in the paper. The last column has the median for the "
        "hyper-parameters themselves; which of the two scales the paper took is not known. Errors "
        "of the claims come from the variation between data sets.\n\n"
        + table([*header, "below", "median on the natural scale"], rows)
    )


def _cells(values: np.ndarray) -> list[str]:
    if not len(values):
        return ["0", *[UNKNOWN] * 3]
    return [str(len(values)), *map(number, np.quantile(values, [0.5, 0.0, 1.0]))]


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """PM against AA and SURR, over data sets."""
    found = []
    for n, d in SIZES:
        logs = np.log(_ess(settings, results, n, d))
        if len(logs) < 2:
            continue
        for j, other in enumerate(SCHEMES[1:], start=1):
            mean = Estimate.of_mean(logs[:, 0] - logs[:, j])
            text = f"n={n} d={d}: {PM} has a higher ESS per iteration than {other}, over data sets"
            quantity = f"log ratio of ESS, mean of {len(logs)} data sets"
            found.append(Claim(text, quantity, mean.value, mean.error))
    return found
