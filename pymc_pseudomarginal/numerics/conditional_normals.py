"""The standard normals behind a given draw of q.

`draw` makes f = mu + A u of 2 n standard normals u = (z1, z2), with
A = Sigma [K^-1 L, -W^1/2] and A Aᵀ = Sigma. Many u lead to the same f; given f they
are normal, and a draw of them is a fresh u⁰, moved by the regression of u on f:

    u = u⁰ + Aᵀ Sigma^-1 (f - f⁰),   f⁰ = mu + A u⁰,   Aᵀ Sigma^-1 = [L^-1; -W^1/2].

Neither Sigma nor A is ever formed.
"""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.importance import draw


def normals_given(approximation: Approximation, f: np.ndarray, u: np.ndarray) -> np.ndarray:
    """A draw of the standard normals from which `draw` makes f, shape (2, n).

    If f is a draw from q, the result is standard normal; for any f, `draw` makes f of it
    (to rounding).

    Parameters
    ----------
    approximation : Approximation
    f : array, shape (n,)
        The latent vector.
    u : array, shape (2, n)
        Fresh standard normals, independent of f. The result is a pure function of them.

    References
    ----------
    Hoffman & Ribak (1991), Constrained realizations of Gaussian fields: a simple
    algorithm, Astrophysical Journal 380; known as Matheron's rule in geostatistics.
    """
    prior = approximation.prior
    start = draw(approximation, u[:, None])[0]
    z1 = u[0] + prior.whiten(f) - prior.whiten(start)
    z2 = u[1] - approximation.factor.root_precision * (f - start)
    return np.stack([z1, z2])
