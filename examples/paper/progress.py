"""A progress bar on a terminal, lines elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress


class Progress:
    """Counts the finished tasks of an experiment, as a context.

    Parameters
    ----------
    name : str
        Of the experiment.
    total : int
        Number of tasks.
    """

    def __init__(self, name: str, total: int):
        self.name, self.total, self.done = name, total, 0
        self.console = Console(stderr=True)
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def __enter__(self):
        self._bar.start()
        self._task = self._bar.add_task(self.name, total=self.total)
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def finished(self, task: str, seconds: float) -> None:
        """Count a task, and name it where there is no bar."""
        self._advance()
        if not self.console.is_terminal:
            self._say(f"{self.name} {self.done}/{self.total}: {task}, {seconds:.1f} s")

    def failed(self, task: str, error: str) -> None:
        """Count a task and say what happened."""
        self._advance()
        self._say(f"{self.name} {self.done}/{self.total}: {task} FAILED: {error}")

    def _advance(self) -> None:
        self.done += 1
        self._bar.advance(self._task)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
