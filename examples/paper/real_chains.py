"""Figures 3 and 4 of the paper: how fast AA, SURR and PM LA (1) mix on real data.

They differ in their data only. tau is the length-scale that all inputs share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import LogLocator

import pymc_pseudomarginal as pmpm
from examples.benchmarks.tables import UNKNOWN, number, table
from examples.paper.chains import draw_chain, moments, rhat, smallest_ess
from examples.paper.claims import Claim
from examples.paper.estimates import Estimate, weighted_sum
from examples.paper.models import REAL_PRIOR, gp_probit, prior_draw
from examples.paper.tasks import Task, seed_of
from pymc_pseudomarginal.diagnostics import autocorrelation
from pymc_pseudomarginal.plots.canvas import COLOURS, REFERENCE

SAMPLERS = ("AA", "SURR", "PM LA (1)")
_BY_COST = ("SURR", "PM LA (1)", "AA")
# What the paper says, as (better, worse).
_RANKED = (("PM LA (1)", "SURR"), ("PM LA (1)", "AA"), ("SURR", "AA"))
_PAPER_ROWS = {"breast": 682, "pima": 768, "abalone": 2835}
_COLOUR = dict(zip(SAMPLERS, COLOURS, strict=False))
# The column of log tau in psi: the model has ls before sigma.
_LOG_TAU = 0
_CONVERGED = 1.1
_LARGEST_LAG = 300
_LARGEST_RHAT = 10.0


def one_chain(
    data: str, sampler: str, rows: int | None, run: Mapping[str, int], thin: int | None, seed: int
) -> dict:
    """Run a chain from a draw of the prior and summarise it.

    Parameters
    ----------
    data, sampler : str
        Names of a data set and of a sampler.
    rows : int or None
        Size of the random subset of the data, the same for all chains; None takes all rows.
    run : dict
        ``burn_in``, ``draws`` and ``latent_moves`` of `draw_chain`.
    thin : int or None
        Of the trace of log tau, which is an array of shape (draws / thin,); None keeps none.
    seed : int
    """
    loaded = pmpm.datasets.load(data, standardise=True)
    chosen = np.random.default_rng(seed_of("subset", data)).permutation(len(loaded.y))[:rows]
    model, _ = gp_probit(loaded.X[chosen], loaded.y[chosen], prior=REAL_PRIOR)
    rng = np.random.default_rng(seed)
    start = prior_draw(model, rng, REAL_PRIOR)
    chain = draw_chain(model, sampler, start, **run, seed=int(rng.integers(2**32)))
    log_tau = chain.psi[:, _LOG_TAU]
    # The variance within fewer than ten draws says next to nothing.
    lengths = np.unique(np.linspace(min(10, len(log_tau)), len(log_tau), 40).astype(int))
    return {
        "n": len(chosen),
        "moments": moments(chain.psi, lengths),
        "log_tau_ess": smallest_ess(log_tau[:, None]),
        "acceptance": chain.acceptance,
        "operations": chain.operations,
        **({} if thin is None else {"trace": np.round(log_tau[::thin], 4)}),
    }


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """A task for every chain; the first of each sampler keeps its trace."""
    run = {key: settings[key] for key in ("burn_in", "draws", "latent_moves")}
    largest_first = sorted(settings["data"], key=_PAPER_ROWS.get, reverse=True)
    made = []
    for sampler, data, chain in product(_BY_COST, largest_first, range(settings["chains"])):
        thin = settings["thin"] if chain == 0 else None
        what = {"data": data, "sampler": sampler, "rows": settings["rows"], "run": run}
        made.append(Task(_name(data, sampler, chain), one_chain, {**what, "thin": thin}))
    return made


def _name(data: str, sampler: str, chain: int) -> str:
    return f"{data}, {sampler}, chain {chain}"


def _chains(settings, results, data: str) -> dict[str, list[dict]]:
    """The chains that are there, by sampler."""
    numbers = range(settings["chains"])
    return {
        sampler: [results[name] for i in numbers if (name := _name(data, sampler, i)) in results]
        for sampler in SAMPLERS
    }


def _ess_per_draw(settings, chains: Sequence[dict]) -> np.ndarray:
    return np.array([chain["log_tau_ess"] for chain in chains]) / settings["draws"]


def _running_rhat(chains: Sequence[dict]) -> np.ndarray:
    """R-hat of log tau and its bound, shape (lengths, 2), of two chains or more."""
    of_log_tau = []
    for chain in chains:
        found = {key: np.array(value) for key, value in chain["moments"].items()}
        columns = {key: found[key][:, [_LOG_TAU]] for key in ("means", "variances")}
        of_log_tau.append({"lengths": found["lengths"], **columns})
    return rhat(of_log_tau)


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """What was run, a table of the samplers, and how they compare."""
    mixing = ["ESS per 1000 draws (sd)", "R-hat (97.5 % bound)", f"draws to R-hat < {_CONVERGED}"]
    cost = ["acceptance", "operations per draw", "ESS per 1000 operations"]
    rows = [
        [data.capitalize(), sampler, *_cells(settings, chains)]
        for data in settings["data"]
        for sampler, chains in _chains(settings, results, data).items()
    ]
    compared = table(["data", "sampler", "chains", *mixing, *cost], rows)
    return "\n\n".join([_what_was_run(settings, results), compared, _reading(settings, results)])


def _what_was_run(settings, results) -> str:
    asked = [task.name for task in tasks(settings, results)]
    data = " and ".join(_data_text(settings, results, name) for name in settings["data"])
    return (
        f"{data}: {settings['chains']} chains of each sampler ({len(results.keys() & asked)} of "
        f"all {len(asked)} are finished) from draws of the prior, with {settings['burn_in']} "
        f"iterations of tuning and {settings['draws']} draws (paper: 10 chains, 2000 and 10000). "
        f"AA and SURR move f {settings['latent_moves']} times per draw by elliptical slice "
        "sampling; PM LA (1) moves on Laplace's approximate marginal while it tunes."
    )


def _data_text(settings, results, data: str) -> str:
    sizes = [chain["n"] for found in _chains(settings, results, data).values() for chain in found]
    n = sizes[0] if sizes else settings["rows"] or _PAPER_ROWS[data]
    subset = "a random subset, " if settings["rows"] else ""
    paper = "" if n == _PAPER_ROWS[data] else f"; {_PAPER_ROWS[data]} in the paper"
    return f"{data.capitalize()} ({subset}n = {n}{paper})"


def _cells(settings, chains: Sequence[dict]) -> list[str]:
    if not chains:
        return ["0", *[UNKNOWN] * 6]
    ess = 1000.0 * _ess_per_draw(settings, chains)
    operations = np.array([chain["operations"] for chain in chains])
    return [
        str(len(chains)),
        f"{number(ess.mean())} ({number(ess.std(ddof=1)) if len(chains) > 1 else UNKNOWN})",
        *_rhat_cells(chains),
        number(np.mean([chain["acceptance"] for chain in chains])),
        number(operations.mean()),
        number(np.mean(ess / operations)),
    ]


def _rhat_cells(chains: Sequence[dict]) -> list[str]:
    if len(chains) < 2:
        return [UNKNOWN, UNKNOWN]
    running, lengths = _running_rhat(chains), chains[0]["moments"]["lengths"]
    # NaN, where no chain has moved, is not below either.
    above = np.flatnonzero(~(running[:, 0] < _CONVERGED))
    first = above[-1] + 1 if len(above) else 0
    end = "{:.3f} ({:.3f})".format(*running[-1]) if np.isfinite(running[-1, 0]) else UNKNOWN
    return [end, str(lengths[first]) if first < len(lengths) else f"> {lengths[-1]}"]


def _reading(settings, results) -> str:
    ratios = []
    for data in settings["data"]:
        chains = _chains(settings, results, data)
        ess = {s: _ess_per_draw(settings, found).mean() for s, found in chains.items() if found}
        ratios += [
            f"{data.capitalize()}, {better} over {worse}: {number(ess[better] / ess[worse])}"
            for better, worse in _RANKED
            if better in ess and worse in ess
        ]
    here = f" Ratios of mean ESS per draw here: {'; '.join(ratios)}." if ratios else ""
    return (
        "ESS and R-hat are those of log τ, R-hat after the last draw and the number of draws from "
        f"which it stays below {_CONVERGED}; operations are cubic in n. The paper gives pictures "
        "without numbers: it finds SURR better than AA, whose convergence can be extremely slow, "
        f"and PM LA (1) far better than both.{here} A chain that has not converged overstates its "
        "ESS, which says little where R-hat is far above one."
    )


def draw(settings: Mapping, results: Mapping[str, dict]) -> dict[str, Figure]:
    """A row of three panels for every data set that has results."""
    found = {data: _chains(settings, results, data) for data in settings["data"]}
    found = {data: chains for data, chains in found.items() if any(chains.values())}
    if not found:
        return {}
    figure = Figure(figsize=(12.0, 3.8 * len(found)), layout="constrained")
    rows = figure.subfigures(len(found), squeeze=False)[:, 0]
    for row, (data, chains) in zip(rows, found.items(), strict=True):
        row.suptitle(_data_text(settings, results, data))
        _draw_row(row, chains, settings["thin"])
    caption = (
        f"{' and '.join(data.capitalize() for data in found)}: log τ of one chain, thinned by "
        f"{settings['thin']} (left), its autocorrelation (middle), and R-hat of log τ of all "
        "chains with its 97.5 % bound (right)"
    )
    return {caption: figure}


def _draw_row(row: SubFigure, found: Mapping[str, list[dict]], thin: int) -> None:
    left, middle, right = row.add_gridspec(1, 3, width_ratios=(1.5, 1.0, 1.0))
    stacked = left.subgridspec(len(SAMPLERS), 1).subplots(sharex=True, sharey=True)
    between = row.add_subplot(middle)
    between.axhline(0.0, color=REFERENCE, lw=1)
    for ax, (sampler, chains) in zip(stacked, found.items(), strict=True):
        ax.set_ylabel(f"{sampler}\n" + r"$\log\,\tau$")
        ax.margins(x=0.01)
        between.plot([], [], lw=2, color=_COLOUR[sampler], label=sampler)
        # The first chain alone has a trace.
        if chains and "trace" in chains[0]:
            trace, style = np.array(chains[0]["trace"]), {"color": _COLOUR[sampler]}
            ax.plot(thin * np.arange(len(trace)), trace, lw=0.8, **style)
            if np.ptp(trace) > 0.0:
                # Beyond a quarter of the chain there is only noise.
                lags = max(min(_LARGEST_LAG // thin, len(trace) // 4), 1)
                curve = autocorrelation(trace[None], lags)[0]
                between.plot(thin * curve["lag"], curve, lw=2, **style)
    stacked[-1].set_xlabel("Draws after tuning")
    between.set(xlabel="Lag (draws)", ylabel=r"Autocorrelation of $\log\,\tau$")
    between.legend(loc="upper right")
    _draw_rhat(row.add_subplot(right), found)


def _draw_rhat(ax: Axes, found: Mapping[str, list[dict]]) -> None:
    ax.axhline(1.0, color=REFERENCE, lw=1)
    ax.plot([], [], color=REFERENCE, ls="--", label="97.5 % bound")
    top = _CONVERGED
    for sampler, chains in found.items():
        if len(chains) > 1:
            running, lengths = _running_rhat(chains), chains[0]["moments"]["lengths"]
            ax.plot(lengths, running[:, 0], color=_COLOUR[sampler], lw=2)
            ax.plot(lengths, running[:, 1], color=_COLOUR[sampler], ls="--")
            # The first lengths, and the bound of few chains, would hide what happens near one.
            top = np.nanmax([top, *running[len(lengths) // 4 :, 0]])
    ax.set_yscale("log")
    ax.set_ylim(0.98, 1.3 * min(top, _LARGEST_RHAT))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set(xlabel="Draws per chain", ylabel=r"$\hat R$ of $\log\,\tau$")
    ax.legend(loc="upper right")


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """The paper's ranking of the samplers, by ESS per draw and by R-hat at the end."""
    made = []
    for data, (better, worse) in product(settings["data"], _RANKED):
        first, second = (_chains(settings, results, data)[s] for s in (better, worse))
        fewest = min(len(first), len(second))
        if fewest >= 2:
            text = f"{data.capitalize()}: {better} mixes better than {worse}"
            ess = [np.log(_ess_per_draw(settings, found)) for found in (first, second)]
            made.append(_claim(text, "log ratio of ESS of log τ per draw", *ess))
        # A chain is left out in turn, and R-hat needs two.
        if fewest >= 3:
            text = f"{data.capitalize()}: {better} is closer to convergence than {worse}"
            factors = _log_rhat(second), _log_rhat(first)
            made.append(_claim(text, "log ratio of R-hat of log τ at the end", *factors))
    return [claim for claim in made if np.isfinite([claim.estimate, claim.error]).all()]


def _log_rhat(chains: Sequence[dict]) -> np.ndarray:
    """Log R-hat at the end as a mean over chains, by the jackknife."""
    whole = np.log(_running_rhat(chains)[-1, 0])
    others = [[*chains[:i], *chains[i + 1 :]] for i in range(len(chains))]
    without = np.log([_running_rhat(found)[-1, 0] for found in others])
    return whole + (len(chains) - 1) * (without.mean() - without)


def _claim(text: str, quantity: str, larger: np.ndarray, smaller: np.ndarray) -> Claim:
    """That the mean of the one is the larger; a value for each chain."""
    means = Estimate.of_mean(larger), Estimate.of_mean(smaller)
    found = weighted_sum(zip((1.0, -1.0), means, strict=True))
    return Claim(text, quantity, found.value, found.error)
