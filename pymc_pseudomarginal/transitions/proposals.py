"""Proposals for theta.

A proposal is a callable (rng, theta) -> (new, log q(theta|new) - log q(new|theta)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from pymc_pseudomarginal.transitions.fitted_density import FittedDensity

Proposal = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, float]]


@dataclass(frozen=True)
class RandomWalk:
    """theta' ~ N(theta, L Lᵀ), symmetric.

    Attributes
    ----------
    factor : array, shape (d, d)
        L, lower triangular.
    """

    factor: np.ndarray

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A new theta, and the log ratio of proposal densities (zero)."""
        return theta + self.factor @ rng.standard_normal(len(theta)), 0.0


@dataclass(frozen=True)
class FittedOrWalk:
    """Mostly a draw by a fitted density, at times a step of a random walk.

    The fitted density carries the chain across the posterior in one step; the walk takes it
    out of places where that density is too thin. Which of the two is tried does not depend on
    theta, so that each is accepted by its own ratio.

    Attributes
    ----------
    fitted : FittedDensity
    walk : RandomWalk
    share : float
        Probability of a proposal by `fitted`.

    References
    ----------
    Tierney (1994), Markov chains for exploring posterior distributions, section 2.4.
    """

    fitted: FittedDensity
    walk: RandomWalk
    share: float = 0.8

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A new theta, and the log ratio of the densities that it is proposed by."""
        proposal = self.fitted if rng.uniform() < self.share else self.walk
        return proposal(rng, theta)


@dataclass(frozen=True)
class FilteredWalk:
    """A random walk past a fitted density, whose steps cost next to nothing.

    A few steps are accepted or not by that density, in turn; only where they lead is evaluated,
    and nothing if none was accepted. They are reversible with respect to the fitted density,
    whatever it is.

    Attributes
    ----------
    walk : RandomWalk
    density : FittedDensity
    share : float
        Probability with which steps are put to the density at all; otherwise a single one is
        not, and takes the chain out of places where the density is too low.

    References
    ----------
    Christen & Fox (2005), Markov chain Monte Carlo using an approximation.
    """

    walk: RandomWalk
    density: FittedDensity
    share: float = 0.98

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A new theta or the same one, and the log ratio that is left to accept it by."""
        if rng.uniform() < self.share:
            return self.density.walk(rng, theta, self._standardised_factor)
        return self.walk(rng, theta)

    @cached_property
    def _standardised_factor(self):
        return solve_triangular(self.density.base.factor, self.walk.factor, lower=True)


def expected_acceptance(log_ratios_kept: np.ndarray, log_ratios_new: np.ndarray) -> float:
    """How often independent proposals from a density g for a target pi would be accepted.

    Parameters
    ----------
    log_ratios_kept : array, shape (m,)
        log pi - log g at draws from pi.
    log_ratios_new : array, shape (k,)
        log pi - log g at draws from g; minus infinity where pi could not be evaluated.

    Returns
    -------
    float
        Zero if there are none of either.
    """
    if not len(log_ratios_kept) or not len(log_ratios_new):
        return 0.0
    with np.errstate(over="ignore"):
        return float(np.minimum(1.0, np.exp(log_ratios_new - log_ratios_kept[:, None])).mean())
