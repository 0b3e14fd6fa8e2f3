"""The Gaussian approximation q(f) = N(mu, Sigma) that Laplace and EP return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics.prior import DenseFactor, DensePrior


@dataclass(frozen=True)
class Approximation:
    """q(f) = N(mu, Sigma) with Sigma^-1 = K^-1 + W, for one prior and one likelihood.

    Attributes
    ----------
    prior : DensePrior
        N(m, K).
    mean : array, shape (n,)
        mu.
    dual : array, shape (n,)
        a = K^-1 (mu - m), carried along so that K^-1 is never formed.
    factor : DenseFactor
        The factorised B = I + W^1/2 K W^1/2; W is ``factor.precision``.
    log_marginal : float
        The deterministic approximation log Z_q of log p(y).
    iterations : int
        Newton iterations or EP sweeps.
    converged : bool
        Whether they met their tolerance. An approximation that did not is still a
        valid importance density, as the weights are computed with the same q.
    anchor : array
        Where the same algorithm may start at another theta (its ``start`` argument): the mode
        of Laplace, shape (n,), or the sites (W, nu) of EP, shape (2, n).
    """

    prior: DensePrior
    mean: np.ndarray
    dual: np.ndarray
    factor: DenseFactor
    log_marginal: float
    iterations: int
    converged: bool
    anchor: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """W, the sites' precisions, shape (n,)."""
        return self.factor.precision
