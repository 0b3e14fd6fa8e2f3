"""A density of theta fitted to tuning draws, across which theta is moved.

A Student t with the moments of the draws comes first. What is left of the log posterior density
is interpolated between values at some thetas, and the product g(theta) = t(theta) exp(r(theta)) is
nearly the posterior itself. Draws of t that are weighted by exp(r), which needs no covariance, lead
from theta to a draw that is almost one of g, on the other side of it if possible; steps of a
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
from pymc_pseudomarginal.transitions.overrelaxation import opposite_member
from pymc_pseudomarginal.transitions.student_t import DEGREES, StudentT

# Depth at which r levels off, and the share of it beyond which r is as low as it gets.
_DEEPEST = 8.0
_ALMOST = 0.999
# Standard deviations that are taken off a depth where it is uncertain.
_CAUTION = 2.0
# Added to a variance, so that rounding of one near zero is not magnified by its root.
_SMOOTHING = 1e-4
# Draws of t among which the next theta is looked for.
_POOL = 32
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
        return _corrections(np.ascontiguousarray(z), self._compiled)

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Another theta by a move that leaves g invariant, and log g(theta) - log g(there).

        References
        ----------
        Liu (2001), Monte Carlo Strategies in Scientific Computing, section 9.4.3, surrogate
        transitions.
        """
        start = self.base.standardised(theta[None])
        pool = np.concatenate([start, self.base.draw_standardised(rng, _POOL)])
        direction = rng.standard_normal(len(theta))
        i, log_ratio = _across(pool, direction, rng.uniform(size=2), self._compiled)
        return (self.base.at(pool[i]), log_ratio) if i else (theta, 0.0)

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
        start = self.base.standardised(theta[None])
        uniforms = rng.uniform(size=len(steps))
        moved, end, log_ratio = _walk(start, steps, uniforms, self._compiled)
        return (self.base.at(end[0]), log_ratio) if moved else (theta, 0.0)

    @cached_property
    def _compiled(self):
        return _Compiled(self.depth.terms, float(self.depth.level[0]), self.scale)


class _Compiled(NamedTuple):
    """A fitted density for compiled loops."""

    terms: Terms
    level: float
    scale: float


@njit(cache=True)
def _corrections(z, density):
    """R at standardised thetas, shape (k, d) to (k,)."""
    depths = np.full((len(z), 1), density.level)
    unknown = interpolate(z, density.terms, depths)
    found = np.empty(len(z))
    for i in range(len(z)):
        margin = _CAUTION * density.scale * math.sqrt(unknown[i] + _SMOOTHING)
        share = min(max((depths[i, 0] - margin) / _DEEPEST, 0.0), _ALMOST)
        found[i] = _DEEPEST * math.log1p(-share)
    return found


@njit(cache=True)
def _log_base(z):
    """The t density, up to a constant, at one standardised theta, shape (d,)."""
    return -0.5 * (DEGREES + z.shape[0]) * math.log1p(np.dot(z, z) / DEGREES)


@njit(cache=True)
def _across(pool, direction, uniforms, density):
    """The member of a pool to take after the first, log g(first) - log g there."""
    corrections = _corrections(pool, density)
    weights = np.exp(corrections - corrections.max())
    i = opposite_member(np.dot(pool, direction), weights, uniforms)
    return i, corrections[0] - corrections[i] + _log_base(pool[0]) - _log_base(pool[i])


@njit(cache=True)
def _walk(start, steps, uniforms, density):
    """Whether g accepts any of the steps, where they lead, log g(start) - log g there."""
    first = here = _corrections(start, density)[0] + _log_base(start[0])
    at, moved = start, False
    for i in range(len(steps)):
        new = at + steps[i]
        there = _corrections(new, density)[0] + _log_base(new[0])
        if math.log(uniforms[i]) < there - here:
            here, at, moved = there, new, True
    return moved, at, first - here
