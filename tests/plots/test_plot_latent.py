"""Mean, band and ticks of `plot_latent`, and quantiles of mixtures of normals."""

import re

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from scipy.stats import norm

from pymc_pseudomarginal.plots import plot_latent
from pymc_pseudomarginal.plots.latent import mixture_quantile

RNG = np.random.default_rng(3)
X = RNG.permutation(np.linspace(0.0, 5.0, 9))
MEAN = RNG.gamma(1.0, 2.0, (2, 3, 9))  # skewed
VARIANCE = RNG.uniform(0.01, 2.0, (2, 3, 9))
PREDICTIONS = xr.Dataset(
    {"f_mean": (("chain", "draw", "point"), MEAN), "f_var": (("chain", "draw", "point"), VARIANCE)}
)


def band(ax):
    """(low, high) ends of the band over its different x, in order."""
    (vertices,) = (path.vertices for path in ax.collections[0].get_paths())
    x = np.unique(vertices[:, 0])
    heights = [vertices[vertices[:, 0] == value, 1] for value in x]
    return x, np.array([h.min() for h in heights]), np.array([h.max() for h in heights])


def ticks(ax):
    return {
        line.get_label(): (sorted(line.get_xdata().tolist()), line.get_ydata()[0])
        for line in ax.lines
        if line.get_marker() == "|"
    }


@pytest.mark.parametrize("q", [0.001, 0.025, 0.4, 0.9, 0.975])
def test_quantiles_solve_the_mixture(q):
    mean, sd = MEAN.reshape(6, 9), np.sqrt(VARIANCE).reshape(6, 9)
    found = mixture_quantile(mean, sd, q)
    for j in range(9):
        expected = brentq(lambda t, j=j: norm.cdf(t, mean[:, j], sd[:, j]).mean() - q, -20, 30)
        assert found[j] == pytest.approx(expected, abs=1e-9)


def test_quantiles_of_one_normal_and_of_points():
    one = mixture_quantile(np.array([[1.0]]), np.array([[2.0]]), 0.975)
    assert one == pytest.approx(norm(1.0, 2.0).ppf(0.975), abs=1e-12)
    atoms = mixture_quantile(np.arange(5.0)[:, None], np.zeros((5, 1)), 0.5)
    assert atoms == pytest.approx(2.0)
    assert mixture_quantile(np.ones((3, 1)), np.zeros((3, 1)), 0.1) == pytest.approx(1.0)


def test_band_and_mean_are_drawn_in_order_of_x():
    ax = plot_latent(X, PREDICTIONS, level=0.8)
    order = np.argsort(X)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), X[order])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), MEAN.mean(axis=(0, 1))[order])
    x, low, high = band(ax)
    np.testing.assert_array_equal(x, X[order])
    mean, sd = MEAN.reshape(6, 9)[:, order], np.sqrt(VARIANCE).reshape(6, 9)[:, order]
    np.testing.assert_allclose(norm.cdf(low, mean, sd).mean(axis=0), 0.1, atol=1e-9)
    np.testing.assert_allclose(norm.cdf(high, mean, sd).mean(axis=0), 0.9, atol=1e-9)
    assert "80 % band" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_dims_by_name_and_moments_without_draws():
    expected = band(plot_latent(X, PREDICTIONS))
    for x, given in [
        (X[:, None], PREDICTIONS.transpose("point", "draw", "chain")),
        (X, {"f_mean": MEAN, "f_var": VARIANCE}),
    ]:
        np.testing.assert_allclose(band(plot_latent(x, given)), expected)
    single = PREDICTIONS.isel(chain=0, draw=0)
    _, low, high = band(plot_latent(X, single))
    half = norm.ppf(0.975) * np.sqrt(VARIANCE[0, 0])
    np.testing.assert_allclose(high - low, 2 * half[np.argsort(X)])


def test_ticks_are_at_the_side_of_their_label():
    data = np.array([1.0, 2.0, 3.0])
    found = ticks(plot_latent(X, PREDICTIONS, X=data, y=[0, 1, 0]))
    assert found == {"y = 1": ([2.0], 0.975), "y = 0": ([1.0, 3.0], 0.025)}
    at_the_bottom = {"data": ([1.0, 2.0, 3.0], 0.025)}
    assert ticks(plot_latent(X, PREDICTIONS, X=data, y=[0.3, 1.5, 7.0])) == at_the_bottom
    assert ticks(plot_latent(X, PREDICTIONS, X=data[:, None])) == at_the_bottom
    assert ticks(plot_latent(X, PREDICTIONS)) == {}


def test_ticks_do_not_change_the_range_of_f():
    high = PREDICTIONS.assign(f_mean=PREDICTIONS["f_mean"] + 1e3)
    low_end, _ = plot_latent(X, high, X=[1.0, 2.0], y=[0, 1]).get_ylim()
    assert low_end > 900.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.zeros((9, 2))}, "x must have the shape (m,) or (m, 1); found (9, 2)"),
        ({"x": X[:-1]}, "each of the 8 points x"),
        ({"predictions": PREDICTIONS.drop_vars("f_var")}, "missing: f_var"),
        ({"predictions": PREDICTIONS.assign(f_var=-PREDICTIONS["f_var"])}, "not negative"),
        ({"predictions": PREDICTIONS.assign(f_mean=np.nan * PREDICTIONS["f_mean"])}, "finite"),
        ({"predictions": PREDICTIONS.assign(f_var=PREDICTIONS["f_var"][0, 0])}, "6 and 1 draws"),
        ({"predictions": {"f_mean": MEAN[0], "f_var": VARIANCE[0]}}, "(chain, draw, point)"),
        ({"level": 95}, "level must lie strictly between 0 and 1; found 95"),
        ({"y": [0, 1]}, "give X, too"),
        ({"X": [1.0, 2.0], "y": [0, 1, 1]}, "each of the 2 X; found (3,)"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        plot_latent(**({"x": X, "predictions": PREDICTIONS} | arguments))
