"""The experiments by name, and where their results are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from examples.paper import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    other_data,
    table_1,
    table_2,
    table_3,
)
from examples.paper.result_file import ResultFile

EXPERIMENTS: dict[str, ModuleType] = {
    "figure-1": figure_1,
    "figure-2": figure_2,
    "table-1": table_1,
    "other-data": other_data,
    "table-2": table_2,
    "table-3": table_3,
    "figure-3": figure_3,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
}
"""Modules with TITLE, SCALES, `tasks`, `report`, `draw` and `claims`, in the order of the paper."""

SCALES = ("quick", "medium", "paper")
"""From minutes to days on two cores."""


@dataclass(frozen=True)
class Outcome:
    """What is known of one experiment at one scale.

    Attributes
    ----------
    name, scale : str
    experiment : module
    file : ResultFile
    """

    name: str
    scale: str
    experiment: ModuleType
    file: ResultFile

    @property
    def settings(self) -> dict:
        """Of the scale."""
        return self.experiment.SCALES[self.scale]

    def unfinished(self) -> int:
        """Number of tasks that could run now and have not."""
        tasks = self.experiment.tasks(self.settings, self.file.results())
        return sum(task not in self.file for task in tasks)


def stored_as(name: str) -> str:
    """The experiment whose results this one shows: itself, but for some."""
    return getattr(EXPERIMENTS[name], "STORED_AS", name)


def outcome(name: str, scale: str, folder: Path) -> Outcome:
    """The results of an experiment in a folder that has a folder for each scale."""
    file = ResultFile(folder / scale / f"{stored_as(name)}.jsonl")
    return Outcome(name, scale, EXPERIMENTS[name], file)


def best_outcome(name: str, folder: Path) -> Outcome | None:
    """That of the largest scale that is complete, or else of the largest that has results."""
    found = [outcome(name, scale, folder) for scale in reversed(SCALES)]
    begun = [candidate for candidate in found if candidate.file.lines]
    complete = [candidate for candidate in begun if not candidate.unfinished()]
    return next(iter(complete or begun), None)
