"""Results in a file, a line for each task, written as soon as it is finished."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from examples.paper.tasks import Task, compact

_PACKAGES = ("pymc_pseudomarginal", "pymc", "pytensor", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Line:
    """One finished task."""

    task: str
    digest: str
    seed: int
    seconds: float
    result: dict


class ResultFile:
    """The finished tasks of one experiment at one scale, in JSON lines.

    A line that an interruption left unfinished is dropped when the file is opened. Of two lines
    of the same task the later one counts.

    Parameters
    ----------
    path : pathlib.Path
        Need not exist yet.
    """

    def __init__(self, path: Path):
        self.path = path
        self.lines: dict[str, Line] = {}
        self.versions: list[dict] = []
        if path.exists():
            self._read()

    def _read(self) -> None:
        text = self.path.read_text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.path.write_text(whole)
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise SystemExit(
                    f"Line {number} of {self.path} is no result ({error}). Delete the line to "
                    "have its task run again, or give another --results."
                ) from error

    def _take(self, record: dict) -> None:
        if "versions" in record:
            self.versions.append(record["versions"])
        else:
            line = Line(**record)
            self.lines[line.task] = line

    def __contains__(self, task: Task) -> bool:
        line = self.lines.get(task.name)
        return line is not None and line.digest == task.digest

    def results(self) -> dict[str, dict]:
        """The results by the names of their tasks."""
        return {name: line.result for name, line in self.lines.items()}

    def append(self, task: Task, seed: int, seconds: float, result: dict) -> None:
        """Store a result."""
        if not self.versions or self.versions[-1] != _versions():
            self._write({"versions": _versions()})
        line = {
            "task": task.name,
            "digest": task.digest,
            "seed": seed,
            "seconds": round(seconds, 2),
            "result": compact(result),
        }
        self._write(line)

    def _write(self, record: dict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # In one piece: what is killed in between leaves at most the last line unfinished.
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self._take(record)


def _versions() -> dict[str, str]:
    return {package: version(package) for package in _PACKAGES}
