"""Statistical assertions with reasoned tolerances: z-scores against standard errors.

With a correct sampler a z-score is close to standard normal, so that |z| > 4 has a
probability of about 6e-5 for each quantity checked. Seeds are fixed: a test that
passes keeps passing, and one that fails means that something changed.
"""

import arviz as az
import numpy as np

LIMIT = 4.0


def z_of_independent(draws, truth):
    """z-score of the mean of independent draws, shape (draws,)."""
    draws = np.asarray(draws, dtype=float)
    return (draws.mean() - truth) / (draws.std(ddof=1) / np.sqrt(len(draws)))


def standard_error(draws):
    """Monte Carlo standard error of the mean of chains, shape (chain, draw)."""
    return float(draws.std(ddof=1) / np.sqrt(float(az.ess(draws, method="mean"))))


def z_of_chains(draws, truth):
    """z-score of the mean of Markov chains, shape (chain, draw), by ArviZ's ESS."""
    draws = np.atleast_2d(np.asarray(draws, dtype=float))
    return (draws.mean() - truth) / standard_error(draws)


def z_of_difference(first, second):
    """z-score of the difference of means of two sets of chains, each (chain, draw)."""
    first, second = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (first, second))
    error = np.hypot(standard_error(first), standard_error(second))
    return (first.mean() - second.mean()) / error


def assert_within(z_scores, limit=LIMIT):
    """Every |z| is below the limit; `z_scores` maps names to values."""
    bad = {name: round(float(z), 2) for name, z in z_scores.items() if not abs(z) < limit}
    assert not bad, f"|z| of {limit} or more: {bad}"
