"""A run of `PseudoMarginalStep`, whose chains carry theta and the noise u that makes x of it.

A wide spread of the weights is no fault of such a chain by itself: theta moves at the same u, so
that most of it cancels. The weights are told; what speaks against a run are its chains.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from pymc_pseudomarginal.approximations.target import LaplaceTarget
from pymc_pseudomarginal.certificate.chains import acceptance_figures, by_element
from pymc_pseudomarginal.certificate.recorded import RecordedPoints
from pymc_pseudomarginal.certificate.settings import per_draw
from pymc_pseudomarginal.certificate.verdict import Advice, Finding, chain_problems, is_stuck
from pymc_pseudomarginal.certificate.weights import FIGURES, at_each, blocks, weight_figures
from pymc_pseudomarginal.reading import LatentGaussianModel

_ADVICE = Advice(
    stuck="See where, with idata.posterior.sel(chain={chain}, draw={draw}). If a hyper-parameter "
    "is extreme there, a tighter prior on it helps, or another parameter for the same (a standard "
    "deviation for a precision). Else sample more chains with another random_seed: each is tuned "
    "by itself.",
    apart="Sample more draws per chain, about {draws}, and more chains. If they stay apart, the "
    "posterior has several modes: compare the chains (az.plot_trace), and rule out by the prior "
    "what makes no sense.",
    short="Sample more draws per chain, about {draws}. Where that takes too long, look for a "
    "hyper-parameter that its prior and the data leave open, or for two terms that explain the "
    "same.",
)
_FIRST = "Cure the stuck chain first; how many draws it takes depends on it."
_ADVICE_IF_STUCK = replace(_ADVICE, apart=_FIRST, short=_FIRST)


class NoiseRun:
    """What is looked at in such a run.

    Parameters
    ----------
    posterior, stats : xarray.Dataset
        Groups of the inference data.
    read : LatentGaussianModel

    Attributes
    ----------
    theta : dict of arrays, shape (chain, draw)
        Elements of the hyper-parameters.
    latent : dict of arrays, shape (chain, draw), or None
        Elements of x, if all its members were recorded.
    """

    def __init__(self, posterior: xr.Dataset, stats: xr.Dataset, read: LatentGaussianModel):
        self._stats, self._read = stats, read
        names, structure = read.structure.space.names, read.structure
        theta, members = ([names[v] for v in part] for part in (structure.theta, structure.members))
        recorded = all(name in posterior for name in members)
        self._points = RecordedPoints(posterior, read.model, theta + members * recorded)
        self.theta = by_element(posterior, theta)
        self.latent = by_element(posterior, members) if recorded else None

    @property
    def attrs(self) -> dict:
        """How it was sampled."""
        return {
            "step": "PseudoMarginalStep",
            "approximation": "laplace",
            "latent": "x",
            "theta_size": self._read.dim_theta,
            "latent_size": self._read.size,
        }

    def acceptance(self) -> dict[str, tuple]:
        """`acceptance_figures`, and the mean acceptance of the noise moves of every chain."""
        noise = per_draw(self._stats, "pm_noise_acceptance")[..., 0]
        moves = np.isfinite(noise).sum(axis=1)
        with np.errstate(invalid="ignore"):
            mean = np.nansum(noise, axis=1) / moves  # NaN where there was none
        proposals = per_draw(self._stats, "pm_evaluations").sum(axis=(1, 2))
        return acceptance_figures(self._moves) | {
            "noise_acceptance": ("chain", mean),
            "proposals": ("chain", proposals),
        }

    @property
    def _moves(self) -> xr.Dataset:
        """The statistics, where without theta the moves of x are those that count."""
        if self.theta or self.latent is None:
            return self._stats
        values = next(iter(self.latent.values()))
        moved = np.diff(values, axis=1, prepend=np.nan) != 0.0
        return self._stats.assign(pm_accepted=(("chain", "draw"), moved))

    def weights(
        self, chosen: np.ndarray, samples: int, rng: np.random.Generator, *, progressbar: bool
    ) -> dict[str, tuple]:
        """Figures of the weights at chosen draws (T,), numbered chain after chain.

        Of draws of q: `FIGURES`, and ``q_ess``, their effective number as a share. Of the
        posterior's own x: ``target_log_weight``, log(w/Z), and ``target_ess``, the same share as
        the posterior sees it, 1 / E[w/Z]: draws of q cannot tell of the x that they never reach.

        q is found from x = 0; in the chain Newton's method started closer and stopped earlier.
        """
        names = (*FIGURES, "q_ess", "target_log_weight")
        figures = partial(self._at, LaplaceTarget(self._read), samples, rng)
        found = at_each(chosen, figures, names, progressbar=progressbar)
        log_weights = found["target_log_weight"][1]
        known = log_weights[~np.isnan(log_weights)]
        ess = np.exp(np.log(len(known)) - np.logaddexp.reduce(known)) if len(known) else np.nan
        return found | {"target_ess": ((), float(ess))}

    def _at(self, target, samples, rng, draw):
        theta, x = self._read.from_point(self._points(draw))
        q = target.at(theta)
        parts = [q.log_weights(rng.standard_normal((k, q.size))) for k in blocks(samples, q.size)]
        log_weights = np.concatenate(parts)
        # W is the curvature at the mode, so that its own weight there is Laplace's log Z.
        figures = weight_figures(q.log_weight(np.zeros(q.size)), log_weights)
        log_sum = np.logaddexp.reduce(log_weights)
        figures["q_ess"] = np.exp(2.0 * log_sum - np.logaddexp.reduce(2.0 * log_weights)) / samples
        if self.latent is not None:
            excess = q.log_weight(q.noise(x)) - (log_sum - np.log(samples))
            figures["target_log_weight"] = excess
        return figures

    def problems(self, dataset: xr.Dataset) -> tuple[Finding, ...]:
        """What speaks against the run."""
        return chain_problems(dataset, _ADVICE_IF_STUCK if is_stuck(dataset) else _ADVICE)
