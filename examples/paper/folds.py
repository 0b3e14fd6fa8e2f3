"""Folds of a data set for figures 5, 6 and 7, and how well the classifiers do on them.

A fold is a training set with as many rows of one class as of the other, drawn at random; all other
rows are its test set. A task runs the four classifiers on one fold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

import pymc_pseudomarginal as pmpm
from examples.paper.classifiers import predict_fold
from examples.paper.tasks import Task

USPS_VARIABLE = "PAPER_USPS"
"""Environment variable with the path of the data set that does not come with the package."""

CHAINS = {
    "quick": {"tune": 300, "draws": 600, "predictive_draws": 300},
    "medium": {"tune": 300, "draws": 750, "predictive_draws": 250},
    "paper": {"tune": 300, "draws": 2400, "predictive_draws": 600},
}
_SIZES = {
    "quick": {"sizes": [10, 20, 50], "repetitions": 4},
    "medium": {"sizes": [10, 20, 30, 50, 70, 100], "repetitions": 10},
    "paper": {"sizes": list(range(10, 101, 10)), "repetitions": 40},
}
# Where the log score of probabilities that were rounded to 0 or 1 stays finite.
_LEAST = 1e-9


def scales(datasets: Sequence[str]) -> dict[str, dict]:
    """The settings of all scales for some data sets."""
    return {
        scale: {"datasets": list(datasets), **_SIZES[scale], "chain": CHAINS[scale]}
        for scale in _SIZES
    }


def tasks(settings: Mapping, results: Mapping[str, dict]) -> list[Task]:
    """A task for every fold. USPS is left out where its file is not given."""
    return [
        _task(dataset, size, repetition, settings["chain"])
        for size in sorted(settings["sizes"], reverse=True)
        # USPS, the last, takes longest. Folds of one shape share compiled code: they stay together.
        for dataset in reversed(settings["datasets"])
        if dataset != "usps" or USPS_VARIABLE in os.environ
        for repetition in range(1, settings["repetitions"] + 1)
    ]


def _task(dataset: str, size: int, repetition: int, chain: Mapping) -> Task:
    return Task(
        fold_name(dataset, size, repetition),
        fold,
        {"dataset": dataset, "size": size, "chain": chain},
        # Workers on other machines may not have the file.
        _usps(os.environ[USPS_VARIABLE]) if dataset == "usps" else {},
    )


def fold_name(dataset: str, size: int, repetition: int) -> str:
    """Of the task."""
    return f"{dataset} n={size}, fold {repetition}"


@cache
def _usps(path: str) -> dict[str, np.ndarray]:
    data = pmpm.datasets.load("usps", standardise=True, path=path)
    return {"X": data.X, "y": data.y}


def fold(**arguments: object) -> dict:
    """Scores of the four classifiers on a fold. Takes what `predict_fold` takes.

    Returns
    -------
    dict
        ``test_rows``, of label 0 and label 1, and ``scores``: classifier -> score -> number.
    """
    y, predictions = predict_fold(**arguments)
    return {
        "test_rows": np.bincount(y, minlength=2),
        "scores": {name: _scores(y, p) for name, p in predictions.items()},
    }


def _scores(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    found = pmpm.capacity_scores(y, p)
    without_abstention = found.curves.sel(rho=0.0)
    of_label = np.where(y == 1, p, 1.0 - p)
    confident = np.argsort(-np.abs(p - 0.5))[: len(y) // 2]
    return {
        "capacity_accuracy": found.accuracy,
        "capacity_auc": found.auc,
        "accuracy": float(without_abstention["accuracy"]),
        "auc": float(without_abstention["auc"]),
        "log_score": float(np.log(np.maximum(of_label, _LEAST)).mean()),
        # Of the commoner label in the half of the rows where the decision is most confident.
        "confident_share": float(np.mean(y[confident] == (y.mean() > 0.5))),
    }


def stored_folds(
    settings: Mapping, results: Mapping[str, dict], dataset: str, sizes: Sequence[int]
) -> list[dict]:
    """The results of a data set that are there."""
    names = [
        fold_name(dataset, size, repetition)
        for size in sizes
        for repetition in range(1, settings["repetitions"] + 1)
    ]
    return [results[name] for name in names if name in results]
