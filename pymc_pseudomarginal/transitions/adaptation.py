"""Adaptation of the random-walk proposal during the tuning phase."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pymc_pseudomarginal.transitions.proposals import RandomWalk

# For the scale: gains that vanish slowly enough to forget the start and fast enough to settle.
_GAIN_EXPONENT = 0.6
# For the covariance draw k of t has a weight of about k/t. The way to the posterior is forgotten,
# and enough draws count that no direction looks flat by chance, of many that there may be.
_MEMORY = 2.0
# The first draws say little of it, so that its estimate moves gently.
_COVARIANCE_DELAY = 20
_RIDGE = 1e-6


@dataclass(frozen=True)
class RandomWalkAdaptation:
    """Running covariance C of theta and scale c of the proposal N(theta, c C).

    C follows the draws and log c is steered to the target acceptance by
    Robbins-Monro. Both gains vanish, and nothing adapts after tuning.

    Attributes
    ----------
    mean : array, shape (d,)
        Running mean of theta.
    covariance : array, shape (d, d)
        C.
    log_scale : float
        log c.
    updates : int
        Draws seen.

    References
    ----------
    Andrieu & Thoms (2008), A tutorial on adaptive MCMC, algorithm 4.
    """

    mean: np.ndarray
    covariance: np.ndarray
    log_scale: float
    updates: int = 0

    @classmethod
    def starting_at(cls, theta: np.ndarray, *, spread: float = 0.5) -> RandomWalkAdaptation:
        """Before the first draw: C = spread² I and c = 2.38² / d."""
        d = len(theta)
        return cls(theta.copy(), spread**2 * np.eye(d), float(np.log(2.38**2 / d)))

    def updated(self, theta: np.ndarray, acceptance: float, target: float) -> RandomWalkAdaptation:
        """The adaptation after one more draw with its acceptance probability."""
        t = self.updates + 1
        gain = _MEMORY / (t + _COVARIANCE_DELAY)
        deviation = theta - self.mean
        return replace(
            self,
            mean=self.mean + gain * deviation,
            covariance=self.covariance + gain * (np.outer(deviation, deviation) - self.covariance),
            log_scale=self.log_scale + t**-_GAIN_EXPONENT * (acceptance - target),
            updates=t,
        )

    def factor(self) -> np.ndarray:
        """Lower L with C = L Lᵀ but for a little more on its diagonal, shape (d, d)."""
        d = len(self.mean)
        ridge = _RIDGE * (np.trace(self.covariance) / d + 1e-12)
        return np.linalg.cholesky(self.covariance + ridge * np.eye(d))

    def proposal(self) -> RandomWalk:
        """The random walk N(theta, c C)."""
        return RandomWalk(np.exp(0.5 * self.log_scale) * self.factor())
