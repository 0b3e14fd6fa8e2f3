"""The JSON file of results, and the report and page that are made from it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

from examples.benchmarks import (
    against_nuts,
    choices,
    first_draw,
    machine,
    memory,
    overhead,
    processes,
    proposals,
    step_cost,
    trace_cost,
)

BENCHMARKS = {
    "step": step_cost,
    "overhead": overhead,
    "memory": memory,
    "start": first_draw,
    "nuts": against_nuts,
    "proposals": proposals,
    "choices": choices,
    "trace": trace_cost,
    "processes": processes,
}
"""Modules with TITLE, READING, FULL, QUICK, `measure` and `as_markdown`, by name."""

INTRODUCTION = (
    "How long a draw of `PseudoMarginalMH` takes and what it is worth. The model is everywhere the "
    "same: a GP probit model of labels that were simulated with inputs uniform in the unit cube, "
    "written with `pm.gp.Latent` as a user would. Milliseconds depend on the machine, so most "
    "figures are ratios of two times of the same run: to one Cholesky factorisation of the same "
    "size, measured in turn with the draws, or to NUTS. All of it ran with one BLAS thread per "
    "chain."
)


class Results:
    """The results in a file, a section for every benchmark.

    Parameters
    ----------
    path : pathlib.Path
        Need not exist yet.
    """

    def __init__(self, path: Path):
        self.path = path
        self.sections: dict[str, dict] = json.loads(path.read_text()) if path.exists() else {}

    def refuse_another_machine(self, names: Sequence[str]) -> None:
        """Stop if benchmarks other than these were run on another machine.

        Their figures would stand under a description that is not theirs.
        """
        others = [name for name in BENCHMARKS if name in self.sections and name not in names]
        known = self.sections.get("machine")
        if others and known != machine.machine():
            raise SystemExit(
                f"{self.path} holds {', '.join(others)} from another machine or other versions. "
                "Give another --output, or run all benchmarks again."
            )

    def store(self, name: str, result: dict, quick: bool) -> None:
        """Put a result in the place of the earlier one, and write the file."""
        self.sections["machine"] = machine.machine()
        self.sections[name] = {"quick": quick, **result}
        ordered = [key for key in ("machine", *BENCHMARKS) if key in self.sections]
        text = json.dumps({key: self.sections[key] for key in ordered}, indent=1)
        # By way of another file, so that an interruption leaves the old one or the new one.
        partial = self.path.with_name(f"{self.path.name}.partial")
        partial.write_text(text + "\n")
        partial.replace(self.path)

    def known_rows(self, name: str, quick: bool) -> list[dict]:
        """Rows of an earlier run that may stand beside new ones: of the same length."""
        section = self.sections.get(name, {})
        return section.get("rows", []) if section.get("quick") == quick else []


def section(name: str, result: dict) -> str:
    """Heading, how to read it, and the table of one benchmark.

    A ``remark`` beside its rows is shown too: where these are not of one run, it says so.
    """
    benchmark = BENCHMARKS[name]
    quick = " (shortened run)" if result["quick"] else ""
    reading = " ".join([benchmark.READING, *([result["remark"]] if "remark" in result else [])])
    return f"## {benchmark.TITLE}{quick}\n\n{_wrapped(reading)}\n\n{benchmark.as_markdown(result)}"


def report(results: dict[str, dict]) -> str:
    """All tables that there are, and the machine."""
    parts = [section(name, results[name]) for name in BENCHMARKS if name in results]
    return "\n\n".join([*parts, _wrapped(machine.as_markdown(results["machine"]))])


def page(results: dict[str, dict]) -> str:
    """The page of the documentation."""
    names = [name for name in BENCHMARKS if name in results]
    quick = " --quick" if names and all(results[name]["quick"] for name in names) else ""
    command = f"python -m examples.benchmarks {' '.join(names)}{quick} --output benchmarks.json"
    return (
        f"# Speed\n\n{_wrapped(INTRODUCTION)}\n\n"
        f"{_wrapped('Measured on: ' + machine.as_markdown(results['machine']))}\n\n"
        + "\n\n".join(section(name, results[name]) for name in names)
        + "\n\n## Measuring it again\n\nFrom the root of the repository:\n\n"
        f"```bash\n{command}\n"
        "python -m examples.benchmarks --report benchmarks.json --page docs/speed.md\n```\n"
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=120, break_long_words=False, break_on_hyphens=False)
