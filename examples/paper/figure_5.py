"""Figure 5: accuracy and AUC of four classifiers against the degree of abstention.

The paper draws the two curves behind the capacity scores for one fold each: accuracy with 50
training rows of the Glass data, AUC with 20 of the Pima data. This module draws the first of
several folds, and looks at all of them for what the paper reads off its figure: that the SVM is
confident of wrong decisions more often than the GP classifiers are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

import pymc_pseudomarginal as pmpm
from examples.benchmarks.tables import table
from examples.paper.capacity import described, paired_claim, title
from examples.paper.claims import Claim
from examples.paper.classifiers import CLASSIFIERS, predict_fold
from examples.paper.folds import CHAINS, fold_name, stored_folds
from examples.paper.tasks import Task
from pymc_pseudomarginal.plots.canvas import coloured, leave_room

TITLE = "Figure 5: accuracy and AUC against abstention"
SCALES = {
    scale: {"repetitions": repetitions, "chain": CHAINS[scale]}
    for scale, repetitions in (("quick", 6), ("medium", 10), ("paper", 40))
}
PANELS = {("glass", 50): ("accuracy", "Accuracy"), ("pima", 20): ("auc", "AUC")}
"""Data set and training rows: the curve."""

CONFIDENT = 0.9
"""From this probability on a decision counts as confident."""


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """A task for every fold."""
    return [
        Task(
            fold_name(dataset, size, repetition),
            abstention_curves,
            {"kind": kind, "dataset": dataset, "size": size, "chain": settings["chain"]},
        )
        for (dataset, size), (kind, _) in PANELS.items()
        for repetition in range(1, settings["repetitions"] + 1)
    ]


def abstention_curves(kind: str, **arguments: object) -> dict:
    """Curves of the four classifiers on a fold, and their confident errors.

    Parameters
    ----------
    kind : {"accuracy", "auc"}
    **arguments
        Of `predict_fold`.

    Returns
    -------
    dict
        For each classifier ``abstention`` and ``curve``, of shape (51,) and None where it is not
        defined, ``capacity``, the area under it, and ``confident_errors``, the share of all test
        rows that it gives the wrong label with a probability of `CONFIDENT` or more.
    """
    y, predictions = predict_fold(**arguments)
    found = {}
    for name, p in predictions.items():
        scores = pmpm.capacity_scores(y, p)
        found[name] = {
            "abstention": scores.curves["abstention"].to_numpy(),
            "curve": scores.curves[kind].to_numpy(),
            "capacity": getattr(scores, kind),
            "confident_errors": np.mean(np.where(y == 1, 1.0 - p, p) >= CONFIDENT),
        }
    return found


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """The areas under the curves and the shares of confident errors."""
    chain = settings["chain"]
    folds = {panel: stored_folds(settings, results, panel[0], [panel[1]]) for panel in PANELS}
    counts = ", ".join(f"{len(folds[d, n])} of {title(d)} with {n} rows" for d, n in PANELS)
    text = (
        f"Random balanced training sets; folds that were run: {counts}. The figure shows the "
        f"first of each. MCMC EP and PM EP (64): {chain['draws']} draws after {chain['tune']} of "
        "tuning. The paper shows one fold of each in pictures only. The table has means "
        "± standard errors over the folds of the area under the curve, and of the share of test "
        f"rows that are given the wrong label with a probability of {CONFIDENT:g} or more."
    )
    header = ["classifier"]
    for (dataset, size), (_, label) in PANELS.items():
        where = f"{title(dataset)}, {size} rows"
        header += [f"{where}: capacity {label if label == 'AUC' else label.lower()}"]
        header += [f"{where}: confident errors"]
    rows = []
    for name in CLASSIFIERS:
        cells = [
            described(np.array([f[name][key] for f in found]))
            for found in folds.values()
            for key in ("capacity", "confident_errors")
        ]
        rows.append([name, *cells])
    return f"{text}\n\n{table(header, rows)}"


def draw(settings: Mapping, results: Mapping[str, dict]) -> dict[str, Figure]:
    """The curves of the first fold of each data set."""
    shown = {panel: results.get(fold_name(*panel, 1)) for panel in PANELS}
    shown = {panel: found for panel, found in shown.items() if found is not None}
    if not shown:
        return {}
    figure = Figure(figsize=(5.1 * len(shown), 4.2), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    for ((dataset, size), found), panel in zip(shown.items(), axes, strict=True):
        label = PANELS[dataset, size][1]
        for name, of_classifier, colour in coloured(found):
            points = np.array([of_classifier["abstention"], of_classifier["curve"]], dtype=float)
            text = f"{name}: {of_classifier['capacity']:.3f}"
            # The two that sample theta are often on top of each other.
            dashes = "--" if name == "PM EP (64)" else "-"
            panel.plot(*points, color=colour, lw=2, ls=dashes, label=text)
        panel.set(
            title=f"{title(dataset)}, {size} training rows",
            xlabel="Degree of abstention (share of cases left out)",
            ylabel=f"{label} on the cases kept",
        )
        leave_room(panel, len(found) + 1, below=True)
        panel.legend(title="area under the curve", loc="lower right")
    return {"Accuracy and AUC against the degree of abstention, on one fold each.": figure}


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """The confident errors of the SVM less those of each GP classifier."""
    found = []
    for dataset, size in PANELS:
        folds = stored_folds(settings, results, dataset, [size])
        errors = {
            name: np.array([f[name]["confident_errors"] for f in folds]) for name in CLASSIFIERS
        }
        svm = errors.pop("SVM")
        for name, of_classifier in errors.items():
            claim = f"{title(dataset)}, {size} rows: the SVM is confidently wrong more often "
            claim += f"than {name}"
            quantity = f"difference in the share of confident errors, {len(folds)} folds"
            found += paired_claim(claim, quantity, svm - of_classifier)
    return found
