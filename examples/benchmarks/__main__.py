"""Measure the samplers, print markdown tables and keep the figures in a JSON file.

    python -m examples.benchmarks step memory          these two
    python -m examples.benchmarks --quick              all, shortened to some minutes
    python -m examples.benchmarks --report benchmarks.json
    python -m examples.benchmarks --page docs/speed.md

The last two measure nothing; --page beside names writes the page after them. All in full
takes hours, most of them those of NUTS.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.benchmarks.results import BENCHMARKS, Results, page, report, section


def measure(name: str, results: Results, options: argparse.Namespace) -> None:
    """Run one benchmark and store its result."""
    benchmark = BENCHMARKS[name]
    settings = dict(benchmark.QUICK if options.quick else benchmark.FULL)
    if name == "nuts":
        settings |= _settings_of_nuts(results, options)
    results.store(name, benchmark.measure(**settings), options.quick)


def _settings_of_nuts(results: Results, options: argparse.Namespace) -> dict:
    chosen = {"problems": options.problems, "samplers": options.samplers, "seeds": options.seeds}
    chosen = {key: value for key, value in chosen.items() if value is not None}
    # Only who chooses some of the runs wants to keep the others.
    known = results.known_rows("nuts", options.quick) if chosen else []
    return chosen | {
        "time_limit": options.time_limit,
        "known": known,
        "save": lambda result: results.store("nuts", result, options.quick),
    }


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    nuts = BENCHMARKS["nuts"]
    known = ", ".join(BENCHMARKS)
    parser.add_argument(
        "names", nargs="*", type=_name, metavar="NAMES", help=f"of {known}; none: all"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and few draws")
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks.json"), help="JSON file to add to"
    )
    parser.add_argument("--report", type=Path, help="print the tables of this JSON file")
    parser.add_argument("--page", type=Path, help="write the page of the documentation to this")
    chosen = parser.add_argument_group("nuts", "What to run; rows that are not run again stay.")
    chosen.add_argument("--problems", nargs="+", choices=nuts.PROBLEMS)
    chosen.add_argument("--samplers", nargs="+", choices=nuts.SAMPLERS)
    chosen.add_argument("--seeds", nargs="+", type=int, help="more than one gives quartiles")
    chosen.add_argument(
        "--time-limit", type=float, default=3600.0, help="seconds, compilation included"
    )
    options = parser.parse_args(arguments)
    if options.report and options.names:
        parser.error("--report measures nothing; leave the names out.")
    if options.report and not options.report.exists():
        parser.error(f"{options.report} does not exist.")
    return options


def _name(text: str) -> str:
    # Python 3.11 does not let `choices` stand beside a list that may be empty.
    if text not in BENCHMARKS:
        raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(BENCHMARKS)}")
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write what the options ask for."""
    options = parse(arguments)
    # As an exception, so that the processes at work are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = Results(options.report or options.output)
    names = options.names
    if not names and not options.report and not options.page:
        names = list(BENCHMARKS)
    if names:
        results.refuse_another_machine(names)
    for name in names:
        measure(name, results, options)
        print(section(name, results.sections[name]), end="\n\n", flush=True)
    if options.report:
        print(report(results.sections))
    if options.page:
        if "machine" not in results.sections:
            raise SystemExit(f"{results.path} holds no results to make a page of.")
        options.page.write_text(page(results.sections))


if __name__ == "__main__":
    main()
