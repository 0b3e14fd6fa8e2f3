"""Where Newton or EP starts at a theta: a linear prediction, learnt while the chain is tuned.

The closer the start, the fewer factorisations. For draws to be exact q must depend on theta
alone, so that the prediction may not follow the chain: it is a fixed function of theta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

# Draw k of t has a weight of about (k/t)²: the way to the posterior is forgotten, and more
# than half of the draws still count.
_MEMORY = 3.0
# Thetas further than this many standard deviations from the centre are predicted as if there.
_FURTHEST = 2.5
_RIDGE = 1e-3


@dataclass(frozen=True)
class Prediction:
    """The anchor as a linear function of theta, constant beyond a box.

    Attributes
    ----------
    centre : array, shape (d,)
    reach : array, shape (d,)
        Half the sides of the box around the centre in which the function is linear.
    level : array, shape (...)
        The anchor at the centre.
    slope : array, shape (d, size of the anchor)
    """

    centre: np.ndarray
    reach: np.ndarray
    level: np.ndarray
    slope: np.ndarray

    def covers(self, theta: np.ndarray) -> bool:
        """Whether theta lies where the prediction was learnt, in the box."""
        return bool((np.abs(theta - self.centre) <= self.reach).all())

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """The start at theta, of the anchor's shape."""
        deviation = np.minimum(np.maximum(theta - self.centre, -self.reach), self.reach)
        return self.level + (deviation @ self.slope).reshape(self.level.shape)


@dataclass(frozen=True)
class WarmStart:
    """Running regression of the anchors of q on theta, and the prediction now in use.

    The prediction changes when the number of draws seen has doubled, and when `refitted`
    says so; in between it is the same function.

    Attributes
    ----------
    theta : array, shape (d,)
        Running mean.
    anchor : array, shape (...)
        Running mean.
    covariance : array, shape (d, d)
        Of theta.
    cross : array, shape (d, ...)
        Covariance of theta and the anchor.
    updates : int
        Draws seen.
    prediction : Prediction or None
        None before the first fit.
    """

    theta: np.ndarray
    anchor: np.ndarray
    covariance: np.ndarray
    cross: np.ndarray
    updates: int = 0
    prediction: Prediction | None = None

    @classmethod
    def starting_at(cls, theta: np.ndarray, anchor: np.ndarray) -> WarmStart:
        """Before the first draw."""
        d = len(theta)
        return cls(theta.copy(), anchor.copy(), np.zeros((d, d)), np.zeros((d, *anchor.shape)))

    def updated(self, theta: np.ndarray, anchor: np.ndarray) -> WarmStart:
        """The regression after one more draw."""
        updates = self.updates + 1
        gain = _MEMORY / (updates + _MEMORY)
        dt, da = theta - self.theta, anchor - self.anchor
        keep, add = 1.0 - gain, gain * (1.0 - gain)
        after = replace(
            self,
            theta=self.theta + gain * dt,
            anchor=self.anchor + gain * da,
            covariance=keep * self.covariance + add * np.multiply.outer(dt, dt),
            cross=keep * self.cross + add * np.multiply.outer(dt, da),
            updates=updates,
        )
        return after.refitted() if updates.bit_count() == 1 else after

    def refitted(self) -> WarmStart:
        """The same with the prediction that follows from all draws seen."""
        variances = np.diagonal(self.covariance)
        ridge = np.diag(_RIDGE * variances + np.finfo(float).tiny)
        flat = self.cross.reshape(len(self.theta), -1)
        slope = np.linalg.solve(self.covariance + ridge, flat)
        reach = _FURTHEST * np.sqrt(variances)
        return replace(self, prediction=Prediction(self.theta, reach, self.anchor, slope))
