"""Effective draws per second against NUTS, on the same model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec

import arviz as az
import numpy as np
import pymc as pm

import pymc_pseudomarginal as pmpm
from examples.benchmarks.problems import probit_model
from examples.benchmarks.subprocesses import SubprocessFailed, in_subprocess, report
from examples.benchmarks.tables import UNKNOWN, number, spread, table
from examples.benchmarks.timing import divided, quartiles

TITLE = "Against NUTS"
READING = (
    "The same unmodified `gp.Latent` model for all, two chains on two cores, one BLAS thread each; "
    "those with f stored use `reparameterize=False`, so that PyMC computes no f to record. Delayed "
    "acceptance is by a fitted density. "
    "ESS and R-hat are those of the worst hyper-parameter, on the logarithmic scale, in all chains "
    "together. ESS is of the bulk, and so are the rates; beside it are those of the standard "
    "deviation and of the tails (5 % and 95 %), as ArviZ computes them. Seconds are those of "
    "sampling, tuning included; compilation is the rest of the call, with caches as they were "
    "found. The last columns divide the ESS per second by that of PyMC's NUTS and of nutpie, and "
    "those of the standard deviation and of the tails by nutpie's. Several seeds give medians, "
    "with quartiles in brackets. An R-hat far from 1 says that the ESS beside it, and every ratio "
    "with it, cannot be trusted."
)
FULL = {
    "problems": ("n50", "n200", "n200ard"),
    "nuts_draws": 1000,
    "draws": {"n50": 20000, "n200": 10000, "n200ard": 10000},
    "tune": 1000,
}
QUICK = {
    "problems": ("n50",),
    "nuts_draws": 200,
    "draws": {"n50": 4000, "n200": 2000, "n200ard": 2000},
    "tune": 200,
}

PROBLEMS = {
    "n50": {"n": 50, "d": 2},
    "n200": {"n": 200, "d": 2},
    "n200ard": {"n": 200, "d": 10, "ard": True},
}
SAMPLERS = {
    "nuts": "NUTS (PyMC)",
    "nutpie": "NUTS (nutpie)",
    "plain": "PseudoMarginalMH, random walk, f stored",
    "walk": "PseudoMarginalMH, random walk, delayed acceptance, f stored",
    "mh": "PseudoMarginalMH, f stored",
    "hmc": "PseudoMarginalHMC, f stored",
}
STEPS = {
    "plain": partial(pmpm.PseudoMarginalMH, proposal="random-walk"),
    "walk": partial(pmpm.PseudoMarginalMH, proposal="random-walk", delayed_acceptance=True),
    "mh": pmpm.PseudoMarginalMH,
    "hmc": pmpm.PseudoMarginalHMC,
}
# A draw by trajectories takes longer, and is worth more.
_SHORTER = {"hmc": 4}
CHAINS = 2
METHODS = {
    "ess": {"method": "bulk"},
    "ess_sd": {"method": "sd"},
    "ess_tail": {"method": "tail", "prob": (0.05, 0.95)},
}
"""What effective draws are counted for, as ArviZ names it."""
HYPERPARAMETERS = ("ls", "sigma")
# In which ESS, and with whom.
_COMPARED = (("nuts", "ess"), ("nutpie", "ess"), ("nutpie", "ess_sd"), ("nutpie", "ess_tail"))


def measure(
    problems: Sequence[str],
    nuts_draws: int,
    draws: dict[str, int],
    tune: int,
    samplers: Sequence[str] = tuple(SAMPLERS),
    seeds: Sequence[int] = (1,),
    time_limit: float = 3600.0,
    known: Sequence[dict] = (),
    save: Callable[[dict], object] = lambda result: None,
) -> dict:
    """Sample every problem with every sampler, each time in a fresh process.

    Parameters
    ----------
    problems, samplers : sequence of str
        Names in `PROBLEMS` and `SAMPLERS`.
    nuts_draws : int
        Draws per chain of NUTS.
    draws : dict
        Draws per chain of the pseudo-marginal samplers by problem; a quarter by trajectories.
    tune : int
    seeds : sequence of int
        Of the samplers; the data are the same.
    time_limit : float
        Seconds after which a sampler is ended.
    known : sequence of dict
        Rows of an earlier run, which stay where they are not measured again.
    save : callable
        Called with the result so far whenever a sampler is through.
    """
    rows = list(known)
    for problem in problems:
        for sampler in samplers:
            if sampler == "nutpie" and not find_spec("nutpie"):
                continue
            for seed in seeds:
                key = {"problem": problem, "sampler": sampler, "seed": seed}
                length = draws[problem] // _SHORTER.get(sampler, 1)
                length = nuts_draws if sampler in ("nuts", "nutpie") else length
                row = _row(key, key | {"draws": length, "tune": tune}, time_limit)
                rows = [other for other in rows if not key.items() <= other.items()] + [row]
                save({"rows": rows})
    return {"rows": rows}


def _row(key: dict, arguments: dict, time_limit: float) -> dict:
    try:
        outcome = in_subprocess(sample, arguments, time_limit=time_limit)
    except SubprocessFailed as failure:
        print(f"{SAMPLERS[key['sampler']]} failed: {failure}")
        outcome = {"failed": str(failure).splitlines()[-1]}
    if outcome.get("timed_out"):
        outcome["time_limit"] = time_limit
    return arguments | outcome


def sample(problem: str, sampler: str, draws: int, tune: int, seed: int) -> dict:
    """Sample one problem in this process; seconds, ESS and R-hat."""
    with probit_model(**PROBLEMS[problem], reparameterize=sampler not in STEPS):
        start = time.perf_counter()
        if sampler in ("nuts", "nutpie"):
            how = {"nuts_sampler": "pymc" if sampler == "nuts" else sampler}
        else:
            how = {"step": STEPS[sampler]()}
        if sampler != "nutpie":  # which calls nobody back
            how["callback"] = Progress(CHAINS * (tune + draws))
        idata = pm.sample(
            draws,
            tune=tune,
            chains=CHAINS,
            cores=CHAINS,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
            **how,
        )
        call = time.perf_counter() - start
    posterior = idata["posterior"]
    seconds = float(posterior.attrs["sampling_time"])
    chains = list(_log_chains(posterior))
    return {
        "seconds": seconds,
        "compilation": call - seconds,
        **{name: _worst_ess(chains, method) for name, method in METHODS.items()},
        "rhat": _finite(max(float(az.rhat(chain)) for chain in chains)),
    }


class Progress:
    """A callback of `pm.sample` that reports now and then how many draws there are.

    Parameters
    ----------
    total : int
        Draws of all chains, tuning included.
    """

    def __init__(self, total: int):
        self.total, self.done, self._next = total, 0, time.monotonic()

    def __call__(self, trace, draw) -> None:
        """What PyMC calls when it has recorded a draw."""
        self.done += 1
        if time.monotonic() > self._next:
            report({"done": self.done, "total": self.total})
            self._next = time.monotonic() + 5.0


def _log_chains(posterior) -> Iterator[np.ndarray]:
    """Every element of every hyper-parameter, shape (chains, draws)."""
    for name in HYPERPARAMETERS:
        values = np.log(posterior[name].to_numpy())
        yield from np.moveaxis(values.reshape(*values.shape[:2], -1), -1, 0)


def _worst_ess(chains: list[np.ndarray], method: dict) -> float | None:
    return _finite(min(float(az.ess(chain, **method)) for chain in chains))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def as_markdown(result: dict) -> str:
    """The table, a row for every problem and sampler, seeds taken together."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for problem in PROBLEMS:
        for sampler in SAMPLERS:
            key = {"problem": problem, "sampler": sampler}.items()
            same = [row for row in result["rows"] if key <= row.items()]
            if same:
                groups[problem, sampler] = same
    rates = {(*key, name): _rate(rows, name) for key, rows in groups.items() for name in METHODS}
    header = (
        *("problem", "sampler", "draws", "seconds", "compilation", "worst ESS", "sd", "tails"),
        *("worst R-hat", "ESS per second", "over NUTS (PyMC)", "over nutpie"),
        *("sd, over nutpie", "tails, over nutpie"),
    )
    rows = []
    for (problem, sampler), same in groups.items():
        ratios = [
            _ratio(rates[problem, sampler, name], rates.get((problem, reference, name)))
            for reference, name in _COMPARED
        ]
        rows.append((_title(problem), SAMPLERS[sampler], *_cells(same), *ratios))
    return table(header, rows)


