"""Curves of `plot_estimator_spread`, from estimates whose spread is known."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import gamma

from pymc_pseudomarginal.plots import plot_estimator_spread

VALUES = np.linspace(0.2, 3.0, 15)
SIZES = [1, 64]
RNG = np.random.default_rng(0)
LOG_PRIOR = gamma(2.0).logpdf(VALUES)


def spread(values=VALUES, shift=-500.0):
    """Lognormal estimates of a likelihood around one, of sd 1 and 1/8; exp(shift) underflows."""
    noise = np.stack([RNG.standard_normal((200, len(values))) / np.sqrt(N) for N in SIZES])
    log_likelihood = shift - (values - 1.0) ** 2
    return xr.Dataset(
        {
            "log_estimate": (("n_importance", "repeat", "ls"), log_likelihood + noise),
            "log_approximation": ("ls", log_likelihood),
            "log_prior": ("ls", gamma(2.0).logpdf(values)),
        },
        coords={"n_importance": SIZES, "ls": values},
    )


def lines(ax):
    """(mean, lower, upper) per N, and the prior."""
    found = [line.get_ydata() for line in ax.lines]
    return {1: found[:3], 64: found[3:6]}, found[6]


def test_curves_are_mean_and_quantiles_of_the_normalised_density():
    data = spread(shift=0.0)
    curves, prior = lines(plot_estimator_spread(data))
    density = np.exp(data["log_estimate"] + data["log_prior"])
    constant = np.trapezoid(density.sel(n_importance=64).mean("repeat"), VALUES)
    for N, (mean, low, high) in curves.items():
        expected = density.sel(n_importance=N) / constant
        np.testing.assert_allclose(mean, expected.mean("repeat"))
        np.testing.assert_allclose(low, expected.quantile(0.025, "repeat"))
        np.testing.assert_allclose(high, expected.quantile(0.975, "repeat"))
    np.testing.assert_allclose(prior, np.exp(LOG_PRIOR))


def test_the_mean_of_the_largest_n_integrates_to_one_however_small_the_likelihood():
    for shift in (-5000.0, 0.0, 5000.0):
        curves, _ = lines(plot_estimator_spread(spread(shift=shift)))
        assert np.trapezoid(curves[64][0], VALUES) == pytest.approx(1.0)


def test_quantiles_are_dashed_and_share_the_colour_of_their_mean():
    ax = plot_estimator_spread(spread())
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--", "--"] * 2 + ["-."]
    colours = [line.get_color() for line in ax.lines]
    assert [len(set(colours[:3])), len(set(colours[3:6])), len(set(colours))] == [1, 1, 3]
    assert ax.get_xlabel() == "ls"
    assert ax.get_ylim()[0] == 0.0
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "mean, N = 1",
        "mean, N = 64",
        "prior density",
        "2.5 % and 97.5 % quantiles, N = 1",
        "2.5 % and 97.5 % quantiles, N = 64",
    ]


def test_values_are_sorted_and_failures_left_out():
    data = spread(values=VALUES[::-1]).copy(deep=True)
    data["log_estimate"][:, :, 4] = np.nan
    data["log_approximation"][4] = np.nan
    ax = plot_estimator_spread(data)
    expected = np.delete(VALUES, len(VALUES) - 1 - 4)
    for line in ax.lines:
        np.testing.assert_array_equal(line.get_xdata(), expected)
        assert np.isfinite(line.get_ydata()).all()


def test_too_few_values_and_other_datasets_are_refused():
    with pytest.raises(ValueError, match="at least two values of ls with estimates; found 1"):
        plot_estimator_spread(spread(values=VALUES[:1]))
    with pytest.raises(ValueError, match=r"missing: \['log_prior'\]"):
        plot_estimator_spread(spread().drop_vars("log_prior"))
