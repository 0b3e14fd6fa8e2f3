"""Proposals for theta.

A proposal is a callable (rng, theta) -> (new, log q(theta|new) - log q(new|theta)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaln

Proposal = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, float]]

# Few enough for tails as heavy as a posterior may have, enough for a covariance to exist.
_DEGREES = 6.0
# A density that is too wide loses a little everywhere, one that is too narrow sticks outside.
_WIDER = 1.1
_RIDGE = 1e-6


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

    def log_density(self, new: np.ndarray, theta: np.ndarray) -> float:
        """Of `new` from `theta`, or of `theta` from `new`."""
        z, _ = lapack.dtrtrs(self.factor, new - theta, lower=1)
        return float(-0.5 * (z @ z + len(z) * np.log(2.0 * np.pi)) - self._log_determinant)

    @cached_property
    def _log_determinant(self):
        return float(np.log(np.diagonal(self.factor)).sum())


@dataclass(frozen=True)
class StudentT:
    """A multivariate Student t density with 6 degrees of freedom.

    Attributes
    ----------
    centre : array, shape (d,)
    factor : array, shape (d, d)
        Lower Cholesky factor of its scale matrix.
    """

    centre: np.ndarray
    factor: np.ndarray

    @classmethod
    def fitted(cls, draws: np.ndarray) -> StudentT:
        """With the mean and 1.1 times the covariance of draws of shape (m, d) as its scale."""
        d = draws.shape[1]
        covariance = _WIDER * np.cov(draws.T).reshape(d, d)
        ridge = _RIDGE * (np.trace(covariance) / d + 1e-12)
        return cls(draws.mean(axis=0), np.linalg.cholesky(covariance + ridge * np.eye(d)))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """One draw, shape (d,)."""
        z = rng.standard_normal(len(self.centre))
        return self.centre + np.sqrt(_DEGREES / rng.chisquare(_DEGREES)) * (self.factor @ z)

    def log_density(self, theta: np.ndarray) -> float:
        """At theta of shape (d,)."""
        z, _ = lapack.dtrtrs(self.factor, theta - self.centre, lower=1)
        half = 0.5 * (_DEGREES + len(z))
        return self._log_constant - half * float(np.log1p(z @ z / _DEGREES))

    @cached_property
    def _log_constant(self):
        d = len(self.centre)
        return float(
            gammaln(0.5 * (_DEGREES + d))
            - gammaln(0.5 * _DEGREES)
            - 0.5 * d * np.log(_DEGREES * np.pi)
            - np.log(np.diagonal(self.factor)).sum()
        )


@dataclass(frozen=True)
class FittedOrWalk:
    """Mostly an independent draw of a fitted density, at times a step of a random walk.

    The fitted density carries the chain across the posterior in one step; the walk takes it
    out of places where that density is too thin. The ratio is that of the mixture, which is
    never accepted more rarely than its two parts would be by themselves.

    Attributes
    ----------
    fitted : StudentT
    walk : RandomWalk
    share : float
        Probability of a draw from `fitted`.

    References
    ----------
    Tierney (1994), Markov chains for exploring posterior distributions, section 2.3.
    """

    fitted: StudentT
    walk: RandomWalk
    share: float = 0.8

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A new theta, and the log ratio of proposal densities."""
        from_fitted = rng.uniform() < self.share
        new = self.fitted.draw(rng) if from_fitted else self.walk(rng, theta)[0]
        walked = np.log1p(-self.share) + self.walk.log_density(new, theta)
        back, forth = (
            np.logaddexp(np.log(self.share) + self.fitted.log_density(to), walked)
            for to in (theta, new)
        )
        return new, float(back - forth)


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
