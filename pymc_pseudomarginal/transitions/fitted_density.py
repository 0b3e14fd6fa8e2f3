"""A density of theta fitted to tuning draws, from which nearly independent draws are proposed.

A Student t with the moments of the draws comes first. What is left of the log posterior density
is interpolated between values at some thetas, and the product g(theta) = t(theta) exp(r(theta)) is
nearly the posterior itself. A few Metropolis steps with independent proposals from t, which
evaluate g alone and no covariance, lead from theta to a draw that is almost one of g. They are
reversible with respect to g, so that what is left for the acceptance of the whole is
pi(new) / g(new) relative to pi(theta) / g(theta), whatever g is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.transitions.interpolation import Interpolation
from pymc_pseudomarginal.transitions.student_t import StudentT

# Depth at which r levels off, and the share of it beyond which r is as low as it gets.
_DEEPEST = 8.0
_ALMOST = 0.999
# Standard deviations that are taken off a depth where it is uncertain.
_CAUTION = 2.0
# Added to a variance, so that rounding of one near zero is not magnified by its root.
_SMOOTHING = 1e-4
# Steps of the inner chain: enough to leave theta behind unless hardly any is accepted.
_STEPS = 5


@dataclass(frozen=True)
class FittedDensity:
    """g(theta) = t(theta) exp(r(theta)), with r interpolated.

    What is interpolated is the depth of r below its highest value, made to level off: how deep
    r is where it is very low does not matter, and should not disturb what does.

    Attributes
    ----------
    base : StudentT
        t.
    depth : Interpolation
        Of the depth, between thetas that are standardised by t.
    scale : float
        Standard deviation of the depth far from these.
    """

    base: StudentT
    depth: Interpolation
    scale: float

    @classmethod
    def fitted(cls, base: StudentT, thetas: np.ndarray, log_densities: np.ndarray) -> FittedDensity:
        """To log posterior densities, known up to a constant, (m,), at thetas of shape (m, d)."""
        residuals = log_densities - base.log_density(thetas)
        depths = -_DEEPEST * np.expm1((residuals - residuals.max()) / _DEEPEST)
        depth = Interpolation.fitted(base.standardised(thetas), depths[:, None])
        deviation = depths - depth.level[0]
        scale = float(np.sqrt(depth.coefficients[:, 0] @ deviation / len(depths)))
        return cls(base, depth, scale)

    @property
    def errors(self) -> np.ndarray:
        """Of r at the thetas that it was fitted to, each predicted from the others, shape (m,)."""
        return self.depth.errors[:, 0]

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """Log g at every row, up to a constant, shape (m, d) to (m,)."""
        z = self.base.standardised(thetas)
        return self.correction(z) + self.base.log_density_standardised(z)

    def correction(self, z: np.ndarray) -> np.ndarray:
        """R at every row of standardised thetas, shape (k, d) to (k,); zero is the highest.

        Where it is not known it is rather too high than too low: a density that is too high costs
        a proposal, one that is too low holds the chain.
        """
        depths, unknown = self.depth(z)
        margin = _CAUTION * self.scale * np.sqrt(unknown + _SMOOTHING)
        return _DEEPEST * np.log1p(-np.clip((depths[:, 0] - margin) / _DEEPEST, 0.0, _ALMOST))

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Where a few steps that leave g invariant lead, and log g(theta) - log g(there).

        References
        ----------
        Liu (2001), Monte Carlo Strategies in Scientific Computing, section 9.4.3, surrogate
        transitions.
        """
        start = self.base.standardised(theta[None])
        z = np.concatenate([start, self.base.draw_standardised(rng, _STEPS)])
        corrections = self.correction(z)
        thresholds = np.log(rng.uniform(size=_STEPS)).tolist()
        heights = corrections.tolist()
        at = 0
        for i, threshold in enumerate(thresholds, start=1):
            if threshold < heights[i] - heights[at]:
                at = i
        if at == 0:
            return theta, 0.0
        ends = [0, at]
        levels = corrections[ends] + self.base.log_density_standardised(z[ends])
        return self.base.at(z[at]), float(levels[0] - levels[1])
