"""`Certificate`: the figures of a run, and what they say, in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import fill

import numpy as np
import xarray as xr

from pymc_pseudomarginal.certificate.verdict import Finding
from pymc_pseudomarginal.certificate.weights import NAMES, tail_limit

# The mean of log-normal weights that differ by less is known to 2 % from a thousand of them.
_CLOSE = 0.5
# A number above exp of it has too many digits to be read.
_MANY_NATS = 7.0


@dataclass(frozen=True, repr=False, eq=False)
class Certificate:
    """How far the draws of a pseudo-marginal run can be trusted. It prints as a report.

    Attributes
    ----------
    dataset : xarray.Dataset
        Over ``theta``, posterior draws (of the chains and draws ``theta_chain`` and
        ``theta_draw``): ``log_weight_sd``, the standard deviation of the log weights of draws of
        q; ``pareto_k``, the shape of the weights' tail; ``bias``, log Z_q minus the log of the
        unbiased estimate, and ``bias_error``, its Monte Carlo standard error, which says too
        little where ``pareto_k`` is above 0.7. ``value``, over (theta, hyperparameter), says on
        the natural scale which theta it is. ``log_estimate_sd`` (`PseudoMarginalMH` and
        `PseudoMarginalHMC`) is the predicted standard deviation of the log estimate; ``q_ess``
        (`PseudoMarginalStep`), the effective number of draws of q as a share, and
        ``target_log_weight``, log(w/Z) of the draw's own x, if x was recorded.

        ``bias_sd`` and ``bias_range``: how much the bias varies over these draws, the first
        without the part that its Monte Carlo error explains. A constant bias would cancel in
        MCMC on log Z_q; this does not. ``target_ess``: the share ``q_ess`` as the draws of x
        see it, 1 / E[w/Z].

        Over ``chain``: ``acceptance``, the rate; ``longest_run`` without acceptance, from the
        draw ``run_start`` on; ``noise_acceptance``, the mean of the moves of x at fixed theta
        (`PseudoMarginalStep`); ``failed``, the number of ``proposals`` at which the numerics
        failed. ``explained_run`` is the longest run that the acceptance explains.

        Over ``hyperparameter``: ``rhat``, ``ess_bulk`` and ``ess_tail``; over ``latent`` the same
        of the latent, ``latent_rhat`` and so on, if it was recorded.

        Attributes: ``step``, ``approximation``, ``samples``, ``draws`` (per chain), ``latent``,
        the name of the latent; ``n_importance`` and ``annealing``, if the step has them.
    findings : tuple of Finding
        What speaks against the run.
    """

    dataset: xr.Dataset
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the run."""
        return not self.findings

    def __repr__(self):
        """A table of the figures, then the verdict."""
        verdict = "passed" if self.passed else "not passed"
        lines = [f"Certificate: {verdict}", *_about(self.dataset), "", *_table(self.dataset), ""]
        lines += [fill(text, 96) for text in _words_on_weights(self.dataset)]
        if self.passed:
            return "\n".join([*lines, "Nothing speaks against these draws."])
        lines.append("What speaks against these draws:")
        for finding in self.findings:
            text = f"{finding.what}: {finding.problem}"
            lines.append(fill(text, 96, initial_indent="- ", subsequent_indent="  "))
            lines.append(fill(finding.remedy, 96, initial_indent="  → ", subsequent_indent="    "))
        return "\n".join(lines)

    def _repr_html_(self):
        return f"<pre>{escape(repr(self))}</pre>"


def _about(dataset):
    about = dataset.attrs
    return [
        f"  {dataset.sizes['chain']} × {about['draws']} draws of {about['step']}, "
        f"{_sampled_with(dataset)}",
        f"  weights: {about['samples']} at each of {dataset.sizes['theta']} posterior draws",
    ]


def _sampled_with(dataset):
    about, q = dataset.attrs, NAMES[dataset.attrs["approximation"]]
    if "n_importance" not in about:
        return f"{q}; theta of size {about['theta_size']}, x of size {about['latent_size']}"
    annealing = f", {about['annealing']} temperatures" if about["annealing"] else ""
    return f"{q}, n_importance={about['n_importance']}{annealing}"


