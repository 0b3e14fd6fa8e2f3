"""A density of theta fitted to tuning draws, from which nearly independent draws are proposed.

A Student t with the moments of the draws comes first. What is left of the log posterior density
is interpolated between values at some thetas, and the product g(theta) = t(theta) exp(r(theta)) is
nearly the posterior itself. A few Metropolis steps with independent proposals from t, which
evaluate g alone and no covariance, lead from theta to a draw that is almost one of g; those of a
random walk lead less far. Either are reversible with respect to g, so that what is left for the
acceptance of the whole is pi(new) / g(new) relative to pi(theta) / g(theta), whatever g is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_pseudomarginal.transitions.interpolation import Interpolation, Terms, interpolate
from pymc_pseudomarginal.transitions.student_t import DEGREES, StudentT

# Depth at which r levels off, and the share of it beyond which r is as low as it gets.
_DEEPEST = 8.0
_ALMOST = 0.999
# Standard deviations that are taken off a depth where it is uncertain.
_CAUTION = 2.0
# Added to a variance, so that rounding of one near zero is not magnified by its root.
_SMOOTHING = 1e-4
# Steps of the inner chain: enough to leave theta behind unless hardly any is accepted.
_STEPS = 5
# Steps of a walk to each hyper-parameter.
_STEPS_EACH = 8


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
        z = np.ascontiguousarray(z)
        return np.array([_correction(row, self._compiled) for row in z])

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Where a few steps that leave g invariant lead, and log g(theta) - log g(there).

        References
        ----------
        Liu (2001), Monte Carlo Strategies in Scientific Computing, section 9.4.3, surrogate
        transitions.
        """
        start = self.base.standardised(theta[None])[0]
        proposed = self.base.draw_standardised(rng, _STEPS)
        uniforms = rng.uniform(size=_STEPS)
        moved, end, log_ratio = _independent_steps(start, proposed, uniforms, self._compiled)
        return (self.base.at(end), log_ratio) if moved else (theta, 0.0)

    def walk(
        self, rng: np.random.Generator, theta: np.ndarray, factor: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """The same by steps N(0, L Lᵀ) from where the chain is.

        Parameters
        ----------
        rng : numpy.random.Generator
        theta : array, shape (d,)
        factor : array, shape (d, d)
            L, standardised.
        """
        steps = rng.standard_normal((_STEPS_EACH * len(theta), len(theta))) @ factor.T
        start = self.base.standardised(theta[None])[0]
        uniforms = rng.uniform(size=len(steps))
        moved, end, log_ratio = _walk(start, steps, uniforms, self._compiled)
        return (self.base.at(end), log_ratio) if moved else (theta, 0.0)

    @cached_property
    def _compiled(self):
        return _Compiled(self.depth.terms, float(self.depth.level[0]), self.scale)


class _Compiled(NamedTuple):
    """A fitted density for compiled loops."""

    terms: Terms
    level: float
    scale: float


@njit(cache=True)
def _correction(z, density):
    """R at one standardised theta, shape (d,)."""
    depth = np.full(1, density.level)
    unknown = interpolate(z, density.terms, depth)
    margin = _CAUTION * density.scale * math.sqrt(unknown + _SMOOTHING)
    share = min(max((depth[0] - margin) / _DEEPEST, 0.0), _ALMOST)
    return _DEEPEST * math.log1p(-share)


@njit(cache=True)
def _log_base(z):
    """The t density, up to a constant."""
    return -0.5 * (DEGREES + z.shape[0]) * math.log1p(np.dot(z, z) / DEGREES)


@njit(cache=True)
def _independent_steps(start, proposed, uniforms, density):
    """Whether g accepts any of the draws of t, the last such, log g(start) - log g there."""
    first = here = _correction(start, density)
    at, moved = start, False
    for i in range(len(proposed)):
        there = _correction(proposed[i], density)
        if math.log(uniforms[i]) < there - here:
            here, at, moved = there, proposed[i], True
    return moved, at, first - here + _log_base(start) - _log_base(at)


@njit(cache=True)
def _walk(start, steps, uniforms, density):
    """Whether g accepts any of the steps, where they lead, log g(start) - log g there."""
    first = here = _correction(start, density) + _log_base(start)
    at, moved = start, False
    for i in range(len(steps)):
        new = at + steps[i]
        there = _correction(new, density) + _log_base(new)
        if math.log(uniforms[i]) < there - here:
            here, at, moved = there, new, True
    return moved, at, first - here
