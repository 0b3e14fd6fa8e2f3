"""`certify`: how far the draws of a pseudo-marginal run can be trusted."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pymc as pm
import xarray as xr

from pymc_pseudomarginal.arguments import check_at_least
from pymc_pseudomarginal.certificate.chains import convergence_figures
from pymc_pseudomarginal.certificate.importance_run import ImportanceRun
from pymc_pseudomarginal.certificate.noise_run import NoiseRun
from pymc_pseudomarginal.certificate.report import Certificate
from pymc_pseudomarginal.certificate.settings import read_settings
from pymc_pseudomarginal.certificate.verdict import Finding
from pymc_pseudomarginal.certificate.weights import bias_variation
from pymc_pseudomarginal.model import read_model as read_single_latent
from pymc_pseudomarginal.reading import LatentGaussianModel, read_model

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
    model: pm.Model | LatentGaussianModel | None = None,
    progressbar: bool = True,
) -> Certificate:
    """Say how far the draws of a pseudo-marginal run can be trusted.

    The draws are exact in the limit whatever q is, the Gaussian that stands for the latent given
    theta; how soon depends on it. It is looked at where the chain spends its time, at posterior
    draws, and the chains are checked for convergence.

    Parameters
    ----------
    idata : InferenceData or DataTree
        What `pm.sample` returned, with `PseudoMarginalStep`, `PseudoMarginalMH` or
        `PseudoMarginalHMC` as the step.
    approximation : {"laplace", "ep"}, optional
    n_importance, annealing : int, optional
        For `PseudoMarginalMH` and `PseudoMarginalHMC` alone: what the run was sampled with, or
        another choice to be looked at. None takes what the statistics tell (``pm_ep``,
        ``pm_n_importance``, ``pm_annealing``), at the last draws, and the least of the chains.
        `annealing` is 0 if they do not tell.
    thetas : int
        Number of posterior draws at which the weights are looked at, spread evenly over
        the chains and their length; at least 2.
    samples : int
        Number of weights at each of them, at least 100. With `annealing` each of them is a
        path, drawn one after the other; a few hundred do then.
    random_seed : int or Generator, optional
    model : pymc.Model or LatentGaussianModel, optional
        What `read_model` returned is not read again. Taken from the context if not given.
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
    Against a run speak: an R-hat above 1.01 or a bulk or tail ESS below 100 per chain, of any
    element of theta or of the latent; a run without acceptance of a length that has a probability
    below 1e-6 given the acceptance rate; failures of more than 1 % of the proposals.

    Against `PseudoMarginalMH` and `PseudoMarginalHMC`, which average weights, speak as well: a
    Pareto shape of the weights above 0.7 (less for small `samples`) at more than a tenth of the
    thetas, where the log estimate varies by more than 0.2 as well; a predicted standard deviation
    of the log estimate above 1.2 at half of the thetas. The log estimate is predicted for
    independent samples; that of samples in pairs hardly ever varies more, and mostly less.
    Annealed paths are looked at with one move at each temperature.

    `PseudoMarginalStep` moves theta at fixed noise as well, so that weights far apart do not make
    it stick: they are told, and only its chains speak against it.

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
    _check_sizes(posterior, stats)
    run = _run(idata, posterior, stats, model, (approximation, n_importance, annealing))
    n_draws = posterior.sizes["draw"]
    chosen = _spread_evenly(thetas, posterior.sizes["chain"] * n_draws)
    theta_chain, theta_draw = np.divmod(chosen, n_draws)
    rng = np.random.default_rng(random_seed)
    figures = run.weights(chosen, samples, rng, progressbar=progressbar)
    figures |= bias_variation(figures["bias"][1], figures["bias_error"][1])
    figures |= run.acceptance()
    figures |= convergence_figures(run.theta, "hyperparameter", progressbar=progressbar)
    values = [draws[theta_chain, theta_draw] for draws in run.theta.values()]
    figures["value"] = ("theta", "hyperparameter"), np.reshape(values, (-1, len(chosen))).T
    coords = {
        "chain": posterior["chain"].values,
        "hyperparameter": list(run.theta),
        "theta_chain": ("theta", posterior["chain"].values[theta_chain]),
        "theta_draw": ("theta", posterior["draw"].values[theta_draw]),
    }
    if run.latent is not None:
        figures |= convergence_figures(run.latent, "latent", "latent_", progressbar=progressbar)
        coords["latent"] = list(run.latent)
    dataset = xr.Dataset(figures, coords, run.attrs | {"samples": samples, "draws": n_draws})
    return Certificate(dataset, run.problems(dataset))


class Run(Protocol):
    """What a kind of run has to tell."""

    theta: dict[str, np.ndarray]
    latent: dict[str, np.ndarray] | None

    @property
    def attrs(self) -> dict:
        """How it was sampled."""

    def acceptance(self) -> dict[str, tuple]:
        """Figures of every chain."""

    def weights(
        self, chosen: np.ndarray, samples: int, rng: np.random.Generator, *, progressbar: bool
    ) -> dict[str, tuple]:
        """Figures of the weights at chosen draws, numbered chain after chain."""

    def problems(self, dataset: xr.Dataset) -> tuple[Finding, ...]:
        """What speaks against the run."""


def _run(idata, posterior, stats, model, settings) -> Run:
    """What looks at the kind of run that the statistics tell."""
    # The other samplers of the package report acceptance, too, but have no weights.
    if "pm_log_weight_sd" in stats and "pm_accepted" in stats:
        chosen = read_settings(stats, *settings)
        known = model.model if isinstance(model, LatentGaussianModel) else model
        return ImportanceRun(idata, posterior, stats, read_single_latent(known), chosen)
    if "pm_log_weight" in stats and "pm_noise_acceptance" in stats:
        if settings != (None, None, None):
            raise ValueError(
                "approximation=, n_importance= and annealing= are for runs of PseudoMarginalMH and "
                "PseudoMarginalHMC; these draws were made by PseudoMarginalStep. Leave them out."
            )
        read = model if isinstance(model, LatentGaussianModel) else read_model(model)
        return NoiseRun(posterior, stats, read)
    raise ValueError(
        "The draws were not made by PseudoMarginalMH, PseudoMarginalHMC or PseudoMarginalStep: "
        f"their statistics are {', '.join(map(str, stats.data_vars)) or 'none'}. Samplers without "
        "importance weights have nothing to certify; look at az.summary(idata) instead."
    )


def _group(idata, name) -> xr.Dataset:
    try:
        group = idata[name]
    except (KeyError, IndexError, TypeError, AttributeError):
        raise TypeError(
            "idata must be inference data with the groups posterior and sample_stats, as pm.sample "
            f"returns them; found {type(idata).__name__} without {name}."
        ) from None
    return group if isinstance(group, xr.Dataset) else group.to_dataset()


def _check_sizes(posterior: xr.Dataset, stats: xr.Dataset) -> None:
    """Refuse groups of different runs, and too few draws."""
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
