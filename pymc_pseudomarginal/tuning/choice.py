"""Which moves a draw is made of, by predicted effective draws for the work.

Work is counted, never timed: q at one theta is one unit. From a state at which proposals that do
not depend on it are accepted with probability a, the chain leaves after 1/a draws, so that the
integrated autocorrelation time is 2 E[1/a] - 1 over draws of the target: a few states that are
hard to leave cost more than their share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.kernels.proposals import AUTOREGRESSION, INDEPENDENCE, WALK

FAIR = 0.2
"""Acceptance on fresh draws below which nothing fitted is used."""

COMPANION, JOINT_COMPANION = 0.1, 0.4
"""Shares of random-walk steps beside fitted proposals of theta, without and with joint draws: a
way out wherever the fit is poor."""

_GRADIENT_WORK = 0.15
_WEIGHT_WORK = 0.1
_JOINT_SHARE = 0.8
_MOST_MOVES = 8
_WORTHWHILE = 0.3
_LEAST = 1e-3


@dataclass(frozen=True)
class Rates:
    """What was measured of each kind of move.

    Attributes
    ----------
    joint, fixed : arrays, shape (k,)
        Acceptance of independent (theta, u), and of theta ~ g at fixed noise, from k draws of
        the target.
    autoregression, walk : float
        Progress of the best of each, one minus the lag-one autocorrelation; 0 if not tried.
    noise : float
        Acceptance of u.
    kicks : int
    """

    joint: np.ndarray
    fixed: np.ndarray
    autoregression: float
    walk: float
    noise: float
    kicks: int


@dataclass(frozen=True)
class Choice:
    """Shares of theta's proposals, shape (3,), moves of theta in a sweep, share of joint draws."""

    shares: np.ndarray
    moves: int
    joint_share: float


def choose(rates: Rates, dim_theta: int) -> Choice:
    """The most effective draws for the work among what accepts fairly."""
    options = [
        Choice(shares, _moves(rates, shares) if dim_theta else 0, joint_share)
        for joint_share in (0.0, _JOINT_SHARE)
        for shares in _all_shares(rates, JOINT_COMPANION if joint_share else COMPANION)
        if not joint_share or rates.joint.mean() >= FAIR
    ]
    return max(options, key=lambda option: predicted(option, rates, dim_theta))


def effective(rates: np.ndarray) -> float:
    """Effective draws per draw of a chain that is renewed at these rates, shape (k,)."""
    return 1.0 / (2.0 * float(np.mean(1.0 / np.maximum(rates, _LEAST))) - 1.0)


def predicted(choice: Choice, rates: Rates, dim_theta: int) -> float:
    """Effective draws for a unit of work."""
    sweep = np.full(len(rates.joint), rates.noise)
    if dim_theta:
        moved = 1.0 - (1.0 - np.minimum(_progress(rates, choice.shares), 1.0)) ** choice.moves
        sweep = np.minimum(moved, rates.noise)
    share = choice.joint_share
    work = share * (float(dim_theta > 0) + _WEIGHT_WORK)
    work += (1.0 - share) * (choice.moves + _GRADIENT_WORK * (rates.kicks + 1))
    return effective(share * rates.joint + (1.0 - share) * sweep) / work


def _progress(rates, shares):
    """Of one proposal of theta, from every state."""
    others = shares[AUTOREGRESSION] * rates.autoregression + shares[WALK] * rates.walk
    return shares[INDEPENDENCE] * rates.fixed + others


def _moves(rates, shares):
    progress = float(np.mean(_progress(rates, shares)))
    return int(np.clip(math.ceil(_WORTHWHILE / max(progress, _LEAST)), 1, _MOST_MOVES))


def _all_shares(rates: Rates, companion: float) -> Iterator[np.ndarray]:
    """Each kind that is fair, with the walk beside it."""
    fair = np.array([rates.fixed.mean() >= FAIR, rates.autoregression > 0.0, True])
    for kind in np.flatnonzero(fair):
        shares = np.zeros(3)
        shares[WALK] = companion
        shares[kind] += 1.0 - companion
        yield shares