def _table(dataset):
    """Lines of the table: smallest, median and largest of every figure."""
    rows = _rows(dataset.attrs)
    width = max(len(label) for label, *_ in rows) + 2
    lines = [f"  {'':<{width}}{'smallest':>10}{'median':>10}{'largest':>10}"]
    for label, name, style in rows:
        if name in dataset:
            cells = "".join(f"{cell:>10}" for cell in _cells(dataset[name].values, style))
        else:
            cells = f"{'not recorded':>30}"
        lines.append(f"  {label:<{width}}{cells}")
    return lines


def _rows(about):
    """(label, figure, format) of every line."""
    latent, of_sets = about["latent"], "n_importance" in about
    noise = [("acceptance of noise moves", "noise_acceptance", ".2f")]
    estimate = [
        (f"sd of the log estimate (N = {about.get('n_importance')})", "log_estimate_sd", ".2f")
    ]
    by_target = [
        ("effective draws per draw of q", "q_ess", ".2f"),
        ("log(w/Z) at posterior draws of x", "target_log_weight", ".2f"),
    ]
    return [
        ("R-hat of theta", "rhat", ".3f"),
        ("bulk ESS of theta", "ess_bulk", ".0f"),
        ("tail ESS of theta", "ess_tail", ".0f"),
        (f"R-hat of {latent}", "latent_rhat", ".3f"),
        (f"bulk ESS of {latent}", "latent_ess_bulk", ".0f"),
        (f"tail ESS of {latent}", "latent_ess_tail", ".0f"),
        ("acceptance rate", "acceptance", ".2f"),
        *([] if of_sets else noise),
        ("longest run without acceptance", "longest_run", ".0f"),
        ("failed proposals", "failed", ".0f"),
        ("sd of the log weights", "log_weight_sd", ".2f"),
        ("Pareto shape k of the weights", "pareto_k", ".2f"),
        *(estimate if of_sets else by_target),
        (f"bias of log Z, {NAMES[about['approximation']]} (nats)", "bias", ".3f"),
        ("  its Monte Carlo error", "bias_error", ".3f"),
    ]


def _cells(values, style):
    """Smallest, median and largest; a dash where there is none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return ("-",) * 3
    return [format(part, style) for part in (known.min(), np.median(known), known.max())]


def _words_on_weights(dataset):
    """Sentences on q: what inference by it alone would get wrong, and what it misses."""
    yield _words_on_bias(dataset)
    failed = int(dataset["bias"].isnull().sum())
    if failed and "n_importance" not in dataset.attrs:
        yield f"q could not be made at {failed} of these draws, which are left out."
    ess = float(dataset.get("target_ess", np.nan))
    if np.isfinite(ess):
        own, lack = float(dataset["q_ess"].median()), float(dataset["target_log_weight"].max())
        yield (
            f"A draw of q is worth {own:.2g} effective ones by the weights of its own draws, and "
            f"{ess:.2g} by those of the posterior's x, of which one is {_ratio(lack)} times as "
            "probable as q says."
        )


def _ratio(log_ratio):
    """A ratio that can be read."""
    return f"{np.exp(log_ratio):.2g}" if log_ratio < _MANY_NATS else f"e^{log_ratio:.0f}"


def _words_on_bias(dataset):
    q = NAMES[dataset.attrs["approximation"]]
    about = f"Over the posterior the bias of the {q} approximation"
    if not _is_known(dataset):
        return (
            f"{about} cannot be told: {dataset.attrs['samples']} weights are too far apart to be "
            "averaged. These draws do not rest on it."
        )
    sd, extent = float(dataset["bias_sd"]), float(dataset["bias_range"])
    if not np.isfinite(sd):
        return f"{about} is not known."
    if sd == 0.0:
        return f"{about} varies by no more than its Monte Carlo error explains."
    off = f"{100.0 * np.expm1(sd):.2g}%" if sd < _CLOSE else f"a factor of {_ratio(sd)}"
    return (
        f"{about} varies by {sd:.2g} nats (sd; range {extent:.2g}): inference by it alone would "
        f"misjudge the density of theta by about {off}. These draws do not."
    )


def _is_known(dataset):
    """Whether the mean of the weights is near Z at half of the thetas or more."""
    heavy = dataset["pareto_k"].values > tail_limit(dataset.attrs["samples"])
    return not np.mean(heavy & (dataset["log_weight_sd"].values > _CLOSE)) > 0.5
