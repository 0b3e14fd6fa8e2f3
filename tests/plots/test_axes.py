"""What all plots have in common: the axes they take, draw on and return."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot
from matplotlib.axes import Axes

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal import plots

RNG = np.random.default_rng(0)
CHAINS = RNG.standard_normal((4, 100))
GRID = np.array([(a, b) for a in range(3) for b in range(4)], dtype=float)
SPREAD = xr.Dataset(
    {
        "log_estimate": (("n_importance", "repeat", "ls"), RNG.standard_normal((2, 20, 5))),
        "log_prior": ("ls", np.zeros(5)),
    },
    coords={"n_importance": [1, 64], "ls": np.linspace(0.1, 1.0, 5)},
)

# Plot -> its positional arguments.
CASES = {
    "plot_autocorrelation": ({"NUTS": CHAINS, "pseudo-marginal": CHAINS[::-1]},),
    "plot_capacity": (pmpm.capacity_scores([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9]),),
    "plot_estimator_spread": (SPREAD,),
    "plot_latent": (np.arange(4.0), {"f_mean": np.zeros(4), "f_var": np.ones(4)}),
    "plot_probability": (GRID, np.linspace(0.0, 1.0, 12)),
    "plot_running_rhat": ({"NUTS": CHAINS, "pseudo-marginal": CHAINS + 1.0},),
}
TWO_PANELS = {"plot_capacity"}


def test_every_plot_has_a_case():
    assert sorted(CASES) == plots.__all__
    for name in plots.__all__:
        assert getattr(plots, name).__doc__


@pytest.mark.parametrize("name", CASES)
def test_new_axes_are_made_labelled_and_returned(name):
    found = getattr(plots, name)(*CASES[name])
    assert len(pyplot.get_fignums()) == 1
    if name in TWO_PANELS:
        assert isinstance(found, np.ndarray)
        assert found.shape == (2,)
    else:
        assert isinstance(found, Axes)
    for ax in np.ravel(found):
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert ax.get_legend() or ax.figure.legends
        ax.figure.canvas.draw()  # what is wrong shows as a warning, which is an error


@pytest.mark.parametrize("name", CASES)
def test_given_axes_are_used_and_returned(name):
    figure, axes = pyplot.subplots(1, 2)
    given = axes if name in TWO_PANELS else axes[1]
    found = getattr(plots, name)(*CASES[name], ax=given)
    assert np.array_equal(np.ravel(found), np.ravel(given))
    assert pyplot.get_fignums() == [figure.number]
    assert all(ax.lines for ax in np.ravel(given))
    assert all(ax.get_legend() for ax in np.ravel(given))
    if name not in TWO_PANELS:
        assert not axes[0].lines
        assert not axes[0].get_legend()


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_number_of_axes_is_refused(name):
    axes = pyplot.subplots(1, 3)[1]
    with pytest.raises(ValueError, match=r"ax must (be one|hold two) matplotlib Axes"):
        getattr(plots, name)(*CASES[name], ax=axes)


@pytest.mark.parametrize("name", CASES)
def test_a_missing_matplotlib_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "pymc_pseudomarginal\[plots\]"'):
        getattr(plots, name)(*CASES[name])


@pytest.mark.parametrize("name", ["plot_capacity", "plot_running_rhat", "plot_autocorrelation"])
def test_nothing_to_plot_is_refused(name):
    with pytest.raises(ValueError, match="nothing to plot"):
        getattr(plots, name)({})


@pytest.mark.parametrize(
    "path", sorted(Path(plots.__file__).parent.glob("*.py")), ids=lambda p: p.name
)
def test_matplotlib_is_imported_only_when_something_is_drawn(path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "matplotlib" not in ast.unparse(node)
