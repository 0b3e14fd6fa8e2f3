"""The paper's experiments: each one states what it found, however much of it was run."""

import pickle
from pathlib import Path

import pytest
from distributed import LocalCluster

from examples.paper.__main__ import main
from examples.paper.experiments import EXPERIMENTS, SCALES, best_outcome, outcome, stored_as
from examples.paper.page import Section, page
from examples.paper.published import TABLE_1, TABLE_2, TABLE_3
from examples.paper.result_file import ResultFile

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_says_what_it_has_even_if_nothing(name):
    experiment = EXPERIMENTS[name]
    assert tuple(experiment.SCALES) == SCALES
    settings = experiment.SCALES["quick"]
    tasks = experiment.tasks(settings, {})
    names = [task.name for task in tasks]
    assert len(set(names)) == len(names) > 0
    assert pickle.loads(pickle.dumps([task.function for task in tasks]))
    assert experiment.claims(settings, {}) == []
    assert experiment.draw(settings, {}) == {}
    assert len(experiment.report(settings, {})) > 0


def test_the_numbers_of_the_paper_are_all_there():
    assert (len(TABLE_1), len(TABLE_2), len(TABLE_3)) == (64, 32, 24)
    assert (TABLE_1[50, 2, "isotropic", "PM LA (1)"].ess, TABLE_1[200, 10, "ard", "SURR"].ess) == (
        749,
        10,
    )
    assert TABLE_2[50, 10, "ard", "PM EP"].operations == 13.7
    assert TABLE_3[200, 10, "isotropic", "PM EP (64)"].ess == 737


def test_one_command_runs_an_experiment_and_writes_the_page(tmp_path, monkeypatch, capsys):
    """On worker processes of its own, and on a cluster whose address is given."""
    scales = EXPERIMENTS["figure-2"].SCALES
    monkeypatch.setitem(scales, "quick", scales["quick"] | {"repeats": 8, "nodes": 8})
    results = tmp_path / "results"
    main(["run", "figure-2", "--workers", "1", "--results", str(results)])
    found = outcome("figure-2", "quick", results)
    assert found.unfinished() == 0
    assert len(found.file.lines) == 4
    text = (results / "report.md").read_text()
    assert "8 estimates at each of 8 values of tau" in text
    assert (results / "images" / "paper" / "figure_2.png").stat().st_size > 10_000
    assert "4 results in" in capsys.readouterr().out
    return_to_three_results(found.file.path)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        main(["run", "figure-2", "--scheduler", address, "--results", str(results)])
    again = outcome("figure-2", "quick", results).file
    # The same seed gives the same result, wherever it runs.
    assert again.results() == found.file.results()


def return_to_three_results(path):
    """Take the last line away."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    assert len(ResultFile(path).lines) == 3


def test_a_page_of_nothing_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match=r"holds no results. Run some first: python -m examples"):
        main(["page", "--results", str(tmp_path)])


def shown():
    found = [best_outcome(name, DOCS / "paper") for name in EXPERIMENTS]
    assert all(found), "docs/paper lacks an experiment"
    return found


def test_the_page_of_the_docs_is_made_of_the_stored_results():
    sections = [Section.of(found) for found in shown()]
    assert (DOCS / "paper.md").read_text() == page(sections, "images/paper")
    pictures = {file for section in sections for file in section.figures}
    assert pictures == {path.name for path in (DOCS / "images" / "paper").iterdir()}


def test_the_stored_results_are_those_of_the_settings():
    """Results of settings that were changed later would stand under the new ones."""
    for found in shown():
        tasks = found.experiment.tasks(found.settings, found.file.results())
        digests = {task.name: task.digest for task in tasks}
        for line in found.file.lines.values():
            # Without its file the tasks of USPS are not known.
            if not line.task.startswith("usps"):
                assert digests[line.task] == line.digest, (found.name, line.task)


def test_results_are_stored_with_the_experiment_that_made_them():
    assert stored_as("table-2") == "table-1"
    assert stored_as("figure-7") == "figure-7"
