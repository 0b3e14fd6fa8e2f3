"""The surface, the contour and the data of `plot_probability`."""

import re

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PathCollection

from pymc_pseudomarginal.plots import plot_probability

FIRST, SECOND = np.linspace(-1.0, 1.0, 7), np.array([10.0, 20.0, 25.0, 40.0])
A, B = (grid.ravel() for grid in np.meshgrid(FIRST, SECOND))
XNEW = np.column_stack([A, B])
P = 0.5 + 0.4 * A  # linear: its contour at 0.5 is the line a = 0
X = np.array([[0.5, 15.0], [-0.5, 30.0], [0.2, 20.0]])
Y = np.array([1, 0, 1])


def contour(ax):
    """Vertices of the contour at 0.5."""
    (found,) = (c for c in ax.collections if np.array_equal(getattr(c, "levels", []), [0.5]))
    return np.concatenate([path.vertices for path in found.get_paths()])


def points(ax):
    return {
        c.get_label(): c.get_offsets().tolist()
        for c in ax.collections
        if isinstance(c, PathCollection)
    }


@pytest.mark.parametrize("order", ["rows", "shuffled", "noisy"])
def test_the_contour_is_where_p_is_a_half(order):
    rng = np.random.default_rng(0)
    index = np.arange(len(P)) if order == "rows" else rng.permutation(len(P))
    noise = 1e-14 * rng.standard_normal(XNEW.shape) if order == "noisy" else 0.0
    ax = plot_probability(XNEW[index] + noise, P[index])
    vertices = contour(ax)
    np.testing.assert_allclose(vertices[:, 0], 0.0, atol=1e-8)
    assert (vertices[:, 1].min(), vertices[:, 1].max()) == pytest.approx((10.0, 40.0))


def test_a_surface_that_is_not_symmetric_is_not_transposed():
    ax = plot_probability(XNEW, (B - 5.0) / 40.0)  # a half at b = 25
    np.testing.assert_allclose(contour(ax)[:, 1], 25.0)


def test_draws_are_averaged():
    noise = np.random.default_rng(0).uniform(-0.05, 0.05, (2, 3, len(P)))
    noise -= noise.mean(axis=(0, 1))
    p = xr.DataArray(P + noise, dims=("chain", "draw", "point"))
    for given in (p, p.transpose("point", "draw", "chain"), p.to_numpy()):
        np.testing.assert_allclose(contour(plot_probability(XNEW, given))[:, 0], 0.0, atol=1e-8)
    one = xr.DataArray(P, dims="point")
    np.testing.assert_allclose(contour(plot_probability(XNEW, one))[:, 0], 0.0, atol=1e-8)


def test_data_are_drawn_by_class():
    assert points(plot_probability(XNEW, P, X=X, y=Y)) == {
        "y = 0": [[-0.5, 30.0]],
        "y = 1": [[0.5, 15.0], [0.2, 20.0]],
    }
    assert points(plot_probability(XNEW, P, X=X)) == {"data": X.tolist()}
    assert points(plot_probability(XNEW, P, X=X, y=Y == 1)).keys() == {"y = 0", "y = 1"}
    assert points(plot_probability(XNEW, P)) == {}


def test_labels_and_colour_bar():
    ax = plot_probability(XNEW, P, feature_names=("height (m)", "weight (kg)"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height (m)", "weight (kg)")
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == "Predictive probability p(y = 1)"
    assert bar.get_ylim() == (0.0, 1.0)


def test_no_contour_where_there_is_none():
    ax = plot_probability(XNEW, np.full(len(P), 0.3))  # matplotlib would warn
    assert not ax.lines
    assert not ax.figure.legends
    assert points(plot_probability(XNEW, np.ones(len(P)), X=X)) == {"data": X.tolist()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Xnew": XNEW[:-1], "p": P[:-1]}, "must be all points of a grid"),
        ({"Xnew": np.vstack([XNEW[:-1], XNEW[:1]])}, "each once"),
        ({"Xnew": np.vstack([XNEW, XNEW]), "p": np.tile(P, 2)}, "each once"),
        ({"Xnew": np.random.default_rng(0).normal(size=(28, 2))}, "found 28 and 28 different"),
        ({"Xnew": np.column_stack([A, 0.0 * A])}, "at least 2 by 2"),
        ({"Xnew": np.empty((0, 2)), "p": np.empty(0)}, "at least 2 by 2"),
        ({"Xnew": np.column_stack([A, B, B])}, "two columns"),
        ({"Xnew": A}, "two columns"),
        ({"Xnew": XNEW * np.nan}, "must be finite"),
        ({"p": P[:-1]}, "each of the 28 rows of Xnew; found 27"),
        ({"p": P + 1.0}, "between 0 and 1; found 1.1"),
        ({"p": P * np.nan}, "between 0 and 1; found nan"),
        ({"p": P[None]}, "found the shape (1, 28)"),
        ({"p": xr.DataArray(P[None], dims=("sample", "point"))}, "found the shape (1, 28)"),
        ({"X": X[:, :1]}, "X must have two columns"),
        ({"y": Y}, "without their coordinates"),
        ({"X": X, "y": Y[:-1]}, "found the shape (2,)"),
        ({"X": X, "y": 2 * Y}, "the values 0, 2"),
        ({"feature_names": ["a"]}, "two names; found 1"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        plot_probability(**({"Xnew": XNEW, "p": P} | arguments))
