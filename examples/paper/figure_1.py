"""Figure 1: how far the length-scale can move while coordinates of f stay.

The paper draws, for simulated data, the posterior density of the length-scale tau given f (SA),
given the whitened nu (AA) and given the surrogate data g and eta (SURR), beside the marginal
posterior p(tau|y). A sampler that alternates between tau and f moves tau within the conditional
density, so a narrow one means short steps.

Here sigma stays at the value of the simulation. The marginal posterior of log tau comes from EP
importance sampling on a grid. A posterior draw is a log tau from there with an f that was picked
among importance samples and moved on by elliptical slices, so the draws are independent. Around
each of them the three conditional densities are evaluated, by the coordinates that the samplers of
this package use. One draw, at the median of tau, is the paper's picture; the widths at all others
say how typical it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from examples.benchmarks.tables import UNKNOWN, table
from examples.paper.claims import Claim
from examples.paper.figure_2 import spread_along_tau
from examples.paper.models import VARIANCE, gp_probit, simulated
from examples.paper.tasks import Task
from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.numerics import expectation_propagation, importance_set
from pymc_pseudomarginal.plots.canvas import COLOURS
from pymc_pseudomarginal.transitions.centred import centred
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.given_latent import Coordinates, LatentState
from pymc_pseudomarginal.transitions.surrogate import SurrogateSetting, surrogate
from pymc_pseudomarginal.transitions.whitened import whitened

TITLE = "Figure 1: conditional posteriors of the length-scale"
_COMMON = {"n": 200, "tau": [0.08, 1.5], "nodes": 80, "n_importance": 64}
SCALES = {
    "quick": {**_COMMON, "repeats": 8, "blocks": 4, "draws": 40},
    "medium": {**_COMMON, "repeats": 32, "blocks": 14, "draws": 50},
    "paper": {**_COMMON, "repeats": 128, "blocks": 40, "draws": 50},
}

_PARAMETERISATIONS = {"SA": centred, "AA": whitened, "SURR": surrogate}
_GIVEN = {"SA": "f", "AA": "nu", "SURR": "g and eta", "marginal": "y alone"}
_COLOURS = dict(zip(_GIVEN, [*COLOURS[:3], "black"], strict=True))
_STYLES = dict(zip(_GIVEN, ["--", "-.", ":", "-"], strict=True))

# Importance samples among which f is picked, and moves of it from there.
_CANDIDATES, _MOVES = 256, 50
# The first distance of nodes in log tau, and what counts as mass: e^-12 of the largest density.
_SPACING, _DROP = 0.125, 12.0
# Nodes where there is mass: for moments, a quarter of a standard deviation apart; for a curve.
_FOR_MOMENTS, _FOR_CURVE = 40, 60


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """The marginal posterior, and when that is known the draws and the picture."""
    grid = {key: settings[key] for key in ("n", "tau", "nodes", "n_importance", "repeats")}
    found = [Task("marginal", marginal, grid)]
    if "marginal" in results:
        known = {key: results["marginal"][key] for key in ("psi", "density")}
        given = {"n": settings["n"], **known}
        found.append(Task("picture", curves, given))
        given = {**given, "draws": settings["draws"]}
        names = [f"posterior draws, block {block}" for block in range(settings["blocks"])]
        found += [Task(name, moments, given) for name in names]
    return found[::-1]


def marginal(
    n: int, tau: Sequence[float], nodes: int, n_importance: int, repeats: int, seed: int
) -> dict:
    """The marginal posterior of psi = log tau on a grid between two values of tau."""
    psi = np.linspace(*np.log(tau), nodes)
    counts = {"n_importance": n_importance, "repeats": repeats}
    spread = spread_along_tau(n, np.exp(psi), seed, approximation="ep", **counts)
    log_prior = spread["log_prior"].to_numpy() + psi
    estimates = spread["log_estimate"].sel(n_importance=n_importance).to_numpy()
    pooled = np.logaddexp.reduce(estimates, axis=0) + log_prior
    mean, sd = _moments(psi, pooled)
    log_sds = np.array([np.log(_moments(psi, row + log_prior)[1]) for row in estimates])
    return {
        "psi": psi,
        "density": _normalised(psi, pooled),
        "mean": mean,
        "sd": sd,
        "log_sd_error": _mean_and_error(log_sds)[1],
    }


def moments(
    n: int, psi: Sequence[float], density: Sequence[float], draws: int, seed: int
) -> dict[str, list]:
    """Moments of log tau given the coordinates of posterior draws.

    Returns
    -------
    dict
        SA, AA and SURR -> means and standard deviations, shape (draws, 2).
    """
    rng, evaluate = np.random.default_rng(seed), _settings(n)
    # One in each of equally probable intervals, as then chance has less to say about the whole.
    shares = (np.arange(draws) + rng.uniform(size=draws)) / draws
    found = [
        _conditionals(rng, evaluate, start, (psi[0], psi[-1]), _FOR_MOMENTS)
        for start in _quantiles(psi, density, shares)
    ]
    return {name: [_moments(*each[name]) for each in found] for name in _PARAMETERISATIONS}


def curves(n: int, psi: Sequence[float], density: Sequence[float], seed: int) -> dict[str, dict]:
    """The conditional densities of log tau for one f, drawn at the posterior median of tau."""
    rng, ends = np.random.default_rng(seed), (psi[0], psi[-1])
    median = _quantiles(psi, density, 0.5)
    found = _conditionals(rng, _settings(n), median, ends, _FOR_CURVE)
    return {
        name: {"psi": nodes, "density": _normalised(nodes, log_density)}
        for name, (nodes, log_density) in found.items()
    }


def _settings(n: int) -> Callable[[float], SurrogateSetting]:
    """Log tau -> all that the parameterisations ask for, at the sigma of the simulation."""
    model, _ = gp_probit(*simulated(n, 2))
    read = read_model(model)
    likelihood = read.bind_data()

    def evaluate(psi: float) -> SurrogateSetting:
        theta = read.unconstrained({"ls": np.exp(psi), "sigma": VARIANCE})
        return SurrogateSetting(theta, read.log_prior(theta), read.prior(theta), likelihood(theta))

    return evaluate


def _conditionals(
    rng: np.random.Generator,
    evaluate: Callable[[float], SurrogateSetting],
    psi: float,
    ends: tuple[float, float],
    enough: int,
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Draw f at log tau; for each parameterisation nodes and log densities of log tau."""
    at = cache(evaluate)  # the parameterisations meet at the same nodes
    setting = at(psi)
    q = expectation_propagation(setting.prior, setting.likelihood)
    u = rng.standard_normal((2, _CANDIDATES, setting.prior.size))
    f = importance_set(q, setting.likelihood, u).pick(rng)
    f, _ = elliptical_slice(rng, f, setting.prior, setting.likelihood, moves=_MOVES)
    found = {}
    for name, parameterisation in _PARAMETERISATIONS.items():
        coordinates = parameterisation(rng, LatentState(setting, f))
        found[name] = _refined(lambda x, c=coordinates: _log_joint(at(x), c), psi, ends, enough)
    return found


