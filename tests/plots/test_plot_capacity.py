"""Curves and scores that `plot_capacity` draws."""

import numpy as np
import pytest

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.plots import plot_capacity

GOOD = pmpm.capacity_scores([0, 0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8, 0.9])
POOR = pmpm.capacity_scores([0, 1, 0, 1, 1], [0.1, 0.3, 0.6, 0.8, 0.9])


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize(("panel", "kind"), [(0, "accuracy"), (1, "auc")])
def test_lines_are_the_curves_where_they_are_defined(panel, kind):
    ax = plot_capacity({"good": GOOD, "poor": POOR})[panel]
    for line, scores in zip(ax.lines, (GOOD, POOR), strict=True):
        expected = scores.curves.where(scores.curves[kind].notnull(), drop=True)
        np.testing.assert_array_equal(line.get_xdata(), expected["abstention"])
        np.testing.assert_array_equal(line.get_ydata(), expected[kind])
        assert np.isfinite(line.get_ydata()).all()
    assert ax.lines[0].get_color() != ax.lines[1].get_color()


def test_scores_are_in_the_legends():
    accuracy, auc = plot_capacity({"good": GOOD, "poor": POOR})
    assert texts(accuracy) == [f"good: {GOOD.accuracy:.3f}", f"poor: {POOR.accuracy:.3f}"]
    assert texts(auc) == [f"good: {GOOD.auc:.3f}", f"poor: {POOR.auc:.3f}"]
    assert accuracy.get_legend().get_title().get_text() == "capacity accuracy"
    single = plot_capacity(POOR)
    assert texts(single[0]) == [f"capacity accuracy: {POOR.accuracy:.3f}"]
    assert texts(single[1]) == [f"capacity AUC: {POOR.auc:.3f}"]


def test_the_legend_covers_no_curve():
    for ax in plot_capacity({"good": GOOD, "poor": POOR}):
        ax.figure.canvas.draw()
        box = ax.get_legend().get_window_extent()
        for line in ax.lines:
            assert not box.count_contains(line.get_transform().transform(line.get_xydata()))


def test_anything_but_scores_is_refused():
    with pytest.raises(ValueError, match=r"scores\['a'\] must be a CapacityScores.*found float"):
        plot_capacity({"a": 0.9})
    with pytest.raises(ValueError, match="scores must be a CapacityScores"):
        plot_capacity(0.9)
