"""Random walks, fitted densities and Hamiltonian trajectories on the same models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm
from examples.benchmarks.problems import PLAIN, probit_model
from examples.benchmarks.race import race
from examples.benchmarks.tables import number, spread, table
from examples.benchmarks.timing import quartiles

TITLE = "Proposals"
READING = (
    "Effective draws of the worst hyper-parameter: the number in all runs together, per draw, per "
    "cubic operation (a factorisation or inversion of an n×n matrix) and per second; one core, no "
    "recording, tuning apart, the samplers in turn. With several seeds medians, and quartiles in "
    "brackets. The last two columns divide by the random walk with Laplace."
)
FULL = {
    "seconds": {"n50": 10.0, "n200": 15.0, "n50ard": 100.0, "n200ard": 240.0},
    "tune": 1000,
    "seeds": (1,),
}
QUICK = {"seconds": {"n50": 2.0}, "tune": 200, "seeds": (1,)}

PROBLEMS = {
    "n50": ("n = 50, d = 2", partial(probit_model, 50, 2)),
    "n200": ("n = 200, d = 2", partial(probit_model, 200, 2)),
    "n50ard": ("n = 50, d = 10, ARD", partial(probit_model, 50, 10, ard=True)),
    "n200ard": ("n = 200, d = 10, ARD", partial(probit_model, 200, 10, ard=True)),
}
SAMPLERS = {
    "random walk, laplace, N = 16": partial(
        pmpm.PseudoMarginalMH, approximation="laplace", **PLAIN
    ),
    "random walk, ep, N = 16": partial(pmpm.PseudoMarginalMH, approximation="ep", **PLAIN),
    "PseudoMarginalMH": pmpm.PseudoMarginalMH,
    "PseudoMarginalHMC": pmpm.PseudoMarginalHMC,
}


@threadpool_limits.wrap(limits=1)
def measure(seconds: Mapping[str, float], tune: int, seeds: Sequence[int]) -> dict:
    """Race the proposals on every problem.

    Parameters
    ----------
    seconds : mapping
        For every sampler, by the name of the problem.
    tune : int
    seeds : sequence of int
    """
    rows = []
    for problem, limit in seconds.items():
        for seed in seeds:
            model = PROBLEMS[problem][1](reparameterize=False)
            found = race(model, _samplers(problem), seconds=limit, tune=tune, seed=seed)
            rows += [
                {"problem": problem, "seed": seed, "sampler": name} | row
                for name, row in found.items()
            ]
    return {"rows": rows}


def as_markdown(result: dict) -> str:
    """The table, a row for every problem and sampler."""
    header = (
        *("problem", "hyper-parameters", "sampler", "worst ESS", "per draw", "per operation"),
        *("per second", "per operation, over the walk", "per second, over the walk"),
    )
    lines = []
    for problem in dict.fromkeys(row["problem"] for row in result["rows"]):
        per = {
            name: [row for row in result["rows"] if _is(row, problem, name)] for name in SAMPLERS
        }
        walk = per[next(iter(SAMPLERS))]
        for name, rows in per.items():
            if not rows:
                continue
            ratios = [
                number(_median(rows, by) / _median(walk, by)) for by in ("operations", "seconds")
            ]
            figures = [
                spread(quartiles([row["ess"] / row[by] for row in rows]))
                for by in ("draws", "operations", "seconds")
            ]
            title, count = PROBLEMS[problem][0], str(rows[0]["hyperparameters"])
            total = f"{sum(row['ess'] for row in rows):.0f}"
            lines.append((title, count, name, total, *figures, *ratios))
    return table(header, lines)


def _samplers(problem: str) -> dict:
    """With many hyper-parameters a walk takes minutes for what can be told apart: one is enough."""
    few = {name: make for name, make in SAMPLERS.items() if "walk, ep" not in name}
    return few if problem.endswith("ard") else SAMPLERS


def _is(row, problem, name):
    return row["problem"] == problem and row["sampler"] == name


def _median(rows, by):
    return float(np.median([row["ess"] / row[by] for row in rows]))
