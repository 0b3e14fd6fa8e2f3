"""The examples run as they are, shortened."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import pymc_pseudomarginal as pmpm

EXAMPLES = Path(__file__).parent.parent / "examples"

# Examples that leave one picture, and a word that they print.
PICTURES = {"cox_process": "Seedlings expected", "ordinal_regression": "Severe disease after"}


def load(name):
    """Import an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_example_has_a_test():
    tested = {
        "quickstart",
        "gallery",
        "interleaving_bias",
        "compare_predictions",
        *PICTURES,
    }
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested


def test_quickstart_leaves_its_pictures_and_draws(tmp_path, capsys):
    output = tmp_path / "results"
    load("quickstart").main(
        ["--draws", "60", "--tune", "60", "--chains", "2", "--output", str(output)]
    )
    assert {path.name for path in output.iterdir()} == {
        "capacity.png",
        "idata.nc",
        "map.png",
        "traces.png",
    }
    printed = capsys.readouterr().out
    assert "LatentGaussianModel" in printed
    assert "71 held-out patients: CapacityScores(" in printed
    assert " 0 numerical failures" in printed


@pytest.mark.parametrize("name", PICTURES)
def test_example_leaves_its_picture_and_draws(name, tmp_path, capsys):
    load(name).main(["--quick", "--output", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"idata.nc", f"{name}.png"}
    printed = capsys.readouterr().out
    assert PICTURES[name] in printed
    assert " 0 numerical failures" in printed


@pytest.mark.slow
def test_interleaving_bias_finds_the_naive_one_only():
    example = load("interleaving_bias")
    exact, naive = example.SAMPLERS[1], example.SAMPLERS[-1]
    truth, results = example.compare((exact, naive), chains=2, draws=3000)
    z = {name: (estimate - truth) / error for name, (estimate, error) in results.items()}
    assert np.abs(z[exact.name]).max() < 4
    assert np.abs(z[naive.name]).max() > 4
    assert exact.name in example.markdown_table(truth, results)


@pytest.mark.slow
def test_gallery_has_every_plot(tmp_path):
    load("gallery").main(["--quick", "--output", str(tmp_path)])
    assert {path.stem for path in tmp_path.iterdir()} == set(pmpm.plots.__all__)


@pytest.mark.slow
def test_comparison_of_predictions_prints_its_table(capsys):
    load("compare_predictions").main(["--n", "20", "--m", "3", "--draws", "200"])
    assert "| pmpm.predict |" in capsys.readouterr().out
