"""What a fitted density is worth, measured on draws that it was not fitted to.

q is computed at fresh draws theta_j of g. Between them short chains of the exact target run for
nothing more: u moves at fixed theta, then theta moves among the theta_j at fixed u with weights
p(theta_j) w(theta_j, u) / g(theta_j). Their states are draws of the target, by which q is to be
judged, and the mean weights say how g differs from the posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pymc_pseudomarginal.kernels.mixing import log_sum_exp
from pymc_pseudomarginal.kernels.proposals import CoveringDensity
from pymc_pseudomarginal.kernels.rotation import rotate
from pymc_pseudomarginal.kernels.state import (
    State,
    finite_or_nothing,
    proposed_state,
    state_at,
)
from pymc_pseudomarginal.kernels.target import Target

KICKS = (2, 3, 4, 6, 9, 12)
WANTED = 0.8
_MOST_FRESH, _FEWEST_FRESH = 56, 16
_KEPT_NUMBERS = 3e7
_LARGE = 5000
_ROTATIONS = 4


@dataclass(frozen=True)
class Fresh:
    """Draws theta_j of g, and q there: proposals that can be judged from anywhere.

    Attributes
    ----------
    density : CoveringDensity
        g.
    states : list of State
        At theta_j and fresh noise.
    failed : int
        Draws at which q could not be computed.
    """

    density: CoveringDensity
    states: list[State]
    failed: int

    @property
    def thetas(self) -> np.ndarray:
        """Shape (m, d)."""
        return np.array([state.theta for state in self.states]).reshape(len(self.states), -1)

    @cached_property
    def log_densities(self) -> np.ndarray:
        """Log g(theta_j), shape (m,)."""
        return self._log_density(self.thetas)

    @cached_property
    def joint_levels(self) -> np.ndarray:
        """Log p(theta_j) w(theta_j, u_j) / g(theta_j), shape (m,)."""
        return np.array([state.log_level for state in self.states]) - self.log_densities

    def levels_at(self, noise: np.ndarray) -> np.ndarray:
        """Log p(theta_j) w(theta_j, u) / g(theta_j) at rows u, shape (k, n) to (k, m)."""
        priors = np.array([state.conditional.log_prior for state in self.states])
        weights = np.array([state.conditional.log_weights(noise) for state in self.states]).T
        weights = np.where(weights < math.inf, weights, -math.inf)
        return weights + priors - self.log_densities

    def acceptances(self, states: list[State], levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of proposals from states: theta and u together, and theta at fixed u, shape (k,) each.

        Parameters
        ----------
        states : list of State
        levels : array, shape (k, m)
            `levels_at` their noise.
        """
        thetas = np.array([state.theta for state in states]).reshape(len(states), -1)
        here = np.array([state.log_level for state in states]) - self._log_density(thetas)
        joint = np.exp(np.minimum(self.joint_levels - here[:, None], 0.0))
        fixed = np.exp(np.minimum(levels - here[:, None], 0.0))
        # A state that stands at a theta_j itself would accept that one without fail.
        others = np.array(
            [[own.conditional is not s.conditional for own in self.states] for s in states]
        )
        total = len(self.states) + self.failed
        among = np.maximum(others.sum(axis=1) + self.failed, 1)
        return joint.sum(axis=1) / total, (fixed * others).sum(axis=1) / among

    def _log_density(self, thetas):
        return self.density.log_density(thetas) if thetas.shape[1] else np.zeros(len(thetas))


@dataclass(frozen=True)
class Pilot:
    """Measurements.

    Attributes
    ----------
    fresh : Fresh
    joint, fixed : arrays, shape (k,)
        Acceptance of independent proposals of (theta, u), and of theta ~ g at fixed u, from each
        of k draws of the target.
    kicks : int
        As few as are accepted often enough, or the most.
    noise : float
        Acceptance of trajectories of u with them.
    log_ratios : array, shape (m,)
        Estimates of the log posterior over g at the fresh draws, up to a constant.
    states : list of State
        Draws of the target.
    evaluations : int
        Number of thetas at which q was computed.
    """

    fresh: Fresh
    joint: np.ndarray
    fixed: np.ndarray
    kicks: int
    noise: float
    log_ratios: np.ndarray
    states: list[State]
    evaluations: int


def fresh_count(size: int) -> int:
    """How many conditionals fit into memory side by side."""
    return int(np.clip(_KEPT_NUMBERS / max(size, 1) ** 2, _FEWEST_FRESH, _MOST_FRESH))


