"""What `plot_running_rhat` and `plot_autocorrelation` draw."""

import arviz as az
import numpy as np
import pytest
import xarray as xr

from pymc_pseudomarginal.diagnostics import autocorrelation, running_rhat
from pymc_pseudomarginal.plots import plot_autocorrelation, plot_running_rhat

RNG = np.random.default_rng(0)
SLOW = RNG.standard_normal((4, 300)).cumsum(axis=1) / 10.0
QUICK = RNG.standard_normal((3, 400))


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_rhat_is_solid_and_its_bound_dashed():
    ax = plot_running_rhat({"slow": SLOW, "quick": QUICK}, n_points=20, confidence=0.9)
    one, *lines = ax.lines
    assert set(one.get_ydata()) == {1.0}
    for sampler, (solid, dashed) in zip((SLOW, QUICK), (lines[:2], lines[2:]), strict=True):
        expected = running_rhat(sampler, n_points=20, confidence=0.9)
        for line, style, name in ((solid, "-", "rhat"), (dashed, "--", "upper")):
            assert line.get_linestyle() == style
            np.testing.assert_array_equal(line.get_xdata(), expected["draw"])
            np.testing.assert_array_equal(line.get_ydata(), expected[name])
        assert solid.get_color() == dashed.get_color()
    assert lines[0].get_color() != lines[2].get_color()
    assert texts(ax) == [
        r"$\hat R$, slow",
        "95 % bound, slow",
        r"$\hat R$, quick",
        "95 % bound, quick",
    ]


def test_one_sampler_needs_no_name():
    assert texts(plot_running_rhat(QUICK)) == [r"$\hat R$", "97.5 % bound"]
    assert texts(plot_running_rhat(xr.DataArray(QUICK, dims=("chain", "draw"))))


def test_the_scale_is_logarithmic_only_if_needed():
    assert plot_running_rhat(QUICK).get_yscale() == "linear"
    ax = plot_running_rhat(QUICK + 5.0 * np.arange(3)[:, None])
    assert ax.get_yscale() == "log"
    ax.figure.canvas.draw()
    assert {"1", "2", "5"} <= {text.get_text() for text in ax.get_yticklabels()}


def test_chains_that_never_moved_leave_an_empty_line():
    ax = plot_running_rhat(np.zeros((2, 50)))
    assert np.isnan(ax.lines[1].get_ydata()).all()
    ax.figure.canvas.draw()


def test_autocorrelation_is_the_mean_over_chains_with_its_ess():
    swapped = xr.DataArray(SLOW.T, dims=("draw", "chain"))
    ax = plot_autocorrelation({"slow": swapped, "quick": QUICK}, max_lag=12)
    zero, *lines = ax.lines
    assert set(zero.get_ydata()) == {0.0}
    for line, sampler in zip(lines, (SLOW, QUICK), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(13))
        np.testing.assert_allclose(line.get_ydata(), autocorrelation(sampler, 12).mean("chain"))
    shares = [float(az.ess(sampler)) / sampler.size for sampler in (SLOW, QUICK)]
    assert texts(ax) == [
        f"slow: ESS per draw {shares[0]:.2g}",
        f"quick: ESS per draw {shares[1]:.2g}",
    ]


def test_one_sampler_and_short_chains():
    ax = plot_autocorrelation(QUICK[:, :30])
    assert len(ax.lines[1].get_xdata()) == 30
    assert texts(ax)[0].startswith("ESS per draw")


def test_unusable_chains_are_refused():
    with pytest.raises(ValueError, match="Chain 0 never moves"):
        plot_autocorrelation({"stuck": np.ones((2, 50))})
    with pytest.raises(ValueError, match="at least 4 are needed"):
        plot_autocorrelation(QUICK[:, :3])
    with pytest.raises(ValueError, match="Found 1 chain"):
        plot_running_rhat({"single": QUICK[:1]})
