"""How well two chains share two cores."""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np
import pymc as pm

import pymc_pseudomarginal as pmpm
from examples.benchmarks.problems import PLAIN, probit_model, tuning_draws
from examples.benchmarks.subprocesses import in_subprocess
from examples.benchmarks.tables import number, spread, table
from examples.benchmarks.timing import quartiles

TITLE = "Two chains on two cores"
READING = (
    "Efficiency is the time per draw of one chain on one core over that of each of two chains on "
    "two cores (Laplace, N = 16): 1 if the second chain is free, 0.5 if nothing is won. Medians "
    "over blocks of ten draws, with the quartiles in brackets. With `reparameterize=True` the main "
    "process computes f for the draws of all chains, and has no core of its own where the machine "
    "has only two."
)
# Draws of every chain that are timed at every size.
FULL = {"draws": {200: 1000, 768: 150}, "repetitions": 2}
QUICK = {"draws": {200: 200}, "repetitions": 1}

BLOCK = 10


def measure(draws: dict[int, int], repetitions: int) -> dict:
    """Time per draw with one and with two chains, in fresh processes taken in turn.

    Parameters
    ----------
    draws : dict
        Number of timed draws of every chain by n.
    repetitions : int
        Processes of each kind.
    """
    rows = []
    for n, timed in draws.items():
        for whitened in (True, False):
            case = {"n": n, "reparameterize": whitened}
            seconds = {1: [], 2: []}
            for _ in range(repetitions):
                for chains, blocks in seconds.items():
                    arguments = case | {"chains": chains, "draws": timed}
                    # How many threads its processes take is the sampler's own concern.
                    blocks += in_subprocess(seconds_per_draw, arguments, environment={})["seconds"]
            rows.append(case | _compared(seconds[1], seconds[2]))
    return {"rows": rows}


def _compared(one: list[float], two: list[float]) -> dict:
    one, two = quartiles(one), quartiles(two)
    return {
        "efficiency": {
            "median": one["median"] / two["median"],
            "lower": one["median"] / two["upper"],
            "upper": one["median"] / two["lower"],
        },
        "one_chain_milliseconds": 1e3 * one["median"],
        "two_chains_milliseconds": 1e3 * two["median"],
    }


class ArrivalClock:
    """A callback of `pm.sample` that notes when the draws after tuning arrive, by chain."""

    def __init__(self):
        self.arrivals: dict[int, list[float]] = defaultdict(list)

    def __call__(self, trace, draw) -> None:
        """What PyMC calls when it has recorded a draw."""
        if not draw.tuning:
            self.arrivals[draw.chain].append(time.perf_counter())

    def seconds_per_draw(self) -> list[float]:
        """Means over blocks of draws, while all chains were under way."""
        start = max(arrivals[0] for arrivals in self.arrivals.values())
        stop = min(arrivals[-1] for arrivals in self.arrivals.values())
        blocks = []
        for arrivals in self.arrivals.values():
            together = [arrival for arrival in arrivals if start <= arrival <= stop]
            blocks += (np.diff(together[::BLOCK]) / BLOCK).tolist()
        return blocks


def seconds_per_draw(
    n: int, reparameterize: bool, chains: int, draws: int
) -> dict[str, list[float]]:
    """Sample chains on as many cores from this process; seconds per draw of each, by block."""
    clock = ArrivalClock()
    with probit_model(n, 2, reparameterize=reparameterize):
        pm.sample(
            draws,
            tune=tuning_draws(n),
            chains=chains,
            cores=chains,
            step=pmpm.PseudoMarginalMH(approximation="laplace", **PLAIN),
            callback=clock,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return {"seconds": clock.seconds_per_draw()}


def as_markdown(result: dict) -> str:
    """The table."""
    header = ("n", "reparameterize", "efficiency", "ms per draw, one chain", "each of two")
    rows = [
        (
            str(row["n"]),
            str(row["reparameterize"]),
            spread(row["efficiency"]),
            number(row["one_chain_milliseconds"]),
            number(row["two_chains_milliseconds"]),
        )
        for row in result["rows"]
    ]
    return table(header, rows)