def _title(problem: str) -> str:
    settings = PROBLEMS[problem]
    ard = ", ARD" if settings.get("ard") else ""
    return f"n = {settings['n']}, d = {settings['d']}{ard}"


def _rate(rows: list[dict], name: str = "ess") -> dict[str, float] | None:
    """ESS per second over the seeds, of one of `METHODS`; None if a run has none."""
    if any(row.get(name) is None for row in rows):
        return None
    return quartiles([row[name] / row["seconds"] for row in rows])


def _cells(rows: list[dict]) -> tuple[str, ...]:
    draws = str(CHAINS * rows[0]["draws"])
    for row in rows:
        if row.get("failed"):
            return draws, "failed", *[UNKNOWN] * 6
        if row.get("timed_out"):
            done = f", {row['done']} of {row['total']} draws with tuning" if "done" in row else ""
            return draws, f"ended after {row['time_limit']:.0f}{done}", *[UNKNOWN] * 6
    middle = {
        name: _median([row.get(name) for row in rows])
        for name in ("seconds", "compilation", *METHODS, "rhat")
    }
    rhat = UNKNOWN if middle["rhat"] is None else f"{middle['rhat']:.3f}"
    shown = [number(middle[name]) for name in ("seconds", "compilation", *METHODS)]
    return draws, *shown, rhat, spread(_rate(rows))


def _median(values: list[float | None]) -> float | None:
    return None if None in values else float(np.median(values))


def _ratio(rate: dict[str, float] | None, reference: dict[str, float] | None) -> str:
    if rate is None or reference is None:
        return UNKNOWN
    return spread(divided(rate, reference["median"]))
