"""What recording a draw costs, where PyMC computes f from its whitened form."""

from __future__ import annotations

import numpy as np
import pymc as pm
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm
from examples.benchmarks.problems import PLAIN, probit_model, tuning_draws
from examples.benchmarks.tables import number, spread, table
from examples.benchmarks.timing import DrawClock, in_factorisations

TITLE = "What recording the draws costs"
READING = (
    "With `gp.prior(reparameterize=True)`, PyMC's default, f is a deterministic of its whitened "
    "form, and PyMC builds and factorises K once more to record it; with `reparameterize=False` f "
    "itself is recorded. Both in times of `dpotrf`, medians with the quartiles over the draws in "
    "brackets: a whole draw of `pm.sample` on one core, the step in it alone (Laplace, N = 16), "
    "which whitens f in the first case, and what PyMC does beside the step."
)
# Draws that are timed at every size.
FULL = {"draws": {200: 500, 768: 100}}
QUICK = {"draws": {200: 100}}


@threadpool_limits.wrap(limits=1)
def measure(draws: dict[int, int]) -> dict:
    """Time draws of `pm.sample` and of the step alone, f recorded whitened and plain.

    Parameters
    ----------
    draws : dict
        Number of timed draws by n.
    """
    rows = [_row(n, timed, whitened) for n, timed in draws.items() for whitened in (True, False)]
    return {"rows": rows}


def _row(n: int, draws: int, whitened: bool) -> dict:
    with probit_model(n, 2, reparameterize=whitened):
        step = pmpm.PseudoMarginalMH(approximation="laplace", **PLAIN)
        clock = DrawClock(n, step)
        pm.sample(
            draws + 1,  # the first is not timed
            tune=tuning_draws(n),
            chains=1,
            cores=1,
            step=step,
            callback=clock,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    beside = np.subtract(clock.draws, clock.steps)
    parts = {"sample": clock.draws, "step": clock.steps, "beside": beside}
    times = {name: in_factorisations(seconds, clock.units) for name, seconds in parts.items()}
    return {"n": n, "reparameterize": whitened, **times}


def as_markdown(result: dict) -> str:
    """The table."""
    header = (
        *("n", "reparameterize", "draw / dpotrf", "step / dpotrf", "PyMC beside it / dpotrf"),
        *("ms per draw", "ms per step"),
    )
    return table(header, [_cells(row) for row in result["rows"]])


def _cells(row: dict) -> tuple[str, ...]:
    parts = [row[name] for name in ("sample", "step", "beside")]
    return (
        str(row["n"]),
        str(row["reparameterize"]),
        *(spread(part["ratio"]) for part in parts),
        *(number(part["milliseconds"]) for part in parts[:2]),
    )
