"""Running R-hat and autocorrelation against slow references written from their definitions."""

import re
from math import nan, sqrt

import numpy as np
import pytest
import xarray as xr
from scipy.special import fdtri

from pymc_pseudomarginal.diagnostics import autocorrelation, running_rhat


def mean(values):
    return sum(values) / len(values)


def covariance(a, b):
    centre_a, centre_b = mean(a), mean(b)
    return sum((x - centre_a) * (y - centre_b) for x, y in zip(a, b, strict=True)) / (len(a) - 1)


def reference(chains, probability=0.975):
    """(R-hat, upper bound) of lists of draws, term by term as in the references."""
    M, N = len(chains), len(chains[0])
    x = [mean(chain) for chain in chains]
    s2 = [covariance(chain, chain) for chain in chains]
    W, B = mean(s2), N * covariance(x, x)
    if W == 0:
        return nan, nan
    V = (N - 1) * W / N + (1 + 1 / M) * B / N
    var_W = covariance(s2, s2) / M
    var_B = 2 * B * B / (M - 1)
    squares = [a * a for a in x]
    cov_WB = N / M * (covariance(s2, squares) - 2 * mean(x) * covariance(s2, x))
    c = 1 + 1 / M
    var_V = ((N - 1) ** 2 * var_W + c**2 * var_B + 2 * (N - 1) * c * cov_WB) / N**2
    factor = 1.0
    if var_V > 0:
        df = 2 * V * V / var_V
        factor = (df + 3) / (df + 1)
    quantile = fdtri(M - 1, 2 * W * W / var_W, probability)
    fixed, random = (N - 1) / N, c / N * B / W
    return sqrt(factor * (fixed + random)), sqrt(factor * (fixed + quantile * random))


def chains(seed, *, n_chains=4, draws=200, offset=0.0, correlation=0.5):
    """Autoregressive chains around different places, with different spreads."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_chains, draws))
    for t in range(1, draws):
        x[:, t] = correlation * x[:, t - 1] + sqrt(1 - correlation**2) * x[:, t]
    return (1.0 + 0.1 * np.arange(n_chains))[:, None] * x + offset * np.arange(n_chains)[:, None]


@pytest.mark.parametrize("n_chains", [2, 3, 10])
@pytest.mark.parametrize("offset", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_every_prefix_equals_the_reference(n_chains, offset, confidence):
    x = chains(n_chains, n_chains=n_chains, draws=60, offset=offset)
    found = running_rhat(x, n_points=12, confidence=confidence)
    assert found["draw"].values.tolist() == list(range(10, 61, 5))
    for i, length in enumerate(found["draw"].values):
        expected = reference(x[:, :length].tolist(), (1 + confidence) / 2)
        result = float(found["rhat"][i]), float(found["upper"][i])
        assert result == pytest.approx(expected, rel=1e-9)


def test_a_variance_estimate_that_is_not_positive_is_left_out():
    # One chain far away that varies less than the others: the covariance is negative.
    x = np.random.default_rng(1).standard_normal((12, 100))
    x[0] = 0.05 * x[0] + 2.0
    variances, squares = x.var(axis=1, ddof=1), (x.mean(axis=1) - x.mean()) ** 2
    assert np.cov(variances, squares)[0, 1] < 0.0
    found = running_rhat(x, n_points=1)
    W, B = variances.mean(), 100 * x.mean(axis=1).var(ddof=1)
    V = 0.99 * W + 13 / 12 * B / 100
    assert float(found["rhat"][0]) == pytest.approx(np.sqrt(V / W), rel=1e-12)
    assert float(found["upper"][0]) > float(found["rhat"][0])


def test_prefixes_are_those_of_longer_chains():
    x = chains(0, draws=400)
    whole = running_rhat(x, n_points=40)
    part = running_rhat(x[:, :200], n_points=20)
    xr.testing.assert_allclose(whole.sel(draw=part["draw"]), part)


def test_shift_scale_and_order_of_chains_change_nothing():
    x = chains(3, offset=0.2)
    found = running_rhat(x)
    for other in (x + 1e4, -7.5 * x, x[[2, 0, 3, 1]]):
        xr.testing.assert_allclose(running_rhat(other), found, rtol=1e-8)


def test_independent_draws_give_one_and_displaced_chains_do_not():
    same = running_rhat(chains(0, draws=2000, correlation=0.0))
    assert (same["upper"] >= same["rhat"]).all()
    assert float(same["rhat"][-1]) == pytest.approx(1.0, abs=0.01)
    assert float(same["upper"][-1]) < 1.02
    assert float(running_rhat(chains(0, offset=10.0))["rhat"][-1]) > 5.0


def test_chains_that_have_not_moved_give_nan_until_they_do():
    x = chains(0, draws=100)
    x[:, :40] = np.arange(4)[:, None]
    found = running_rhat(x, n_points=10)
    assert np.isnan(found.sel(draw=slice(None, 40))["upper"]).all()
    assert np.isfinite(found.sel(draw=slice(41, None))["rhat"]).all()


def test_chains_of_equal_variance_have_a_bound():
    x = np.tile(np.random.default_rng(0).standard_normal(50), (3, 1))
    found = running_rhat(x, n_points=1)
    assert float(found["upper"][0]) == float(found["rhat"][0]) == pytest.approx(np.sqrt(0.98))


def test_dims_are_taken_by_name():
    x = chains(0)
    swapped = xr.DataArray(x.T, dims=("draw", "chain"))
    xr.testing.assert_identical(running_rhat(swapped), running_rhat(x))
    xr.testing.assert_identical(autocorrelation(swapped), autocorrelation(x))


def test_autocorrelation_equals_its_definition():
    x = chains(5, n_chains=2, draws=50)
    found = autocorrelation(x, max_lag=7)
    assert found.dims == ("chain", "lag")
    assert found["lag"].values.tolist() == list(range(8))
    for chain, values in zip(x, found.values, strict=True):
        d = chain - chain.mean()
        expected = [(d[: 50 - lag] * d[lag:]).sum() / (d * d).sum() for lag in range(8)]
        np.testing.assert_allclose(values, expected, atol=1e-12)
    assert autocorrelation(x, max_lag=1000).sizes["lag"] == 50


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(50), "shape (chain, draw); found (50,)"),
        (np.zeros((1, 50)), "Found 1 chain, but at least 2"),
        (np.zeros((50, 4)), "Found 4 draws per chain, but at least 10"),
        (np.array([[np.nan] + [0.0] * 19] * 2), "2 of 40 samples are not finite"),
        (xr.DataArray(np.zeros((2, 50, 3)), dims=("chain", "draw", "k")), "Select one scalar"),
    ],
)
def test_unusable_samples_are_refused(samples, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        running_rhat(samples)


def test_other_bad_arguments_are_refused():
    x = chains(0)
    with pytest.raises(ValueError, match="confidence must lie strictly between"):
        running_rhat(x, confidence=95)
    with pytest.raises(ValueError, match="n_points must be a whole number"):
        running_rhat(x, n_points=0)
    x[1] = 2.0
    with pytest.raises(ValueError, match="Chain 1 never moves"):
        autocorrelation(x)
