"""The benchmarks run, and the page of the documentation is what they made."""

import json
from pathlib import Path

import pytest

from examples.benchmarks import (
    against_nuts,
    choices,
    memory,
    overhead,
    processes,
    proposals,
    step_cost,
    trace_cost,
)
from examples.benchmarks.__main__ import main
from examples.benchmarks.results import BENCHMARKS, Results, page

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_is_made_of_the_stored_results():
    results = json.loads((DOCS / "speed.json").read_text())
    assert (DOCS / "speed.md").read_text() == page(results)
    assert set(BENCHMARKS) <= set(results)


def test_the_table_of_the_readme_is_that_of_the_page():
    readme = (DOCS.parent / "README.md").read_text().splitlines()
    rows = [line for line in readme if line.startswith("| n = ")]
    assert len(rows) >= 10
    assert set(rows) <= set((DOCS / "speed.md").read_text().splitlines())


def test_the_cost_of_a_draw():
    result = step_cost.measure(repetitions={8: 3, 16: 3})
    assert len(result["rows"]) == 2 * len(step_cost.SAMPLERS)
    assert all(row["ratio"]["median"] > 0 for row in result["rows"])
    assert "| ep | 16 | 16 |" in step_cost.as_markdown(result)


def test_the_parts_of_a_draw_add_up():
    result = overhead.measure(draws={12: 5})
    (size,) = result["sizes"]
    assert sum(part["percent"] for part in size["parts"]) == pytest.approx(100.0)
    names = {part["part"] for part in size["parts"]}
    assert {"Gaussian approximation", "building K", "elliptical slice", "bookkeeping"} <= names
    assert "building K" in overhead.as_markdown(result)


def test_samplers_race_for_the_same_time():
    result = choices.measure(0.2, 30, [1], problems=["probit, n = 50, d = 2"])
    assert len(result["rows"]) == 1 + len(choices.FIXED)
    assert all(row["seconds"] >= 0.2 for row in result["rows"])
    assert "| probit, n = 50, d = 2 |" in choices.as_markdown(result)
    result = proposals.measure({"n50": 0.2}, 30, [1])
    assert "| n = 50, d = 2 | 2 | PseudoMarginalHMC |" in proposals.as_markdown(result)


def test_results_are_merged_and_reported(tmp_path, capsys):
    path = tmp_path / "results.json"
    row = {"problem": "n50", "draws": 10, "tune": 5, "seed": 1, "seconds": 2.0}
    row |= {"compilation": 1.0, "ess": 30.0, "rhat": 1.01}
    rows = [row | {"sampler": "nutpie"}, row | {"sampler": "mh", "ess": 90.0}]
    results = Results(path)
    results.store("nuts", {"rows": rows}, quick=False)
    results.store("trace", {"rows": []}, quick=True)
    main(["--report", str(path), "--page", str(tmp_path / "page.md")])
    printed = capsys.readouterr().out
    assert "| n = 50, d = 2 | PseudoMarginalMH, f stored | 20 |" in printed
    assert "3.00" in printed  # times as many effective draws per second as nutpie
    assert "(shortened run)" in (tmp_path / "page.md").read_text()
    assert Results(path).known_rows("nuts", quick=False) == rows


@pytest.mark.slow
def test_every_other_benchmark_runs_in_processes_of_its_own():
    assert memory.measure(n=60, tune=2, draws=2, repetitions=1)["rows"]
    assert len(processes.measure(draws={20: 40}, repetitions=1)["rows"]) == 2
    assert len(trace_cost.measure(draws={20: 10})["rows"]) == 2
    result = against_nuts.measure(["n50"], 20, {"n50": 40}, 20, samplers=["walk", "hmc"])
    assert all(row["ess"] > 0 for row in result["rows"])
