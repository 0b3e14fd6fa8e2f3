"""The surrogate-data parameterisation: a noisy copy g of f stays, and f given g is whitened.

With f = m + A z, z standard normal, g = f + noise of variance S (diagonal) and
P = I + Aᵀ S^-1 A = C Cᵀ,

    z | g ~ N(zbar, P^-1),   zbar = P^-1 Aᵀ S^-1 (g - m),   eta = Cᵀ (z - zbar),

where eta is standard normal given g and theta. What stays is (g, eta), with the density
N(g|m, K + S) given theta. In z all eigenvalues of P are at least one: the covariance
R = S - S (S + K)^-1 S of f given g, a difference, is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from pymc_pseudomarginal.numerics import NotPositiveDefinite
from pymc_pseudomarginal.transitions.given_latent import Coordinates, LatentState, Setting

# Of 1 / K_ii: where a datum says nothing of its f_i, the surrogate says next to nothing.
_SMALLEST_PRECISION = 1e-6
_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class SurrogateSetting(Setting):
    """A setting with the noise of its surrogate data and the factor C."""

    @cached_property
    def noise_precision(self) -> np.ndarray:
        """1 / S_ii, shape (n,), such that g_i says of f_i what y_i does.

        The posterior of f_i given y_i alone has the variance v_i; a Gaussian datum of precision
        1/v_i - 1/K_ii would lead to the same.
        """
        prior = self.prior
        alone = self.likelihood.tilted_moments(prior.mean, prior.variances)
        precision = 1.0 / alone.variance - 1.0 / prior.variances
        smallest = _SMALLEST_PRECISION / prior.variances
        return np.where(precision > smallest, precision, smallest)

    @cached_property
    def factor(self) -> np.ndarray:
        """C, lower, with C Cᵀ = I + Aᵀ S^-1 A; shape (n, n)."""
        prior = self.prior
        root = np.sqrt(self.noise_precision)[:, None] * prior.root
        P = blas.dsyrk(1.0, root, trans=1, lower=1)
        P.flat[:: prior.size + 1] += 1.0
        prior.cubic_operations += 2
        C, info = lapack.dpotrf(P, lower=1, clean=1, overwrite_a=1)
        if info != 0 or not np.isfinite(np.trace(C)):
            raise NotPositiveDefinite("The precision of f given its surrogate has no factor.")
        return C

    def centre(self, g: np.ndarray) -> np.ndarray:
        """zbar, shape (n,)."""
        right = self.prior.colour_transposed(self.noise_precision * (g - self.prior.mean))
        zbar, _ = lapack.dpotrs(self.factor, right, lower=1)
        return zbar

    def log_density(self, g: np.ndarray, zbar: np.ndarray) -> float:
        """Log N(g|m, K + S), as the smallest value of the joint quadratic form, at zbar."""
        precision = self.noise_precision
        residual = g - self.prior.mean - self.prior.colour(zbar)
        quadratic = float(residual @ (precision * residual) + zbar @ zbar)
        log_determinant = 2.0 * np.log(np.diagonal(self.factor)).sum() - np.log(precision).sum()
        return -0.5 * (quadratic + float(log_determinant) + len(g) * _LOG_2PI)


def surrogate(rng: np.random.Generator, state: LatentState) -> Coordinates:
    """(g, eta) for a new g given f; the settings must be `SurrogateSetting`.

    References
    ----------
    Murray & Adams (2010), Slice sampling covariance hyperparameters of latent Gaussian
    models, NeurIPS.
    """
    current = state.setting
    noise = rng.standard_normal(len(state.f)) / np.sqrt(current.noise_precision)
    g = state.f + noise
    z = current.prior.whiten(state.f)
    eta = blas.dtrmv(current.factor, z - current.centre(g), lower=1, trans=1)

    def coordinates(setting):
        zbar = setting.centre(g)
        log_density = setting.log_density(g, zbar)
        if setting is current:
            return state.f, log_density
        deviation, _ = lapack.dtrtrs(setting.factor, eta, lower=1, trans=1)
        return setting.prior.mean + setting.prior.colour(zbar + deviation), log_density

    return coordinates
