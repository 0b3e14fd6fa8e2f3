"""Proposals of theta that are frozen: from a fitted density, across it, and beside it.

Each returns theta' and the logarithm of k(theta'|.) -> theta over theta -> theta', so that every
one is exact whatever was fitted. Which of them is taken is a coin's matter, not the state's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.kernels.grid_density import GridDensity
from pymc_pseudomarginal.kernels.mixing import log_sum_exp
from pymc_pseudomarginal.kernels.student_t import StudentMixture
from pymc_pseudomarginal.kernels.triangular import TriangularDensity

INDEPENDENCE, AUTOREGRESSION, WALK = range(3)

# Share of the steps of a walk that are shorter, and by how many powers of ten at most: where the
# posterior is far narrower than its covariance says, a short step is the way out.
_SHORT_SHARE, _SHORTEST = 0.3, 2.0


@dataclass(frozen=True)
class CoveringDensity:
    """g = (1 - share) fitted + share wide: close to the posterior, and positive everywhere.

    Attributes
    ----------
    fitted : GridDensity, StudentMixture or TriangularDensity
    wide : StudentMixture
        Heavy-tailed and wider than the posterior, so that p(theta)/g(theta) is bounded.
    share : float
        Probability of the wide component.
    """

    fitted: GridDensity | StudentMixture | TriangularDensity
    wide: StudentMixture
    share: float

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws, shape (count, d)."""
        from_wide = rng.uniform(size=count) < self.share
        if count == 1:
            return (self.wide if from_wide[0] else self.fitted).draw(rng, 1)
        return np.where(
            from_wide[:, None], self.wide.draw(rng, count), self.fitted.draw(rng, count)
        )

    def log_density(self, thetas: np.ndarray) -> np.ndarray:
        """At every row, shape (m, d) to (m,)."""
        return log_sum_exp(self._log_parts(thetas))

    def autoregress(self, rng: np.random.Generator, theta: np.ndarray, rho: float) -> np.ndarray:
        """A move that is reversible with respect to g, shape (d,) to (d,).

        The component is drawn given theta, and the move is the component's.
        """
        fitted, wide = self._log_parts(theta[None])[0]
        from_wide = rng.uniform() < np.exp(wide - np.logaddexp(fitted, wide))
        return (self.wide if from_wide else self.fitted).autoregress(rng, theta, rho)

    def _log_parts(self, thetas):
        return np.stack(
            [
                np.log1p(-self.share) + self.fitted.log_density(thetas),
                np.log(self.share) + self.wide.log_density(thetas),
            ],
            axis=1,
        )


@dataclass(frozen=True)
class ThetaProposals:
    """The frozen proposals of theta.

    Attributes
    ----------
    density : CoveringDensity
        g.
    walk_factor : array, shape (d, d)
        L of the random walk's steps N(0, L L'), some of which are shortened.
    rho : float
        Correlation of theta' with theta in autoregressive steps across g.
    shares : array, shape (3,)
        Probabilities of independence proposals, autoregression, random walk.
    """

    density: CoveringDensity
    walk_factor: np.ndarray
    rho: float
    shares: np.ndarray

    def __call__(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A proposal of theta', shape (d,), and the log ratio of proposal densities."""
        coin = rng.uniform()
        if coin < self.shares[INDEPENDENCE]:
            return self.independent(rng, theta)
        if coin < self.shares[INDEPENDENCE] + self.shares[AUTOREGRESSION]:
            return self.autoregressive(rng, theta)
        return self.walk(rng, theta)

    def independent(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A draw theta' of g."""
        return self._with_ratio(theta, self.density.draw(rng, 1)[0])

    def autoregressive(
        self, rng: np.random.Generator, theta: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """A move to theta' that is reversible with respect to g."""
        return self._with_ratio(theta, self.density.autoregress(rng, theta, self.rho))

    def walk(self, rng: np.random.Generator, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """A symmetric step to theta'."""
        step = self.walk_factor @ rng.standard_normal(len(theta))
        if rng.uniform() < _SHORT_SHARE:
            step *= 10.0 ** -rng.uniform(0.0, _SHORTEST)
        return theta + step, 0.0

    def _with_ratio(self, theta, new):
        """New, and log g(theta) - log g(new)."""
        levels = self.density.log_density(np.stack([theta, new]))
        return new, float(levels[0] - levels[1])
