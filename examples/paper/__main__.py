"""Run the paper's experiments, and write what they found.

    python -m examples.paper list
    python -m examples.paper run table-1 figure-2 --scale quick
    python -m examples.paper run all --scale paper --scheduler tcp://192.0.2.1:8786
    python -m examples.paper page --results docs/paper --output docs/paper.md

`run` ends with the page of all that its folder holds; `page` writes it alone. Finished tasks are
stored at once: a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from distributed import Client, LocalCluster

from examples.paper.experiments import EXPERIMENTS, SCALES, best_outcome, outcome, stored_as
from examples.paper.page import Section, page, save_pictures
from examples.paper.runner import run


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name the experiments")
    runs = commands.add_parser("run", help="run experiments and write the page")
    runs.add_argument("names", nargs="+", choices=["all", *EXPERIMENTS], metavar="NAME")
    runs.add_argument("--scale", choices=SCALES, default="quick")
    runs.add_argument("--scheduler", help="address of a Dask scheduler; by default this machine")
    runs.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes on this machine"
    )
    pages = commands.add_parser("page", help="write the page")
    for command in (runs, pages):
        command.add_argument(
            "--results", type=Path, default=Path("paper_results"), help="folder of the results"
        )
        command.add_argument("--output", type=Path, help="page; by default report.md in there")
        command.add_argument("--images", type=Path, help="folder; by default images/paper there")
    return parser.parse_args(arguments)


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Client]:
    """A client of the scheduler asked for, or of one worker process per core of this machine."""
    if options.scheduler:
        with Client(options.scheduler) as client:
            yield client
        return
    with (
        # One thread each: chains on several BLAS threads fight for the cores.
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def run_all(options: argparse.Namespace) -> int:
    """Run the experiments named; the number of tasks that failed."""
    names = list(EXPERIMENTS) if "all" in options.names else options.names
    # Some show the results of others.
    names = list(dict.fromkeys(stored_as(name) for name in names))
    failures = []
    with connected(options) as client:
        for name in names:
            found = outcome(name, options.scale, options.results)
            failures += [
                (name, failure)
                for failure in run(name, found.experiment, found.settings, found.file, client)
            ]
            print(f"{name}: {len(found.file.lines)} results in {found.file.path}", flush=True)
    for name, failure in failures:
        print(f"{name}: {failure.task} failed. {failure.error}", file=sys.stderr)
    if failures:
        print(
            f"{len(failures)} tasks failed; the others are stored. The same command tries "
            "these again.",
            file=sys.stderr,
        )
    return len(failures)


def write_page(options: argparse.Namespace) -> None:
    """Write the page and its pictures."""
    found = [best_outcome(name, options.results) for name in EXPERIMENTS]
    found = [outcome for outcome in found if outcome is not None]
    if not found:
        raise SystemExit(
            f"{options.results} holds no results. Run some first: python -m examples.paper run all "
            f"--results {options.results}"
        )
    output = options.output or options.results / "report.md"
    images = options.images or output.parent / "images" / "paper"
    output.parent.mkdir(parents=True, exist_ok=True)
    sections = [Section.of(outcome) for outcome in found]
    save_pictures(sections, images)
    output.write_text(page(sections, os.path.relpath(images, output.parent)))
    print(f"Written: {output}, pictures in {images}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the options ask for."""
    options = parse(arguments)
    if options.command == "list":
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:10s} {experiment.TITLE}")
    elif options.command == "page":
        write_page(options)
    else:
        # As an exception, so that the workers are ended too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            failed = run_all(options)
        except KeyboardInterrupt:
            raise SystemExit(
                f"Interrupted. Finished tasks are in {options.results}; the same command goes on."
            ) from None
        write_page(options)
        if failed:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
