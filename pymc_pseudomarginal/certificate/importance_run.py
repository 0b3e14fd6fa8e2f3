"""A run of `PseudoMarginalMH` or `PseudoMarginalHMC`, whose chains average sets of weights."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import numpy as np
import xarray as xr

from pymc_pseudomarginal.certificate.chains import acceptance_figures, by_element
from pymc_pseudomarginal.certificate.importance_rules import find_problems
from pymc_pseudomarginal.certificate.verdict import Finding
from pymc_pseudomarginal.certificate.weights import (
    FIGURES,
    at_each,
    blocks,
    predicted_log_sd,
    weight_figures,
)
from pymc_pseudomarginal.model import LatentGaussianModel
from pymc_pseudomarginal.numerics import APPROXIMATIONS
from pymc_pseudomarginal.prediction.posterior import posterior_draws
from pymc_pseudomarginal.transitions.effort import Effort
from pymc_pseudomarginal.transitions.point_sets import weighted_sampler


class ImportanceRun:
    """What is looked at in such a run.

    Parameters
    ----------
    idata : InferenceData or DataTree
    posterior, stats : xarray.Dataset
        Its groups.
    read : LatentGaussianModel
    settings : Effort

    Attributes
    ----------
    theta : dict of arrays, shape (chain, draw)
        Elements of the hyper-parameters.
    latent : dict of arrays, shape (chain, draw), or None
        Elements of f, if it was recorded.
    """

    def __init__(
        self,
        idata: object,
        posterior: xr.Dataset,
        stats: xr.Dataset,
        read: LatentGaussianModel,
        settings: Effort,
    ):
        self._read, self._settings, self._stats = read, settings, stats
        name = read.latent.name
        self._draws = posterior_draws(idata, read, latent=name in posterior)
        self.theta = by_element(posterior, list(read.natural_shapes))
        self.latent = by_element(posterior, [name]) if name in posterior else None

    @property
    def attrs(self) -> dict:
        """How it was sampled."""
        step = "PseudoMarginalHMC" if "pm_step_size" in self._stats else "PseudoMarginalMH"
        return asdict(self._settings) | {"step": step, "latent": self._read.latent.name}

    def acceptance(self) -> dict[str, tuple]:
        """`acceptance_figures`; every draw is one proposal."""
        sizes = self._stats.sizes
        return acceptance_figures(self._stats) | {
            "proposals": ("chain", np.full(sizes["chain"], sizes["draw"]))
        }

    def weights(
        self, chosen: np.ndarray, samples: int, rng: np.random.Generator, *, progressbar: bool
    ) -> dict[str, tuple]:
        """Figures of the weights at chosen draws (T,), numbered chain after chain.

        NaN where the covariance has no factor, or no finite approximation exists.

        q is run to convergence. In the chain it stopped earlier and started from a prediction that
        no trace records, which hardly changes the weights (`numerics.FOR_IMPORTANCE`); but log Z_q
        is the deterministic approximation that is used elsewhere only if it has converged.
        """
        figures = partial(self._at, self._read.bind_data(), samples, rng)
        names = (*FIGURES, "log_estimate_sd")
        return at_each(chosen, figures, names, progressbar=progressbar)

    def _at(self, bound, samples, rng, draw):
        theta = self._draws.theta[self._draws.which[draw]]
        likelihood = bound(theta)
        q = APPROXIMATIONS[self._settings.approximation](self._read.prior(theta), likelihood)
        sampler = weighted_sampler(self._settings.annealing)
        parts = [
            sampler(rng, q, likelihood, count).log_weights
            for count in blocks(samples, self._read.size)
        ]
        log_weights = np.concatenate(parts)
        noise = predicted_log_sd(log_weights, self._settings.n_importance, rng)
        return weight_figures(q.log_marginal, log_weights) | {"log_estimate_sd": noise}

    def problems(self, dataset: xr.Dataset) -> tuple[Finding, ...]:
        """What speaks against the run."""
        return find_problems(dataset)
