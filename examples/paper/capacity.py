"""What figures 6 and 7 say of the folds: capacity scores of the classifiers, with their errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from examples.benchmarks.tables import UNKNOWN, table
from examples.paper import models
from examples.paper.claims import DECISIVE, Claim
from examples.paper.classifiers import CLASSIFIERS
from examples.paper.estimates import Estimate
from examples.paper.folds import USPS_VARIABLE, stored_folds
from pymc_pseudomarginal.plots.canvas import coloured

SMALL = 50
"""Up to this many training rows the paper's claims are put to the test."""

CAPACITIES = {"capacity_accuracy": "capacity accuracy", "capacity_auc": "capacity AUC"}
_PLAIN = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "log_score": "mean log score",
    "confident_share": "commoner class in the confident half",
}
_COMPARED = (
    ("PM EP (64)", "SVM"),
    ("PM EP (64)", "EP ML"),
    ("MCMC EP", "EP ML"),
    ("PM EP (64)", "MCMC EP"),
)


def collected(folds: Sequence[dict], score: str) -> dict[str, np.ndarray]:
    """A score of each classifier in all folds, shape (folds,)."""
    return {name: np.array([f["scores"][name][score] for f in folds]) for name in CLASSIFIERS}


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean, and its standard error, NaN of fewer than two values."""
    if len(values) < 2:
        return float(np.mean(values)) if len(values) else float("nan"), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def best(values: Mapping[str, np.ndarray]) -> str | None:
    """The classifier that is ahead of the next best by more than chance, if any is."""
    first, second, *_ = sorted(values, key=lambda name: -mean_and_error(values[name])[0])
    if len(values[first]) < 2:
        return None
    lead = Estimate.of_mean(values[first] - values[second])
    return first if lead.value > DECISIVE * lead.error else None


def paired_claim(text: str, quantity: str, differences: np.ndarray) -> list[Claim]:
    """That differences between two classifiers, shape (folds,), are positive on average.

    Nothing where they have no error: of a single fold, or without any difference.
    """
    if len(differences) < 2 or not np.ptp(differences) > 0.0:
        return []
    found = Estimate.of_mean(differences)
    return [Claim(text, quantity, found.value, found.error)]


def described(values: np.ndarray, digits: int = 4) -> str:
    """Mean ± standard error for a table."""
    if not len(values):
        return UNKNOWN
    mean, error = mean_and_error(values)
    return f"{mean:.{digits}f}" + (f" ± {error:.{digits}f}" if np.isfinite(error) else "")


def report(settings: Mapping, results: Mapping[str, dict]) -> str:
    """A table for each data set, and one of plain scores."""
    parts = [_what_was_run(settings, results)]
    shown = _with_results(settings, results)
    for dataset in shown:
        parts += [f"**{title(dataset)}**", _capacity_table(settings, results, dataset)]
    if shown:
        parts.append(_who_is_ahead(settings, results, shown))
        parts += ["Plain scores, over all folds:", _plain_table(settings, results, shown)]
        parts.append(_confident_half(settings, results, shown))
    return "\n\n".join(parts)


def _with_results(settings, results) -> list[str]:
    sizes = settings["sizes"]
    return [name for name in settings["datasets"] if stored_folds(settings, results, name, sizes)]


def title(dataset: str) -> str:
    """The name of a data set in text."""
    return "USPS" if dataset == "usps" else dataset.capitalize()


def _what_was_run(settings, results) -> str:
    counts = {
        dataset: len(stored_folds(settings, results, dataset, settings["sizes"]))
        for dataset in settings["datasets"]
    }
    folds = ", ".join(f"{count} of {title(dataset)}" for dataset, count in counts.items())
    sizes = ", ".join(map(str, settings["sizes"]))
    chain, (shape, rate) = settings["chain"], models.REAL_PRIOR
    text = (
        f"Balanced training sets of {sizes} rows, {settings['repetitions']} of each size (the "
        f"paper: 40); all other rows are the test set. Folds that were run: {folds}. MCMC EP and "
        f"PM EP (64): one chain of {chain['draws']} draws after {chain['tune']} of tuning, "
        f"predictions from {chain['predictive_draws']} of them. The paper states no prior for "
        f"this comparison: sigma has its prior for other real data, Gamma({shape:g}, {rate:g}). "
        "Cost and kernel width of the SVM are cross-validated. The paper shows these "
        "results in pictures only, so there are no numbers of it to put beside ours."
    )
    if counts.get("usps") == 0:
        text += (
            " USPS does not come with the package and was left out: give the path of its "
            f"file in the environment variable `{USPS_VARIABLE}`."
        )
    return text


def _who_is_ahead(settings, results, datasets: Sequence[str]) -> str:
    winners = Counter(
        best(collected(folds, score))
        for dataset in datasets
        for size in settings["sizes"]
        if (folds := stored_folds(settings, results, dataset, [size]))
        for score in CAPACITIES
    )
    ahead = ", ".join(f"{name} in {winners[name]}" for name in CLASSIFIERS)
    return (
        "Bold is what is ahead of the next best by two standard errors of their difference: of "
        f"{winners.total()} comparisons {ahead}, none in {winners[None]}. The standard errors "
        "are those over random training sets from the same data, and contain the Monte Carlo "
        "error of the chains. Where few test rows of one class are left, the AUC rests on few "
        "pairs; points of its curve at which only one class is kept are left out."
    )


def _capacity_table(settings, results, dataset: str) -> str:
    header = ["training rows", "test rows of the rarer class"]
    header += [f"{text}: {name}" for text in CAPACITIES.values() for name in CLASSIFIERS]
    rows = []
    for size in settings["sizes"]:
        folds = stored_folds(settings, results, dataset, [size])
        row = [str(size), str(min(folds[0]["test_rows"])) if folds else UNKNOWN]
        for score in CAPACITIES:
            values = collected(folds, score)
            ahead = best(values)
            cells = {name: described(values[name]) for name in CLASSIFIERS}
            row += [f"**{cell}**" if name == ahead else cell for name, cell in cells.items()]
        rows.append(row)
    return table(header, rows)


def _plain_table(settings, results, datasets: Sequence[str]) -> str:
    rows = []
    for dataset in datasets:
        folds = stored_folds(settings, results, dataset, settings["sizes"])
        by_score = [collected(folds, score) for score in _PLAIN]
        rows += [
            [title(dataset), name, *(described(values[name], 3) for values in by_score)]
            for name in CLASSIFIERS
        ]
    return table(["data set", "classifier", *_PLAIN.values()], rows)


def _confident_half(settings, results, datasets: Sequence[str]) -> str:
    """What the last column of the plain scores means."""
    shares = []
    for dataset in datasets:
        folds = stored_folds(settings, results, dataset, settings["sizes"])
        rows = np.array([fold["test_rows"] for fold in folds])
        shares.append(f"{title(dataset)} {np.mean(rows.max(axis=1) / rows.sum(axis=1)):.2f}")
    return (
        "The last column is the share of the commoner class among the half of the test rows that "
        f"a classifier is more confident of; among all test rows it is {', '.join(shares)}. Where "
        "nearly all confident decisions are for one class, the AUC of what is kept rests on the "
        "few rows of the other, and many of these are the mistakes: capacity AUC can be low where "
        "capacity accuracy is high."
    )


def draw(settings: Mapping, results: Mapping[str, dict]) -> dict[str, Figure]:
    """Capacity scores against the size of the training set, a row of panels for each data set."""
    shown = _with_results(settings, results)
    if not shown:
        return {}
    figure = Figure(figsize=(10.0, 3.6 * len(shown)), layout="constrained")
    panels = figure.subplots(len(shown), len(CAPACITIES), squeeze=False)
    for dataset, row in zip(shown, panels, strict=True):
        for (score, label), panel in zip(CAPACITIES.items(), row, strict=True):
            for name, points, colour in coloured(_curves(settings, results, dataset, score)):
                panel.errorbar(*points, color=colour, label=name, marker="o", ms=4, capsize=2)
            panel.set(title=title(dataset), xlabel="Training rows", ylabel=f"C{label[1:]}")
    panels[0, 0].legend(loc="lower right")
    return {"Capacity scores (mean and standard error over folds) of four classifiers.": figure}


def _curves(settings, results, dataset: str, score: str) -> dict[str, np.ndarray]:
    """(size, mean, error) of each classifier, moved aside so that error bars stay apart."""
    points: dict[str, list] = {name: [] for name in CLASSIFIERS}
    for size in settings["sizes"]:
        folds = stored_folds(settings, results, dataset, [size])
        for shift, (name, values) in enumerate(collected(folds, score).items()):
            if folds:
                points[name].append((size + 0.6 * (shift - 1.5), *mean_and_error(values)))
    return {name: np.array(rows).T for name, rows in points.items()}


def claims(settings: Mapping, results: Mapping[str, dict]) -> list[Claim]:
    """Paired differences of the classifiers on small training sets."""
    small = [size for size in settings["sizes"] if size <= SMALL]
    found = []
    for dataset in settings["datasets"]:
        folds = stored_folds(settings, results, dataset, small)
        for score, text in CAPACITIES.items():
            values = collected(folds, score)
            for better, worse in _COMPARED:
                claim = f"{title(dataset)}: {better} has a higher {text} than {worse}"
                quantity = f"mean difference over {len(folds)} folds of up to {SMALL} rows"
                found += paired_claim(claim, quantity, values[better] - values[worse])
    return found
