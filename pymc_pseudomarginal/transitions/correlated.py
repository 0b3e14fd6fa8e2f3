"""Importance sets at two thetas from correlated standard normals.

Where no approximation is good, two independent estimates differ by so much that hardly any
proposal is accepted. Here the normals u' of the proposed set are those u of the current one,
moved by a Crank-Nicolson step u' = rho u + sqrt(1 - rho²) e, so that the errors of both
estimates are nearly the same and cancel in their ratio.

The step is reversible with respect to the law of u. In the extended target over
(theta, u, k), which is p(theta) w_k(theta, u) N(u|0, I), the pair (theta, u) therefore
moves with the ratio of the estimates, as independent sets do. Given (theta, f) the normals
behind f are drawn from their conditional law, so that nothing but (theta, f) need be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pymc_pseudomarginal.numerics import ImportanceSet, importance_set
from pymc_pseudomarginal.numerics.conditional_normals import normals_given

if TYPE_CHECKING:
    from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional


def correlated_sets(
    rng: np.random.Generator,
    current: Conditional,
    f: np.ndarray,
    proposed: Conditional,
    n_importance: int,
    correlation: float,
) -> tuple[ImportanceSet, ImportanceSet]:
    """A set with the current f in it, and one at the proposed theta that is like it.

    Parameters
    ----------
    rng : numpy.random.Generator
    current, proposed : Conditional
    f : array, shape (n,)
        At the current theta.
    n_importance : int
        N, the size of each set.
    correlation : float
        rho, between 0 (independent sets) and 1.

    References
    ----------
    Deligiannidis, Doucet & Pitt (2018), The correlated pseudomarginal method, Journal of the
    Royal Statistical Society B 80; Murray & Graham (2016), Pseudo-marginal slice sampling,
    AISTATS.
    """
    q = current.approximation
    u, fresh = rng.standard_normal((2, 2, n_importance, q.prior.size))
    u[:, 0] = normals_given(q, f, u[:, 0])
    kept = importance_set(q, current.likelihood, u[:, 1:], include=f)
    moved = crank_nicolson(u, fresh, correlation)
    return kept, importance_set(proposed.approximation, proposed.likelihood, moved)


def crank_nicolson(u: np.ndarray, fresh: np.ndarray, correlation: float) -> np.ndarray:
    """Standard normals of that correlation with u, given fresh ones of the same shape."""
    return correlation * u + np.sqrt(1.0 - correlation**2) * fresh
