"""The runner of the paper's experiments: stored at once, resumed, failures reported."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import toy_experiment
from distributed import Client, LocalCluster

from examples.paper.claims import Claim
from examples.paper.result_file import ResultFile
from examples.paper.runner import run
from examples.paper.tasks import Task, compact, seed_of

ROOT = Path(__file__).parent.parent


def start_toy(path):
    """A process that runs the toy experiment on workers of its own."""
    places = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "toy_experiment.py"), str(path)],
        env=os.environ | {"PYTHONPATH": places},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def stored(path):
    """What must not depend on interruptions: all but the time that was taken."""
    lines = ResultFile(path).lines
    return {name: (line.digest, line.seed, line.result) for name, line in lines.items()}


def finished_lines(path):
    return path.read_text().count('"task"') if path.exists() else 0


def test_a_killed_run_goes_on_to_the_same_results(tmp_path):
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert start_toy(whole).wait(timeout=120) == 0
    process = start_toy(killed)
    deadline = time.monotonic() + 120
    while finished_lines(killed) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    before = stored(killed)
    # Killed half-way, or the test would show nothing.
    assert 4 <= len(before) < 1 + toy_experiment.SETTINGS["tasks"]
    assert start_toy(killed).wait(timeout=120) == 0
    after = stored(killed)
    assert after == stored(whole)
    assert len(after) == 1 + toy_experiment.SETTINGS["tasks"]
    # What was stored before was not run again.
    assert finished_lines(killed) == len(after)


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_failed_task_is_reported_and_loses_no_other(tmp_path, client, capsys):
    settings = {"tasks": 3, "pause": 0.0, "failing": [1]}
    path = tmp_path / "toy.jsonl"
    (failure,) = run("toy", toy_experiment, settings, ResultFile(path), client)
    assert failure.task == "number 1"
    assert "ValueError: number 1 cannot be drawn" in failure.error
    assert "number 1 FAILED" in capsys.readouterr().err
    assert set(stored(path)) == {"pilot", "number 0", "number 2"}
    # It is tried again, and is not held against the others.
    (again,) = run("toy", toy_experiment, settings, ResultFile(path), client)
    assert again.task == failure.task
    assert finished_lines(path) == 3


def test_other_settings_run_the_tasks_again(tmp_path, client):
    settings = {"tasks": 2, "pause": 0.0, "failing": []}
    path = tmp_path / "toy.jsonl"
    assert run("toy", toy_experiment, settings, ResultFile(path), client) == []
    first = stored(path)
    assert run("toy", toy_experiment, settings, ResultFile(path), client) == []
    assert stored(path) == first
    assert finished_lines(path) == 3
    assert run("toy", toy_experiment, settings | {"pause": 0.01}, ResultFile(path), client) == []
    assert finished_lines(path) == 5
    assert stored(path)["pilot"] == first["pilot"]


def test_an_unfinished_line_is_dropped_and_a_broken_one_named(tmp_path):
    path = tmp_path / "toy.jsonl"
    task = Task("a", toy_experiment.pilot, {})
    ResultFile(path).append(task, 1, 0.5, {"x": 1.0})
    with path.open("a") as file:
        file.write('{"task": "b", "dig')
    assert set(ResultFile(path).lines) == {"a"}
    ResultFile(path).append(Task("b", toy_experiment.pilot, {}), 2, 0.5, {"x": 2.0})
    assert ResultFile(path).results() == {"a": {"x": 1.0}, "b": {"x": 2.0}}
    path.write_text('{"task": "b", "dig\n' + path.read_text())
    with pytest.raises(SystemExit, match=r"Line 1 of .* is no result"):
        ResultFile(path)


def test_seeds_differ_between_tasks_and_stay_between_runs():
    assert seed_of("table-1", "chain 1") == 60428031
    assert len({seed_of(name, task) for name in "ab" for task in range(50)}) == 100


def test_results_are_kept_with_six_digits():
    kept = compact({"x": 1 / 3, "nan": float("nan"), "flags": (True, 3), "array": [1e-9 / 3]})
    assert json.dumps(kept) == (
        '{"x": 0.333333, "nan": null, "flags": [true, 3], "array": [3.33333e-10]}'
    )


@pytest.mark.parametrize(
    ("estimate", "verdict"), [(0.3, "holds"), (0.1, "undecided"), (-0.3, "does not hold")]
)
def test_a_claim_is_decided_by_its_error(estimate, verdict):
    assert Claim("a > b", "a - b", estimate, 0.1).verdict == verdict