def run_pilot(
    target: Target, density: CoveringDensity, rng: np.random.Generator, centre: np.ndarray
) -> Pilot:
    """Measure g and q; `centre`, shape (d,), is where chains start if no draw of g has any weight.

    Parameters
    ----------
    target : Target
    density : CoveringDensity
        g.
    rng : numpy.random.Generator
    centre : array, shape (d,)
    """
    drawn = density.draw(rng, fresh_count(target.size))
    noise = rng.standard_normal((len(drawn), target.size))
    found = _states(target, drawn, noise)
    usable = [s for s in found if s is not None and math.isfinite(s.conditional.log_prior)]
    fresh = Fresh(density, usable or [state_at(target, centre, noise[0])], len(drawn) - len(usable))
    chains = _Chains(fresh, rng)
    chains.settle()
    kicks, noise_acceptance = chains.fewest_kicks()
    evaluations = len(drawn) if target.dim_theta else 1
    return Pilot(
        fresh, *chains.accepted(kicks), kicks, noise_acceptance, *chains.seen(), evaluations
    )


def _states(target: Target, thetas: np.ndarray, noise: np.ndarray) -> list[State | None]:
    """The states at rows of theta and u; without hyper-parameters q is computed once."""
    if target.dim_theta:
        return [proposed_state(target, *pair) for pair in zip(thetas, noise, strict=True)]
    only = target.at(thetas[0])
    return [State(thetas[0], u, only, finite_or_nothing(only.log_weight(u))) for u in noise]


class _Chains:
    """Short chains among the fresh thetas, side by side."""

    def __init__(self, fresh: Fresh, rng: np.random.Generator):
        self.fresh, self.rng = fresh, rng
        large = fresh.states[0].conditional.size > _LARGE
        self.count, self.steps = (2, 8) if large else (5, 24)
        self.states = [fresh.states[i] for i in self._first()]
        self.kept: list[State] = []
        self.shares: list[np.ndarray] = []

    def settle(self) -> None:
        """Forget the beginning."""
        for kicks in (4, 12):
            acceptances = []
            for _ in range(5):
                acceptances.append(self._rotate(kicks))
                self._move()
            if np.mean(acceptances) > WANTED:
                break

    def fewest_kicks(self) -> tuple[int, float]:
        """Kicks, and the acceptance of trajectories with them."""
        for kicks in KICKS:
            acceptance = float(np.mean([self._rotate(kicks) for _ in range(_ROTATIONS)]))
            if acceptance > WANTED:
                break
        return kicks, acceptance

    def accepted(self, kicks: int) -> tuple[np.ndarray, np.ndarray]:
        """Run on; acceptances of the fresh draws, jointly and at fixed noise."""
        joint: list[np.ndarray] = []
        fixed: list[np.ndarray] = []
        for _ in range(self.steps):
            self._rotate(kicks)
            levels = self._move()
            self.shares.extend(levels - log_sum_exp(levels)[:, None])
            self.kept.extend(self.states)
            for found, new in zip(
                (joint, fixed), self.fresh.acceptances(self.states, levels), strict=True
            ):
                found.append(new)
        return np.concatenate(joint), np.concatenate(fixed)

    def seen(self) -> tuple[np.ndarray, list[State]]:
        """Log mean weights of the fresh draws, and draws of the target."""
        log_ratios = log_sum_exp(np.array(self.shares).T) - math.log(len(self.shares))
        return log_ratios, self.kept[len(self.kept) // 2 :]

    def _first(self):
        """Where chains start: tempered, so that one large weight does not start them all."""
        levels = 0.5 * self.fresh.joint_levels
        top = levels.max()
        if not math.isfinite(top):
            return self.rng.integers(len(levels), size=self.count)
        weights = np.exp(levels - top)
        return self.rng.choice(len(levels), size=self.count, p=weights / weights.sum())

    def _rotate(self, kicks):
        """Move the noise of all; the mean acceptance."""
        moved = [rotate(self.rng, state, kicks) for state in self.states]
        self.states = [state for state, _ in moved]
        return float(np.mean([probability for _, probability in moved]))

    def _move(self):
        """Draw theta of all among the fresh ones given u; their levels, shape (count, m)."""
        noise = np.array([state.u for state in self.states])
        levels = self.fresh.levels_at(noise)
        for c, row in enumerate(levels):
            shares = np.exp(row - row.max())
            fresh = self.fresh.states[self.rng.choice(len(row), p=shares / shares.sum())]
            # Over all noises at once a weight is rounded otherwise than over one.
            weight = finite_or_nothing(fresh.conditional.log_weight(noise[c]))
            self.states[c] = State(fresh.theta, noise[c], fresh.conditional, weight)
        return levels
