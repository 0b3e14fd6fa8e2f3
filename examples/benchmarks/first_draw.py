"""How long it takes to the first draw."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import pymc as pm

import pymc_pseudomarginal as pmpm
from examples.benchmarks.problems import PLAIN, probit_model
from examples.benchmarks.subprocesses import ONE_THREAD, in_subprocess
from examples.benchmarks.tables import number, spread, table
from examples.benchmarks.timing import divided, quartiles

TITLE = "From the call to the first draw"
READING = (
    "Making the step and `pm.sample(1, tune=1, chains=1, cores=1)`, almost all of which is "
    "compilation, in times of the same with PyMC's NUTS: below 1 is sooner. First in a process "
    "whose compilation caches are empty, then in another one that finds them as the first left "
    "them. Medians over such pairs of processes, with the quartiles in brackets; importing PyMC is "
    "not counted."
)
FULL = {"n": 50, "repetitions": 3}
# Nothing but PyMC's NUTS to compare with: nutpie takes longest to compile.
QUICK = {"n": 50, "repetitions": 1, "samplers": ("nuts", "laplace")}

SAMPLERS = {"nuts": "NUTS (PyMC)", "nutpie": "NUTS (nutpie)", "laplace": "PseudoMarginalMH"}
CACHES = ("empty", "filled")


def measure(n: int, repetitions: int, samplers: Sequence[str] = tuple(SAMPLERS)) -> dict:
    """Seconds to the first draw for each sampler, with empty and with filled caches.

    Parameters
    ----------
    n : int
    repetitions : int
        Pairs of processes of each sampler.
    samplers : sequence of str
        Names in `SAMPLERS`, "nuts" among them.
    """
    samplers = [name for name in samplers if name != "nutpie" or find_spec("nutpie")]
    seconds = {sampler: {cache: [] for cache in CACHES} for sampler in samplers}
    for _ in range(repetitions):
        for sampler in samplers:
            with tempfile.TemporaryDirectory() as folder:
                for cache in CACHES:  # the first process fills it
                    measured = in_subprocess(
                        seconds_to_first_draw,
                        {"sampler": sampler, "n": n},
                        environment=ONE_THREAD | _caches_in(folder),
                    )
                    seconds[sampler][cache].append(measured["seconds"])
    rows = [_row(sampler, times, seconds["nuts"]) for sampler, times in seconds.items()]
    return {"n": n, "rows": rows}


def _caches_in(folder: str) -> dict[str, str]:
    given = os.environ.get("PYTENSOR_FLAGS")
    flags = [given] if given else []
    return {
        "PYTENSOR_FLAGS": ",".join([*flags, f"base_compiledir={folder}/pytensor"]),
        "NUMBA_CACHE_DIR": f"{folder}/numba",
    }


def _row(sampler: str, times: dict[str, list[float]], nuts: dict[str, list[float]]) -> dict:
    row = {"sampler": sampler}
    for cache in CACHES:
        seconds = quartiles(times[cache])
        row[cache] = {
            "ratio": divided(seconds, float(np.median(nuts[cache]))),
            "seconds": seconds["median"],
        }
    return row


def seconds_to_first_draw(sampler: str, n: int) -> dict[str, float]:
    """Seconds until `pm.sample` has returned a single draw."""
    with probit_model(n, 2):
        start = time.perf_counter()
        if sampler == "laplace":
            how = {"step": pmpm.PseudoMarginalMH(approximation="laplace", **PLAIN)}
        else:
            how = {"nuts_sampler": "pymc" if sampler == "nuts" else sampler}
        pm.sample(
            1,
            tune=1,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            **how,
        )
        return {"seconds": time.perf_counter() - start}


def as_markdown(result: dict) -> str:
    """The table."""
    header = ("sampler", "empty caches", "seconds", "filled caches", "seconds")
    rows = [
        (
            SAMPLERS[row["sampler"]],
            *(
                cell
                for cache in CACHES
                for cell in (spread(row[cache]["ratio"]), number(row[cache]["seconds"]))
            ),
        )
        for row in result["rows"]
    ]
    return table(header, rows)
