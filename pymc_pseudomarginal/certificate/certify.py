"""`certify`: how far the draws of a pseudo-marginal run can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
import pymc as pm
import xarray as xr

from pymc_pseudomarginal.arguments import check_at_least
from pymc_pseudomarginal.certificate.chains import acceptance_figures, by_element, convergence
from pymc_pseudomarginal.certificate.report import Certificate
from pymc_pseudomarginal.certificate.settings import read_settings
from pymc_pseudomarginal.certificate.verdict import find_problems
from pymc_pseudomarginal.certificate.weights import weight_figures
from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.prediction.posterior import posterior_draws

# Fewer weights do not show their tail.
_FEWEST_SAMPLES = 100
# Halves of a chain are compared, and a variance takes two draws.
_FEWEST_DRAWS = 4


def certify(
    idata: object,
    *,
    approximation: str | None = None,
    n_importance: int | None = None,
    annealing: int | None = None,
    thetas: int = 16,
    samples: int = 1024,
    random_seed: int | np.random.Generator | None = None,
    model: pm.Model | None = None,
    progressbar: bool = True,
) -> Certificate:
    """Say how far the draws of `PseudoMarginalMH` or `PseudoMarginalHMC` can be trusted.

    The draws are exact in the limit whatever the weights are; how soon depends on how noisy
    the estimate of p(y|theta) is. That is measured at posterior draws of theta, where the chain
    spends its time, and the chains are checked for convergence.

    Parameters
    ----------
    idata : InferenceData or DataTree
        What `pm.sample` returned.
    approximation : {"laplace", "ep"}, optional
    n_importance, annealing : int, optional
        What the run was sampled with, or another choice to be looked at. None takes what the
        statistics tell (``pm_ep``, ``pm_n_importance``, ``pm_annealing``), at the last draws,
        and the least of the chains. `annealing` is 0 if they do not tell.
    thetas : int
        Number of posterior draws at which the weights are looked at, spread evenly over
        the chains and their length; at least 2.
    samples : int
        Number of weights at each of them, at least 100. With `annealing` each of them is a
        path, drawn one after the other; a few hundred do then.
    random_seed : int or Generator, optional
    model : pymc.Model, optional
        Taken from the context if not given.
    progressbar : bool

    Returns
    -------
    Certificate
        With the figures in ``.dataset``, what speaks against the run in ``.findings``, and
        ``.passed``. It prints as a report.

    Raises
    ------
    TypeError, ValueError
        If `idata` has no posterior or no sample statistics, was not sampled by one of
        them, or does not belong to the model.

    Notes
    -----
    Against a run speak: an R-hat above 1.01 or a bulk ESS below 100 per chain, of any
    element of theta or f; a Pareto shape of the weights above 0.7 (less for small `samples`) at
    more than a tenth of the thetas, where the log estimate varies by more than 0.2 as well; a
    predicted standard deviation of the log estimate above 1.2 at half of the thetas; a run
    without acceptance of a length that has a probability below 1e-6 given the acceptance
    rate; failures of more than 1 % of the proposals.

    The log estimate is predicted for independent samples; that of samples in pairs hardly ever
    varies more, and mostly less. Annealed paths are looked at with one move at each temperature.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and
    localization: an improved R-hat for assessing convergence of MCMC; Vehtari, Simpson,
    Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling; Doucet, Pitt, Deligiannidis &
    Kohn (2015), Efficient implementation of Markov chain Monte Carlo when using an unbiased
    likelihood estimator; Sherlock, Thiery, Roberts & Rosenthal (2015), On the efficiency of
    pseudo-marginal random walk Metropolis algorithms.

    Examples
    --------
    >>> certificate = pmpm.certify(idata, model=model)
    >>> print(certificate)
    >>> assert certificate.passed
    """
    thetas = check_at_least("thetas", thetas, 2)
    samples = check_at_least("samples", samples, _FEWEST_SAMPLES)
    posterior, stats = _group(idata, "posterior"), _group(idata, "sample_stats")
    _check_run(posterior, stats)
    settings = read_settings(stats, approximation, n_importance, annealing)
    read = read_model(model)
    draws = posterior_draws(idata, read, latent=read.latent.name in posterior)
    elements = by_element(posterior, read.natural_shapes)
    chosen = _spread_evenly(thetas, len(draws.which))
    weights = weight_figures(
        read,
        draws.theta[draws.which[chosen]],
        settings,
        samples=samples,
        rng=np.random.default_rng(random_seed),
        progressbar=progressbar,
    )
    n_draws = posterior.sizes["draw"]
    dataset = xr.Dataset(
        {name: ("theta", values) for name, values in weights.items()}
        | _bias_variation(weights["bias"], weights["bias_error"])
        | acceptance_figures(stats)
        | _convergence_figures(posterior, elements, draws.f, chosen),
        coords={
            "chain": posterior["chain"].values,
            "hyperparameter": list(elements),
            "theta_chain": ("theta", posterior["chain"].values[chosen // n_draws]),
            "theta_draw": ("theta", posterior["draw"].values[chosen % n_draws]),
        },
        attrs=asdict(settings)
        | {
            "step": "PseudoMarginalHMC" if "pm_step_size" in stats else "PseudoMarginalMH",
            "samples": samples,
            "draws": n_draws,
            "latent": read.latent.name,
        },
    )
    return Certificate(dataset, find_problems(dataset))


def _group(idata, name) -> xr.Dataset:
    try:
        group = idata[name]
    except (KeyError, IndexError, TypeError, AttributeError):
        raise TypeError(
            "idata must be inference data with the groups posterior and sample_stats, as pm.sample "
            f"returns them; found {type(idata).__name__} without {name}."
        ) from None
    return group if isinstance(group, xr.Dataset) else group.to_dataset()


def _check_run(posterior: xr.Dataset, stats: xr.Dataset) -> None:
    """Refuse draws of other samplers, and too few of them."""
    # The other samplers of the package report acceptance, too, but have no weights.
    if "pm_log_weight_sd" not in stats or "pm_accepted" not in stats:
        raise ValueError(
            "The draws were not made by PseudoMarginalMH or PseudoMarginalHMC: their statistics "
            f"are {', '.join(map(str, stats.data_vars)) or 'none'}. Samplers without importance "
            "weights have nothing to certify; look at az.summary(idata) instead."
        )
    sizes = [(group.sizes["chain"], group.sizes["draw"]) for group in (posterior, stats)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"The posterior has {sizes[0][0]} × {sizes[0][1]} draws and sample_stats "
            f"{sizes[1][0]} × {sizes[1][1]}; they must be of the same run. Select draws in both, "
            "as idata.sel(draw=...) does."
        )
    if posterior.sizes["draw"] < _FEWEST_DRAWS:
        raise ValueError(
            f"Found {posterior.sizes['draw']} draws per chain, but at least {_FEWEST_DRAWS} are "
            "needed. Sample for longer."
        )


def _spread_evenly(count: int, n_draws: int) -> np.ndarray:
    """Numbers of draws, the middles of `count` equal stretches of all, chain after chain."""
    count = min(count, n_draws)
    return ((np.arange(count) + 0.5) * n_draws / count).astype(int)


def _bias_variation(bias: np.ndarray, error: np.ndarray) -> dict[str, tuple]:
    """Range of the bias, and its standard deviation without what its error explains."""
    known = np.isfinite(bias)
    if known.sum() < 2:
        return {"bias_sd": ((), np.nan), "bias_range": ((), np.nan)}
    variance = bias[known].var(ddof=1) - np.mean(error[known] ** 2)
    return {
        "bias_sd": ((), np.sqrt(max(variance, 0.0))),
        "bias_range": ((), np.ptp(bias[known])),
    }


def _convergence_figures(
    posterior: xr.Dataset,
    elements: Mapping[str, np.ndarray],
    f: np.ndarray | None,
    chosen: np.ndarray,
) -> dict[str, tuple]:
    """R-hat and ESS of theta and, if it was recorded, of f; and theta at the chosen draws."""
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    theta = np.stack([*elements.values()], axis=-1) if elements else np.empty((*shape, 0))
    rhat, ess = convergence(theta)
    at_chosen = theta[chosen // shape[1], chosen % shape[1]]
    figures = {
        "value": (("theta", "hyperparameter"), at_chosen),
        "rhat": ("hyperparameter", rhat),
        "ess_bulk": ("hyperparameter", ess),
    }
    if f is not None:
        rhat, ess = convergence(f.reshape(*shape, -1))
        figures |= {"latent_rhat": ("latent", rhat), "latent_ess_bulk": ("latent", ess)}
    return figures
