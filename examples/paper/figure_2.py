"""Figure 2: the spread of the estimated posterior density along the length-scale.

The paper draws, over 500 repetitions, the mean and the 2.5 % and 97.5 % quantiles of the estimate
of p(y|tau) p(tau) with N = 1 and N = 64 importance samples, for n = 50 and n = 200 simulated data
and for the Laplace approximation (LA) and expectation propagation (EP), with sigma at the value of
the simulation. It reads off that EP varies less than LA, N = 64 less than N = 1, and n = 200
little more than n = 50.

Here the same estimates are computed on one grid of tau for all. What is read off is measured by
the variance of the log estimate, on whose size the efficiency of a pseudo-marginal sampler depends;
its logarithm is averaged over tau with the weights of the marginal posterior. Repetitions at
different tau are independent, and so are their errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import pymc_pseudomarginal as pmpm
from examples.benchmarks.tables import UNKNOWN, number, table
from examples.paper.claims import Claim
from examples.paper.models import VARIANCE, gp_probit, simulated
from examples.paper.tasks import Task
from pymc_pseudomarginal.plots.canvas import COLOURS

TITLE = "Figure 2: spread of the estimated posterior density"
_COMMON = {"n": [50, 200], "n_importance": [1, 64], "tau": [0.06, 2.0]}
SCALES = {
    "quick": {**_COMMON, "repeats": 100, "nodes": 40},
    "medium": {**_COMMON, "repeats": 500, "nodes": 40},
    "paper": {**_COMMON, "repeats": 500, "nodes": 100},
}

Estimate = tuple[float, float]
"""With its standard error."""

_APPROXIMATIONS = {"LA": "laplace", "EP": "ep"}
_QUANTILES = (0.025, 0.975)
# Where the mean is below this share of its largest value there is nothing to see.
_VISIBLE = 0.01


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """One for each panel."""
    common = {key: settings[key] for key in ("n_importance", "tau", "nodes", "repeats")}
    return [
        Task(_name(n, short), estimates, {**common, "n": n, "approximation": approximation})
        for n in sorted(settings["n"], reverse=True)
        for short, approximation in _APPROXIMATIONS.items()
    ]


def _name(n: int, approximation: str) -> str:
    return f"n={n}, {approximation}"


def spread_along_tau(n: int, tau: np.ndarray, seed: int, **options) -> xr.Dataset:
    """Estimates for n simulated data, with sigma at the value of the simulation.

    Parameters
    ----------
    n : int
    tau : array
    seed : int
    **options
        Of `estimator_spread`.
    """
    model, _ = gp_probit(*simulated(n, 2))
    options |= {"random_seed": seed, "model": model, "progressbar": False}
    return pmpm.estimator_spread("ls", tau, {"sigma": VARIANCE}, **options)


def estimates(n: int, tau: Sequence[float], nodes: int, seed: int, **options) -> dict:
    """Repeated estimates on a grid between two values of tau, summarised.

    Parameters
    ----------
    n : int
        Number of data.
    tau : sequence
        The ends of the grid.
    nodes : int
        Number of values in it.
    seed : int
    **options
        The ``approximation``, the sizes ``n_importance``, and the ``repeats``.

    Returns
    -------
    dict
        ``tau``, ``log_prior`` and ``log_approximation``, shape (nodes,), and ``by_size``: for
        every N, each of shape (nodes,), the ``mean`` and the quantiles ``low`` and ``high`` of the
        estimates of p(y|tau) relative to the approximation, and ``log_variance`` of the log
        estimates with its ``error``.
    """
    grid = np.geomspace(*tau, nodes)
    spread = spread_along_tau(n, grid, seed, **options)
    relative = spread["log_estimate"] - spread["log_approximation"]
    by_size = {str(int(N)): _summary(relative.sel(n_importance=N)) for N in spread["n_importance"]}
    kept = {key: spread[key].to_numpy() for key in ("log_prior", "log_approximation")}
    return {"tau": grid, **kept, "by_size": by_size}


def _summary(log_estimates: xr.DataArray) -> dict[str, np.ndarray]:
    """Over repetitions, shape (repeats, nodes) to (nodes,)."""
    log_estimates, repeats = log_estimates.to_numpy(), log_estimates.sizes["repeat"]
    low, high = np.exp(np.quantile(log_estimates, _QUANTILES, axis=0))
    deviations = log_estimates - log_estimates.mean(axis=0)
    variance = (deviations**2).sum(axis=0) / (repeats - 1)
    kurtosis = (deviations**4).mean(axis=0) / variance**2
    # The error of an estimated variance, by the delta method on the scale of logarithms, where
    # it is also biased, by half the square of its error.
    error = np.sqrt((kurtosis - (repeats - 3) / (repeats - 1)) / repeats)
    return {
        "mean": np.exp(log_estimates).mean(axis=0),
        "low": low,
        "high": high,
        "log_variance": np.log(variance) + 0.5 * error**2,
        "error": error,
    }


def _joint(panel: Mapping) -> np.ndarray:
    """p(y|tau) p(tau) by the approximation alone, relative to its largest value."""
    log_joint = np.array(panel["log_prior"]) + np.array(panel["log_approximation"])
    return np.exp(log_joint - log_joint.max())


def _weights(settings: Mapping, panel: Mapping) -> np.ndarray:
    """Marginal posterior probabilities of the nodes, from the mean of the largest N."""
    mean = panel["by_size"][str(max(settings["n_importance"]))]["mean"]
    weights = _joint(panel) * np.array(mean) * np.gradient(panel["tau"])
    return weights / weights.sum()


def _log_variance(
    settings: Mapping,
    results: Mapping[str, dict],
    n: int,
    approximation: str,
    size: int,
    posterior_of: int | None = None,
) -> Estimate | None:
    """Mean over the posterior of tau given n (or other) data of the log variance, with its error.

    The posterior is that of EP for LA too, lest the two are averaged with different weights.
    """
    panel = results.get(_name(n, approximation))
    reference = results.get(_name(posterior_of or n, "EP"))
    if panel is None or reference is None:
        return None
    weights, found = _weights(settings, reference), panel["by_size"][str(size)]
    errors = weights * np.array(found["error"])
    return float(weights @ np.array(found["log_variance"])), float(np.sqrt(errors @ errors))


def _difference(first: Estimate | None, second: Estimate | None) -> Estimate | None:
    """Of independent estimates."""
    if first is None or second is None:
        return None
    return first[0] - second[0], float(np.hypot(first[1], second[1]))


def _ratio(log_ratio: Estimate | None) -> str:
    if log_ratio is None:
        return UNKNOWN
    ratio = np.exp(log_ratio[0])
    return f"{number(ratio)} ± {ratio * log_ratio[1]:.1g}"


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """Standard deviations of the log estimate, and ratios of variances."""
    done = sum(task.name in results for task in tasks(settings, results))
    low, high = settings["tau"]
    small, large = min(settings["n"]), max(settings["n"])
    header = ["n", "N", *(f"sd, {name}" for name in _APPROXIMATIONS), "variance of LA / EP"]
    growth = [f"variance, n = {large} / n = {small}", "the same at equal tau"]
    return (
        f"{settings['repeats']} estimates at each of {settings['nodes']} values of tau from {low} "
        f"to {high}; simulated data, d = 2, sigma fixed at {VARIANCE}; {done} of "
        f"{len(tasks(settings, results))} panels.\n\n"
        f"{table(header, _approximation_rows(settings, results))}\n\n"
        f"{table(['importance density', 'N', *growth], _size_rows(settings, results))}\n\n"
        "Standard deviations (sd) and variances are those of the log estimate of p(y|tau), "
        "geometric means over the marginal posterior of tau given the n data; ratios ± standard "
        f"errors. The last column takes the posterior given n = {large} for both. The paper shows "
        "curves and no numbers; it finds little increase with n, which would be a ratio close to 1."
    )


def _approximation_rows(settings: Mapping, results: Mapping[str, dict]) -> list[list[str]]:
    """A row for every n and N: the spread by each approximation, and their ratio."""
    rows = []
    for n in settings["n"]:
        for size in settings["n_importance"]:
            found = [_log_variance(settings, results, n, name, size) for name in _APPROXIMATIONS]
            sds = [number(None if each is None else np.exp(0.5 * each[0])) for each in found]
            rows.append([str(n), str(size), *sds, _ratio(_difference(*found))])
    return rows


def _size_rows(settings: Mapping, results: Mapping[str, dict]) -> list[list[str]]:
    """A row for every approximation and N: how the variance grows with n."""
    small, large = min(settings["n"]), max(settings["n"])
    rows = []
    for name in _APPROXIMATIONS:
        for size in settings["n_importance"]:
            many = _log_variance(settings, results, large, name, size)
            few = [
                _log_variance(settings, results, small, name, size, posterior_of)
                for posterior_of in (small, large)
            ]
            rows.append([name, str(size), *(_ratio(_difference(many, each)) for each in few)])
    return rows


def draw(settings: Mapping, results: Mapping[str, dict]) -> dict[str, Figure]:
    """A panel for every n and approximation."""
    if not any(task.name in results for task in tasks(settings, results)):
        return {}
    figure = Figure(figsize=(10.0, 7.5), layout="constrained")
    shape = len(settings["n"]), len(_APPROXIMATIONS)
    rows = figure.subplots(*shape, squeeze=False, sharex="row", sharey="row")
    for n, axes in zip(settings["n"], rows, strict=True):
        for name, ax in zip(_APPROXIMATIONS, axes, strict=True):
            ax.set(title=f"{name}, n = {n}", xlabel="Length-scale τ")
            if _name(n, name) in results:
                _draw_panel(ax, results[_name(n, name)], settings["n_importance"])
        axes[0].set_ylabel("Estimated posterior density")
    drawn = next(ax for ax in rows.flat if ax.lines)
    figure.legend(*drawn.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return {"Mean and quantiles of the estimated posterior density of the length-scale": figure}


def _draw_panel(ax: Axes, panel: Mapping, sizes: Sequence[int]) -> None:
    """All curves divided by what makes the mean of the largest N integrate to one."""
    tau, joint = np.array(panel["tau"]), _joint(panel)
    found = {
        N: {key: joint * np.array(panel["by_size"][str(N)][key]) for key in ("mean", "low", "high")}
        for N in sizes
    }
    constant = np.trapezoid(found[max(sizes)]["mean"], tau)
    for (N, curves), colour in zip(found.items(), (COLOURS[0], "black"), strict=True):
        ax.plot(tau, curves["mean"] / constant, color=colour, lw=2, label=f"mean, N = {N}")
        for key, label in (("low", None), ("high", f"2.5 % and 97.5 % quantiles, N = {N}")):
            ax.plot(tau, curves[key] / constant, color=colour, lw=1.2, ls="--", label=label)
    ax.plot(tau, np.exp(panel["log_prior"]), color=COLOURS[1], lw=1.8, label="prior density")
    mean = found[max(sizes)]["mean"]
    visible = tau[mean > _VISIBLE * mean.max()]
    ax.set_xlim(visible[0], visible[-1])
    ax.set_ylim(bottom=0.0)


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """EP varies less than LA, and many importance samples less than one."""
    sizes = settings["n_importance"]
    few, many = min(sizes), max(sizes)
    compared = []
    for n in settings["n"]:
        for N in sizes:
            text = f"The estimate by EP varies less than by LA (n = {n}, N = {N})"
            compared.append((text, (n, "LA", N), (n, "EP", N)))
    for n in settings["n"]:
        for name in _APPROXIMATIONS:
            text = f"The estimate varies less with N = {many} than with N = {few} (n = {n}, {name})"
            compared.append((text, (n, name, few), (n, name, many)))
    found = []
    for text, larger, smaller in compared:
        pair = (_log_variance(settings, results, *which) for which in (larger, smaller))
        if (difference := _difference(*pair)) is not None:
            found.append(Claim(text, "log ratio of the variances of the log estimate", *difference))
    return found
