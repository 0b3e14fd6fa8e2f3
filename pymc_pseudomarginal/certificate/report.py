"""`Certificate`: the figures of a run, and what they say, in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import fill

import numpy as np
import xarray as xr

from pymc_pseudomarginal.certificate.verdict import NAMES, Finding


@dataclass(frozen=True, repr=False, eq=False)
class Certificate:
    """How far the draws of a pseudo-marginal run can be trusted. It prints as a report.

    Attributes
    ----------
    dataset : xarray.Dataset
        Over ``theta``, posterior draws (of the chains and draws ``theta_chain`` and
        ``theta_draw``): ``log_weight_sd``, the standard deviation of the log weights;
        ``log_estimate_sd``, the predicted one of the log estimate; ``pareto_k``, the
        shape of the weights' tail; ``bias``, log Z_q minus the log of the unbiased estimate, and
        ``bias_error``, its Monte Carlo standard error, which says too little where
        ``pareto_k`` is above 0.7. ``value``, over (theta, hyperparameter), says on the natural
        scale which theta it is.

        ``bias_sd`` and ``bias_range``: how much the bias varies over these draws, the first
        without the part that its Monte Carlo error explains. A constant bias would cancel in
        MCMC on log Z_q; this does not.

        Over ``chain``: ``acceptance``, the rate; ``longest_run`` without acceptance; ``failed``,
        the number of proposals at which the numerics failed. ``explained_run`` is the
        longest run that the acceptance explains.

        Over ``hyperparameter``: ``rhat`` and ``ess_bulk``; over ``latent`` the same of f,
        ``latent_rhat`` and ``latent_ess_bulk``, if f was recorded.

        Attributes: ``approximation``, ``n_importance``, ``annealing``, ``samples``, ``draws``
        (per chain), and ``latent``, the name of f.
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
        lines.append(fill(_words_on_bias(self.dataset), 96))
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
    annealing = f", {about['annealing']} temperatures" if about["annealing"] else ""
    return [
        f"  {dataset.sizes['chain']} × {about['draws']} draws, sampled with "
        f"{NAMES[about['approximation']]}, n_importance={about['n_importance']}{annealing}",
        f"  weights: {about['samples']} at each of {dataset.sizes['theta']} posterior draws",
    ]


def _table(dataset):
    """Lines of the table: smallest, median and largest of every figure."""
    about = dataset.attrs
    q, f = NAMES[about["approximation"]], about["latent"]
    rows = [
        ("sd of the log weights", "log_weight_sd", ".2f"),
        (f"sd of the log estimate (N = {about['n_importance']})", "log_estimate_sd", ".2f"),
        ("Pareto shape k of the weights", "pareto_k", ".2f"),
        (f"bias of log Z, {q} (nats)", "bias", ".3f"),
        ("  its Monte Carlo error", "bias_error", ".3f"),
        ("acceptance rate", "acceptance", ".2f"),
        ("longest run without acceptance", "longest_run", ".0f"),
        ("failed proposals", "failed", ".0f"),
        ("R-hat of theta", "rhat", ".3f"),
        ("bulk ESS of theta", "ess_bulk", ".0f"),
        (f"R-hat of {f}", "latent_rhat", ".3f"),
        (f"bulk ESS of {f}", "latent_ess_bulk", ".0f"),
    ]
    width = max(len(label) for label, *_ in rows) + 2
    lines = [f"  {'':<{width}}{'smallest':>10}{'median':>10}{'largest':>10}"]
    for label, name, style in rows:
        if name in dataset:
            cells = "".join(f"{cell:>10}" for cell in _cells(dataset[name].values, style))
        else:
            cells = f"{'not recorded':>30}"
        lines.append(f"  {label:<{width}}{cells}")
    return lines


def _cells(values, style):
    """Smallest, median and largest; a dash where there is none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return ("-",) * 3
    return [format(part, style) for part in (known.min(), np.median(known), known.max())]


def _words_on_bias(dataset):
    q = NAMES[dataset.attrs["approximation"]]
    about = f"Over the posterior the bias of the {q} approximation"
    sd, extent = float(dataset["bias_sd"]), float(dataset["bias_range"])
    if sd == 0.0:
        return f"{about} varies by no more than its Monte Carlo error explains."
    return (
        f"{about} varies by {sd:.2g} nats (sd; range {extent:.2g}). MCMC on that approximation "
        "would be wrong by it; these draws are not."
    )
