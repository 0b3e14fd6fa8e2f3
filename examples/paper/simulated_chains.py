"""Chains on simulated data for Tables 1 to 3, and what they say with their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from examples.benchmarks.tables import UNKNOWN, number, table
from examples.paper.chains import Chain, draw_chain, moments, rhat, smallest_ess
from examples.paper.claims import DECISIVE, Claim
from examples.paper.estimates import Estimate, weighted_sum
from examples.paper.models import gp_probit, prior_draw, simulated
from examples.paper.tasks import Task
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation


class Cell(NamedTuple):
    """A data set and a covariance function, "isotropic" or "ard"."""

    n: int
    d: int
    kernel: str

    def __str__(self) -> str:
        return f"n={self.n} d={self.d} {self.kernel}"


KERNELS = {"isotropic": "Isotropic covariance", "ard": "ARD covariance"}
CELLS = [Cell(n, d, kernel) for kernel in KERNELS for n in (50, 200) for d in (2, 10)]

PM = "PM EP (64)"
"""Whose tuned proposal all pseudo-marginal schemes of the paper share."""

GROUPS = {name: tuple(f"{name} ({N})" for N in (1, 16, 64)) for name in ("PM LA", "PM EP")}
"""Schemes of which Table 2 has only one row."""

# At which R-hat is reported: the paper's 1000, 2000, 5000 and 10 000 of 10 000 iterations.
CHECKPOINTS = (0.1, 0.2, 0.5, 1.0)

FEW = 5
"""Effective draws below which ESS is overestimated, as simulated autoregressive chains show."""


def _run(cell: Cell, scheme: str, seed: int, **settings) -> Chain:
    rng = np.random.default_rng(seed)
    model, _ = gp_probit(*simulated(cell.n, cell.d), ard=cell.kernel == "ard")
    start = prior_draw(model, rng)
    return draw_chain(model, scheme, start, seed=int(rng.integers(2**32)), **settings)


def pilot(*, cell: Sequence, burn_in: int, draws: int, seed: int) -> dict:
    """Tune the random walk of PM EP (64).

    Returns
    -------
    dict
        ``proposal``: mean, covariance and log_scale of the random walk; ``acceptance`` with it.
    """
    found = _run(Cell(*cell), PM, seed, burn_in=burn_in, draws=draws)
    walk = {name: getattr(found.adaptation, name) for name in ("mean", "covariance", "log_scale")}
    return {"proposal": walk, "acceptance": found.acceptance}


def chain(
    *, cell: Sequence, scheme: str, proposal: dict | None, draws: int, seed: int, **settings: int
) -> dict:
    """Run a chain from the prior, with the proposal of a pilot run or (None) its own.

    Returns
    -------
    dict
        ``ess`` of the worst hyper-parameter, ``acceptance``, ``operations`` per proposal, and
        the `moments` at the checkpoints.
    """
    walk = None
    if proposal is not None:
        mean, covariance = (np.array(proposal[name]) for name in ("mean", "covariance"))
        walk = RandomWalkAdaptation(mean, covariance, proposal["log_scale"])
    found = _run(Cell(*cell), scheme, seed, draws=draws, proposal=walk, **settings)
    return {
        "ess": smallest_ess(found.psi),
        "acceptance": found.acceptance,
        "operations": found.operations,
        **moments(found.psi, [round(share * draws) for share in CHECKPOINTS]),
    }


def _pilot_name(cell: Cell) -> str:
    return f"{cell}, pilot"


def _chain_names(cell: Cell, scheme: str, settings: Mapping) -> list[str]:
    return [f"{cell}, {scheme}, chain {index + 1}" for index in range(settings["chains"])]


def chain_tasks(
    settings: Mapping, results: Mapping[str, dict], schemes: Sequence[str]
) -> list[Task]:
    """Pilot runs, and the chains that need none or whose pilot run is finished.

    Parameters
    ----------
    settings : dict
        ``chains`` of each scheme, their ``burn_in``, ``draws`` and ``repeats``, and the burn-in
        of a ``pilot`` run.
    results : dict
        By the names of the tasks.
    schemes : sequence of str
        Of `examples.paper.chains.SAMPLERS`, the fastest of each kind first.
    """
    # A few draws to see whether the proposal is accepted as often as it should be.
    pilot_settings = {"burn_in": settings["pilot"], "draws": settings["pilot"] // 4}
    tasks = [Task(_pilot_name(cell), pilot, {"cell": cell, **pilot_settings}) for cell in CELLS]
    chain_settings = {name: settings[name] for name in ("burn_in", "draws", "repeats")}
    for scheme in reversed(schemes):
        for cell in CELLS:
            proposal = None
            if scheme.startswith("PM"):
                if _pilot_name(cell) not in results:
                    continue
                proposal = results[_pilot_name(cell)]["proposal"]
            arguments = {"cell": cell, "scheme": scheme, "proposal": proposal, **chain_settings}
            names = _chain_names(cell, scheme, settings)
            tasks += [Task(name, chain, arguments) for name in names]
    return sorted(tasks, key=lambda task: -task.arguments["cell"].n)


def no_figure(settings: Mapping, results: Mapping[str, dict]) -> dict:
    """Nothing: the paper has a table only."""
    return {}


Pair = tuple[Cell, str, str]  # a cell and the two schemes compared in it

QUANTITIES: dict[str, Callable[[dict], float]] = {
    "ESS": lambda found: 1e4 * found["ess"] / found["lengths"][-1],
    "ESS per cubic operation": lambda found: QUANTITIES["ESS"](found) / found["operations"],
    "acceptance in percent": lambda found: 100.0 * found["acceptance"],
    "cubic operations": lambda found: found["operations"],
}
"""Of a chain; ESS per 10 000 draws, as in the paper."""


@dataclass(frozen=True)
class Finished:
    """The finished chains of a table."""

    settings: Mapping
    results: Mapping[str, dict]

    def chains(self, cell: Cell, scheme: str) -> list[dict]:
        """Their results, of a scheme or of all of `GROUPS`."""
        members = GROUPS.get(scheme, (scheme,))
        names = [name for s in members for name in _chain_names(cell, s, self.settings)]
        return [self.results[name] for name in names if name in self.results]

    def values(self, quantity: str, cell: Cell, scheme: str) -> np.ndarray:
        """One of `QUANTITIES` for each chain, shape (chains,)."""
        return np.array([QUANTITIES[quantity](found) for found in self.chains(cell, scheme)])

    def rhats(self, cell: Cell, scheme: str) -> list[float]:
        """Of the worst hyper-parameter at the checkpoints; none of a single chain."""
        chains = self.chains(cell, scheme)
        return list(rhat(chains)[:, 0]) if len(chains) > 1 else []

    def known(self, cell: Cell, scheme: str) -> bool:
        """Whether a chain has enough effective draws on average to know how many they are."""
        return np.mean([found["ess"] for found in self.chains(cell, scheme)]) >= FEW

    def comparable(self, quantity: str, pairs: Iterable[Pair]) -> list[Pair]:
        """Those with at least two chains of both schemes, and ESS that is known where it matters.

        Of two schemes the one with few effective draws has the lower ESS, even if it is
        overestimated. That tells nothing if both have few, nor of ESS per operation.
        """
        enough = {"ESS": any, "ESS per cubic operation": all}.get(quantity, lambda known: True)
        return [
            (cell, *schemes)
            for cell, *schemes in pairs
            if min(len(self.chains(cell, scheme)) for scheme in schemes) > 1
            and enough([self.known(cell, scheme) for scheme in schemes])
        ]

    def difference(self, quantity: str, pairs: Sequence[Pair], *, log: bool = True) -> Estimate:
        """First scheme minus second, of logarithms or not; mean over pairs that are comparable."""
        return weighted_sum(
            (sign / len(pairs), Estimate.of_mean(self.values(quantity, cell, scheme), log=log))
            for cell, *schemes in pairs
            for sign, scheme in zip((1.0, -1.0), schemes, strict=True)
        )

    def claim(
        self, text: str, quantity: str, pairs: Sequence[Pair], *, log: bool = True
    ) -> list[Claim]:
        """That the first scheme has more of it than the second; nothing without results."""
        used = self.comparable(quantity, pairs)
        if not used:
            return []
        found = self.difference(quantity, used, log=log)
        measured = f"{'log ratio' if log else 'difference'} of {quantity}"
        cells = f", mean of {len(used)} of {len(pairs)} cells" if len(pairs) > 1 else ""
        return [Claim(text, measured + cells, found.value, found.error)]

    def summary(self, schemes: Sequence[str]) -> str:
        """What was run and is there."""
        settings = self.settings
        present = sum(len(self.chains(cell, scheme)) for cell in CELLS for scheme in schemes)
        pilots = [self.results.get(_pilot_name(cell)) for cell in CELLS]
        accepted = ", ".join(f"{100 * found['acceptance']:.0f}" for found in pilots if found)
        return (
            f"Chains: {settings['chains']} for each of {len(schemes)} schemes and {len(CELLS)} "
            f"cells (data set and covariance), {present} of them finished. They start from the "
            f"prior, with {settings['burn_in']} iterations of burn-in and {settings['draws']} to "
            f"keep. The random walk of all PM schemes comes from a pilot run of {PM} per cell, "
            f"tuned for {settings['pilot']} iterations to accept 25 % (accepted afterwards, in "
            f"percent: {accepted or UNKNOWN}); the other schemes tune theirs."
        )


def mean_and_sd(values: Sequence[float]) -> str:
    """Mean of the chains, with their standard deviation in parentheses."""
    if len(values) < 2:
        return number(values[0]) if len(values) else UNKNOWN
    return f"{number(np.mean(values))} ({number(np.std(values, ddof=1))})"


def listed(rhats: Sequence[float]) -> str:
    """R-hats in one cell of a table."""
    known = [UNKNOWN if np.isnan(value) else f"{value:.2f}" for value in rhats]
    return ", ".join(">10" if len(text) > 4 else text for text in known) or UNKNOWN


def ratios(
    finished: Finished,
    quantity: str,
    schemes: Iterable[tuple[str, str]],
    published: Callable[[Cell, str], float],
) -> str:
    """Table of ratios of two schemes: geometric means over the comparable cells of a kernel.

    `published` is the quantity in the paper, NaN where it has none.
    """
    rows = []
    for names in schemes:
        row = [" / ".join(names)]
        for kernel in KERNELS:
            cells = [cell for cell in CELLS if cell.kernel == kernel]
            pairs = finished.comparable(quantity, [(cell, *names) for cell in cells])
            logs = [np.log(published(cell, a) / published(cell, b)) for cell, a, b in pairs]
            paper = np.exp(np.mean(logs)) if pairs else np.nan
            row.append(_interval(finished.difference(quantity, pairs)) if pairs else UNKNOWN)
            row.append(number(paper) if np.isfinite(paper) else UNKNOWN)
        rows.append(row)
    return table([f"ratio of {quantity}", "isotropic", "paper", "ARD", "paper"], rows)


def _interval(log_ratio: Estimate) -> str:
    ends = log_ratio.value + DECISIVE * log_ratio.error * np.array([-1.0, 0.0, 1.0])
    low, middle, high = map(number, np.exp(ends))
    return f"{middle} ({low} to {high})"
