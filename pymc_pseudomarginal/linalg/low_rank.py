"""P = P_0 + J'DJ with a few rows J: a factor from one of P_0."""

import numpy as np

from pymc_pseudomarginal.linalg.latent import Predictor
from pymc_pseudomarginal.linalg.products import times_each
from pymc_pseudomarginal.linalg.sparse_factor import SparseFactor
from pymc_pseudomarginal.numerics.errors import NotPositiveDefinite


class LowRankFactor:
    """With T_0 T_0' = P_0^-1 and V = T_0'J', P = T_0^-T (I + V D V') T_0^-1.

    I + V D V' is I + B diag(lambda) B' with orthonormal columns B (n, r), whose powers are known,
    so that T = T_0 (I + V D V')^-1/2.

    Parameters
    ----------
    base : SparseFactor
        Of P_0.
    rows : (r, n) array
        J.
    row_weights : (r, r) array
        D, symmetric.

    Raises
    ------
    NotPositiveDefinite
    """

    def __init__(self, base: SparseFactor, rows: np.ndarray, row_weights: np.ndarray) -> None:
        V = np.stack([base.colour_back(row) for row in rows], axis=1)
        basis, R = np.linalg.qr(V)
        values, vectors = np.linalg.eigh(R @ row_weights @ R.T)
        if not np.all(1.0 + values > 0.0):
            raise NotPositiveDefinite("Q + A'WA has no Cholesky factor.")
        self._base = base
        self._basis = basis @ vectors
        root = np.sqrt(1.0 + values)
        self._shrink = 1.0 / root - 1.0
        self._stretch = root - 1.0
        self.log_determinant = base.log_determinant + float(np.log1p(values).sum())

    def solve(self, b: np.ndarray) -> np.ndarray:
        """P^-1 b of b (n,)."""
        return self.colour(self.colour_back(b))

    def colour(self, u: np.ndarray) -> np.ndarray:
        """T u of u (n,), or of every row of u (k, n)."""
        return self._base.colour(self._scaled(u, self._shrink))

    def colour_back(self, g: np.ndarray) -> np.ndarray:
        """T'g of g (n,)."""
        return self._scaled(self._base.colour_back(g), self._shrink)

    def whiten(self, x: np.ndarray) -> np.ndarray:
        """T^-1 x of x (n,)."""
        return self._scaled(self._base.whiten(x), self._stretch)

    def predictor_variances(self, predictor: Predictor) -> np.ndarray:
        """The diagonal of A P^-1 A', shape (m,)."""
        # (I + V D V')^-1 = I + B ((1 + shrink)^2 - 1) B'.
        E = times_each(predictor.matrix, self._base.colour(np.ascontiguousarray(self._basis.T)))
        change = (1.0 + self._shrink) ** 2 - 1.0
        return self._base.predictor_variances(predictor) + change @ E**2

    def _scaled(self, u: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """U + B diag(scale) B'u, of u (n,) or of its rows."""
        return u + ((u @ self._basis) * scale) @ self._basis.T
