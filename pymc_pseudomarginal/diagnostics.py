"""How chains converge and mix: the running R-hat and the autocorrelation."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import f as f_distribution

from pymc_pseudomarginal.arguments import check_at_least, check_probability

# ArviZ 1 moved the function into a package of its own.
try:
    from arviz import autocorr
except ImportError:
    from arviz_stats.base import array_stats

    autocorr = array_stats.autocorr

# On fewer draws the variance within a chain says next to nothing.
_SHORTEST = 10

# SciPy has no F distribution with infinitely many degrees of freedom; this one equals it.
_MANY = 1e10
_ROUNDING = 16.0 * np.finfo(float).eps


def running_rhat(
    samples: np.ndarray | xr.DataArray, *, n_points: int = 100, confidence: float = 0.95
) -> xr.Dataset:
    """Potential scale reduction factor of growing prefixes of the chains.

    Parameters
    ----------
    samples : array, shape (chain, draw), or DataArray with these dims
        Draws of one scalar from at least two chains.
    n_points : int
        At most this many prefixes, evenly spaced and ending with the whole chains.
    confidence : float
        Content of the two-sided interval whose upper end is returned: 0.95 gives the
        97.5 % quantile.

    Returns
    -------
    xarray.Dataset
        ``rhat`` and ``upper`` over the coordinate ``draw``, the length of the prefix.
        Both are NaN where no chain has moved yet.

    Notes
    -----
    With M chains of N draws, W the mean of their variances and B / N the variance of
    their means, the total variance is V = (N-1)/N W + (1+1/M) B/N, and

        rhat² = (df+3)/(df+1) V / W,   df = 2 V² / var(V).

    The upper end multiplies the part of V / W that B contributes by a quantile of the
    F distribution with M-1 and 2 W² / var(W) degrees of freedom. var(V) is a moment
    estimate; where it is not positive, df is taken as infinite.

    In contrast to ``arviz.rhat``, chains are neither split nor ranked: this is the
    diagnostic of the references, for comparison with published figures.

    References
    ----------
    Gelman & Rubin (1992), Inference from iterative simulation using multiple sequences;
    Brooks & Gelman (1998), General methods for monitoring convergence of iterative
    simulations.
    """
    chains = as_chains(samples, fewest_chains=2, fewest_draws=_SHORTEST)
    n_points = check_at_least("n_points", n_points, 1)
    quantile = 0.5 * (1.0 + check_probability("confidence", confidence))
    draws = chains.shape[1]
    lengths = np.unique(np.arange(1, n_points + 1) * draws // n_points)
    lengths = lengths[lengths >= _SHORTEST]
    # The factor does not depend on where zero is, but rounding does.
    chains = chains - chains.mean()
    factors = np.array([_rhat(chains[:, :length], quantile) for length in lengths])
    return xr.Dataset(
        {"rhat": ("draw", factors[:, 0]), "upper": ("draw", factors[:, 1])},
        coords={"draw": lengths},
        attrs={"quantile": quantile},
    )


def autocorrelation(samples: np.ndarray | xr.DataArray, max_lag: int = 100) -> xr.DataArray:
    """Autocorrelation of every chain.

    Parameters
    ----------
    samples : array, shape (chain, draw), or DataArray with these dims
        Draws of one scalar.
    max_lag : int
        The largest lag; chains that are not longer give all that they have.

    Returns
    -------
    xarray.DataArray
        Over the dims ``chain`` and ``lag``, from lag zero on.
    """
    chains = as_chains(samples)
    max_lag = check_at_least("max_lag", max_lag, 1)
    stuck = np.flatnonzero(np.ptp(chains, axis=1) == 0.0)
    if len(stuck):
        raise ValueError(
            f"Chain {stuck[0]} never moves: its autocorrelation is not defined. "
            "Sample for longer, or leave that chain out."
        )
    values = autocorr(chains, axis=-1)[:, : max_lag + 1]
    return xr.DataArray(values, dims=("chain", "lag"), coords={"lag": np.arange(values.shape[1])})


def as_chains(
    samples: np.ndarray | xr.DataArray, *, fewest_chains: int = 1, fewest_draws: int = 4
) -> np.ndarray:
    """`samples` as a float array of shape (chain, draw), if there are enough and all finite."""
    if isinstance(samples, xr.DataArray):
        if set(samples.dims) != {"chain", "draw"}:
            raise ValueError(
                f"samples must have the dims ('chain', 'draw'); found {samples.dims}. "
                "Select one scalar, e.g. posterior['ls'].sel(feature='a')."
            )
        samples = samples.transpose("chain", "draw").to_numpy()
    chains = np.asarray(samples, dtype=float)
    if chains.ndim != 2:
        raise ValueError(
            f"samples must have the shape (chain, draw); found {chains.shape}. "
            "Select one scalar, and give a single chain as samples[None, :]."
        )
    if chains.shape[0] < fewest_chains:
        raise ValueError(
            f"Found {chains.shape[0]} chain, but at least {fewest_chains} are compared. "
            f"Sample with pm.sample(chains={max(fewest_chains, 4)})."
        )
    if chains.shape[1] < fewest_draws:
        raise ValueError(
            f"Found {chains.shape[1]} draws per chain, but at least {fewest_draws} are needed. "
            "Sample for longer; if the axes are swapped, transpose samples to (chain, draw)."
        )
    if not np.isfinite(chains).all():
        bad = chains.size - int(np.isfinite(chains).sum())
        raise ValueError(
            f"{bad} of {chains.size} samples are not finite. Leave them out before they are "
            "compared, and look into what made them so."
        )
    return chains


def _rhat(chains, quantile):
    """(R-hat, its upper end) of chains of shape (M, N)."""
    return rhat_of_moments(
        chains.mean(axis=1), chains.var(axis=1, ddof=1), chains.shape[1], quantile
    )


def rhat_of_moments(
    means: np.ndarray, variances: np.ndarray, draws: int, quantile: float = 0.975
) -> tuple[float, float]:
    """R-hat and its upper end, as `running_rhat` defines them, from the moments of the chains.

    Parameters
    ----------
    means, variances : array, shape (M,)
        Of each chain; the variances with N - 1 in the denominator.
    draws : int
        N, the length of the chains.
    quantile : float
        At which the upper end stands.

    Returns
    -------
    tuple of float
        Both NaN where no chain has moved.
    """
    M, N = len(means), draws
    W, B = variances.mean(), N * means.var(ddof=1)
    # The variance of equal numbers is zero but for the rounding of their mean.
    if (_ROUNDING * np.abs(means).max()) ** 2 >= W:
        return np.nan, np.nan
    between = (1.0 + 1.0 / M) / N
    V = (N - 1) / N * W + between * B
    var_W = variances.var(ddof=1) / M
    var_B = 2.0 * B**2 / (M - 1)
    # cov(s², x²) - 2 mean(x) cov(s², x), with the squares taken about the mean.
    cov_WB = N / M * np.cov(variances, (means - means.mean()) ** 2)[0, 1]
    var_V = ((N - 1) / N) ** 2 * var_W + between**2 * var_B + 2 * (N - 1) / N * between * cov_WB
    correction = (2 * V**2 + 3 * var_V) / (2 * V**2 + var_V) if var_V > 0.0 else 1.0
    df_W = min(2.0 * W**2 / var_W, _MANY) if var_W > 0.0 else _MANY
    stretch = f_distribution.ppf(quantile, M - 1, df_W)
    fixed, random = (N - 1) / N, between * B / W
    return np.sqrt(correction * (fixed + random)), np.sqrt(correction * (fixed + stretch * random))
