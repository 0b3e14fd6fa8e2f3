"""Running means of sample statistics in PyMC's progress bar."""

from __future__ import annotations

from typing import ClassVar

from rich.progress import TextColumn
from rich.table import Column


class RunningMeans:
    """Columns of the progress bar for the mean of some statistics so far."""

    progress: ClassVar[dict[str, tuple[str, str]]]
    """Field of the bar -> (heading, statistic)."""
    absent_where_zero: ClassVar[frozenset[str]] = frozenset()
    """Fields whose statistic is zero in draws that have none."""

    @classmethod
    def _progressbar_config(cls, n_chains=1):
        columns = [
            TextColumn(f"{{task.fields[{name}]:0.2f}}", table_column=Column(heading, ratio=1))
            for name, (heading, _) in cls.progress.items()
        ]
        return columns, {name: [0.0] * n_chains for name in cls.progress}

    @classmethod
    def _make_progressbar_update_functions(cls):
        totals, draws = dict.fromkeys(cls.progress, 0.0), dict.fromkeys(cls.progress, 0)

        def update(drawn):
            for name, (_, statistic) in cls.progress.items():
                totals[name] += drawn[statistic]
                draws[name] += not (name in cls.absent_where_zero and drawn[statistic] == 0.0)
            return {name: total / max(draws[name], 1) for name, total in totals.items()}

        return (update,)
