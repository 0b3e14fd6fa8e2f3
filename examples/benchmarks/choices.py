"""Whether what is chosen automatically is as good as the best fixed choice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pymc as pm
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm
from examples.benchmarks.problems import probit_model, simulated_labels
from examples.benchmarks.race import race
from examples.benchmarks.tables import number, table

TITLE = "Automatic choices"
READING = (
    "Effective draws of the worst hyper-parameter per second, relative to the best fixed choice of "
    "approximation and number N of importance samples; one core, no recording, tuning apart, the "
    "samplers in turn. Means over the seeds. The proposal is chosen automatically in all of them. "
    "The last columns say what was chosen, for every seed, and the best fixed choice."
)
FULL = {"seconds": 3.0, "tune": 1000, "seeds": (1, 2, 3)}
QUICK = {"seconds": 1.0, "tune": 200, "seeds": (1,)}

FIXED = {
    **{f"laplace, N = {N}": ("laplace", N) for N in (1, 4, 16)},
    **{f"ep, N = {N}": ("ep", N) for N in (4, 16, 64)},
    **{f"fitted sites, N = {N}": ("fitted", N) for N in (4, 16)},
}


def wide_model() -> pm.Model:
    """Labels in ten dimensions under a prior that allows large variances: spread weights."""
    X, y = simulated_labels(50, 10, 1)
    with pm.Model() as model:
        ls = pm.Gamma("ls", 3.0, 6.0 / np.sqrt(5.0))
        sigma = pm.Gamma("sigma", 3.0, 0.06)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(10, ls=ls))
        f = gp.prior("f", X=X, reparameterize=False)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)
    return model


def count_model() -> pm.Model:
    """Poisson counts along a line, with a free level."""
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(size=(100, 1)), axis=0)
    y = rng.poisson(np.exp(0.5 + np.sin(9.0 * X[:, 0])))
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 1.0)
        ls = pm.InverseGamma("ls", 3.0, 0.5)
        sigma = pm.Gamma("sigma", 2.0, 2.0)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.Matern52(1, ls=ls))
        f = gp.prior("f", X=X, reparameterize=False)
        pm.Poisson("y", pm.math.exp(level + f), observed=y)
    return model


PROBLEMS = {
    "probit, n = 50, d = 2": partial(probit_model, 50, 2, reparameterize=False),
    "probit, n = 200, d = 2": partial(probit_model, 200, 2, reparameterize=False),
    "probit, n = 50, d = 2, ARD": partial(probit_model, 50, 2, ard=True, reparameterize=False),
    "probit, n = 50, d = 10, variances around 50": wide_model,
    "counts, n = 100": count_model,
}


@threadpool_limits.wrap(limits=1)
def measure(
    seconds: float, tune: int, seeds: Sequence[int], problems: Sequence[str] = tuple(PROBLEMS)
) -> dict:
    """Race the automatic choice and the fixed ones on every problem.

    Parameters
    ----------
    seconds : float
        For every sampler.
    tune : int
    seeds : sequence of int
    problems : sequence of str
        Names in `PROBLEMS`.
    """
    samplers = {"auto": pmpm.PseudoMarginalMH} | {
        name: partial(
            pmpm.PseudoMarginalMH, approximation=approximation, n_importance=N, annealing=0
        )
        for name, (approximation, N) in FIXED.items()
    }
    rows = []
    for problem in problems:
        for seed in seeds:
            found = race(PROBLEMS[problem](), samplers, seconds=seconds, tune=tune, seed=seed)
            rows += [
                {"problem": problem, "seed": seed, "sampler": name} | row
                for name, row in found.items()
            ]
    return {"rows": rows}


def as_markdown(result: dict) -> str:
    """The table, a row for every problem."""
    found = {row["sampler"] for row in result["rows"]}
    fixed = [name for name in FIXED if name in found]
    header = ("problem", "auto", *fixed, "chosen", "best", "ESS per second of auto")
    lines = []
    for problem in dict.fromkeys(row["problem"] for row in result["rows"]):
        of_problem = [row for row in result["rows"] if row["problem"] == problem]
        rates = {name: _rate(of_problem, name) for name in ("auto", *fixed)}
        best = max(fixed, key=rates.get)
        shares = [f"{rates[name] / rates[best]:.2f}" for name in ("auto", *fixed)]
        chosen = [_words(row["chosen"]) for row in of_problem if row["sampler"] == "auto"]
        words = "; ".join(dict.fromkeys(chosen))
        lines.append((problem, *shares, words, best, number(rates["auto"])))
    return table(header, lines)


def _rate(rows: list[dict], name: str) -> float:
    own = [row for row in rows if row["sampler"] == name]
    return float(np.mean([row["ess"] / row["seconds"] for row in own]))


def _words(chosen: dict) -> str:
    annealed = f", T = {chosen['pm_annealing']}" if chosen["pm_annealing"] else ""
    found = "ep" if chosen["pm_ep"] else "laplace"
    name = "fitted sites" if chosen.get("pm_fitted_sites") else found
    return f"{name}, N = {chosen['pm_n_importance']}{annealed}"