def _log_joint(setting: SurrogateSetting, coordinates: Coordinates) -> float:
    """Log p(tau, coordinates, y), with the f that the coordinates have at tau."""
    f, log_density = coordinates(setting)
    return setting.log_prior + float(setting.likelihood.log_density(f)) + log_density


def _refined(
    log_density: Callable[[float], float], centre: float, ends: tuple[float, float], enough: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and log densities; distances are halved where the mass is, until nodes are enough.

    As there is mass at the centre, which is a node, a peak narrower than the first distance is
    found as well; equal distances make the trapezoidal rule as precise as it can be.
    """
    first, last = (np.array(ends) - centre) / _SPACING
    offsets = _SPACING * np.arange(np.ceil(first), np.floor(last) + 1)
    values = np.array([log_density(centre + offset) for offset in offsets])
    while np.sum(massive := values > values.max() - _DROP) < enough:
        between = 0.5 * (offsets[1:] + offsets[:-1])[massive[1:] | massive[:-1]]
        added = [log_density(centre + offset) for offset in between]
        order = np.argsort(offsets := np.concatenate([offsets, between]))
        offsets, values = offsets[order], np.concatenate([values, added])[order]
    return centre + offsets, values


def _normalised(psi, log_density) -> np.ndarray:
    density = np.exp(log_density - np.max(log_density))
    return density / np.trapezoid(density, psi)


def _moments(psi, log_density) -> tuple[float, float]:
    """Mean and standard deviation."""
    density = _normalised(psi, log_density)
    mean = float(np.trapezoid(density * psi, psi))
    return mean, float(np.sqrt(np.trapezoid(density * (psi - mean) ** 2, psi)))


def _quantiles(psi, density, shares):
    density = np.asarray(density)
    cumulated = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(psi)))
    return np.interp(shares * cumulated[-1], cumulated, psi)


def _draws(results: Mapping[str, dict]) -> dict[str, np.ndarray]:
    """Means and sds of the conditionals in units of the marginal sd, shape (draws, 2)."""
    blocks = [found for name, found in results.items() if name.startswith("posterior draws")]
    if not blocks or "marginal" not in results:
        return {}
    unit = results["marginal"]["sd"]
    return {k: np.concatenate([block[k] for block in blocks]) / unit for k in _PARAMETERISATIONS}


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """Widths of the conditionals relative to the marginal posterior."""
    draws, known = _draws(results), results.get("marginal")
    count = len(draws["SA"]) if draws else 0
    sd = f"{known['sd']:.4f} ± {known['sd'] * known['log_sd_error']:.1g}" if known else UNKNOWN
    header = ["sampler", "given", "conditional sd / marginal sd", "autocorrelation", "total"]
    rows = [[name, _GIVEN[name], *_cells(draws.get(name))] for name in _PARAMETERISATIONS]
    text = (
        f"Simulated data, n = {settings['n']}, d = 2, sigma fixed at {VARIANCE}; {count} of "
        f"{settings['blocks'] * settings['draws']} posterior draws of (tau, f). The marginal "
        f"posterior sd of log tau is {sd}, from {settings['nodes']} values of tau with "
        f"{settings['repeats'] * settings['n_importance']} importance samples (EP) each.\n\n"
        f"{table(header, rows)}\n\n"
        "Standard deviations (sd) of log tau, means over the draws ± standard errors; the paper "
        "shows curves and no numbers. *Autocorrelation*: of successive values of log tau where "
        "tau and what it is conditioned on are drawn in turn, each exactly; it is one minus the "
        "ratio of the variances. *Total*, a check: conditional variance plus variance of the "
        "conditional means, over the marginal variance, is 1 but for Monte Carlo error."
    )
    if draws:
        widths = {name: found[:, 1].mean() for name, found in draws.items()} | {"marginal": 1.0}
        text += f" From narrow to wide: {', '.join(sorted(widths, key=widths.get))}."
    return text


def _cells(draws: np.ndarray | None) -> list[str]:
    """Of the table, on one parameterisation."""
    if draws is None:
        return [UNKNOWN] * 3
    means, sds = draws.T
    total = sds**2 + (means - means.mean()) ** 2
    pairs = map(_mean_and_error, (sds, 1.0 - sds**2, total))
    return [f"{mean:.3f} ± {error:.2g}" for mean, error in pairs]


def draw(settings: Mapping, results: Mapping[str, dict]) -> dict[str, Figure]:
    """The densities for one f, and the widths at all draws."""
    draws = _draws(results)
    if not draws or "picture" not in results:
        return {}
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    known = results["marginal"]
    for name, curve in {**results["picture"], "marginal": known}.items():
        tau, style = np.exp(curve["psi"]), {"c": _COLOURS[name], "ls": _STYLES[name], "lw": 2}
        label = f"{name} (given {_GIVEN[name]})"
        left.plot(tau, np.array(curve["density"]) / tau, label=label, **style)
    ends = np.exp(_quantiles(known["psi"], known["density"], np.array([0.001, 0.999])))
    left.set(xlabel="Length-scale τ", ylabel="Density", title="One posterior draw", xlim=ends)
    left.set_ylim(bottom=0.0)
    left.legend()
    style = {"widths": 0.6, "patch_artist": True, "medianprops": {"color": "black"}}
    boxes = right.boxplot([found[:, 1] for found in draws.values()], **style)
    for name, box in zip(draws, boxes["boxes"], strict=True):
        box.set(facecolor=_COLOURS[name], alpha=0.6)
    right.axhline(1.0, color=_COLOURS["marginal"], lw=2)
    right.set_xticks(range(1, len(draws) + 1), list(draws))
    right.set(ylabel="sd of log τ / marginal sd", title=f"{len(draws['SA'])} posterior draws")
    right.set_ylim(bottom=0.0)
    return {"Posterior of the length-scale given what each sampler holds fixed": figure}


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """The order of the widths."""
    log_sds = {name: np.log(found[:, 1]) for name, found in _draws(results).items()}
    found = []
    for narrow, wide in combinations([*log_sds, *(["marginal"] if log_sds else [])], 2):
        estimate, error = _mean_and_error(log_sds.get(wide, 0.0) - log_sds[narrow])
        if wide == "marginal":
            error = np.hypot(error, results["marginal"]["log_sd_error"])
        text = f"The posterior of tau is wider given {_GIVEN[wide]} than given {_GIVEN[narrow]}"
        found.append(Claim(text, "log ratio of the sds of log tau", estimate, error))
    return found
