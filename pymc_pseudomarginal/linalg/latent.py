"""What is known of a latent Gaussian model at one theta.

x | theta ~ N(., Q(theta)^-1)  (n,),   eta = A(theta) x + b(theta)  (m,),   y ~ p(y | eta, theta).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csc_array, csr_array

from pymc_pseudomarginal.linalg.products import rows_times


@dataclass(frozen=True)
class GaussianPrior:
    """log p(x|theta) = constant + linear'x - x'Q x/2 with Q = precision + rows' row_weights rows.

    Every normaliser is part of `constant`, so that none is derived from Q, which may be
    singular (flat and intrinsic priors).

    Parameters
    ----------
    constant : float
        The log density at x = 0.
    linear : (n,) array
        Its gradient at x = 0.
    precision : (n, n) csc_array
        Symmetric, both triangles, sorted indices; the same sparsity pattern for every theta.
    rows : (r, n) array or None
        A few dense rows, such as soft sum-to-zero constraints.
    row_weights : (r, r) array or None
        Their symmetric weights; None exactly if `rows` is None.
    """

    constant: float
    linear: np.ndarray
    precision: csc_array
    rows: np.ndarray | None = None
    row_weights: np.ndarray | None = None

    @property
    def size(self) -> int:
        """n, the number of elements of x."""
        return self.linear.shape[0]

    def precision_times(self, x: np.ndarray) -> np.ndarray:
        """Q x of x (n,), shape (n,)."""
        Q = self.precision
        product = rows_times(Q.indptr, Q.indices, Q.data, x)
        if self.rows is not None:
            product += (self.row_weights @ (self.rows @ x)) @ self.rows
        return product

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient linear - Q x of log p(x|theta), shape (n,)."""
        return self.linear - self.precision_times(x)

    def log_density(self, x: np.ndarray) -> float:
        """The log density log p(x|theta) of x (n,)."""
        return self.constant + float(x @ (self.linear - 0.5 * self.precision_times(x)))


@dataclass(frozen=True)
class Predictor:
    """eta = A x + b.

    Parameters
    ----------
    matrix : (m, n) csr_array or array
        A; sparse with sorted indices and the same pattern for every theta, or an array if it
        is full.
    offset : (m,) array
        b.
    triangle : slice or None
        Columns of a dense A, m of them, that are a lower triangular matrix at every theta.
    """

    matrix: csr_array | np.ndarray
    offset: np.ndarray
    triangle: slice | None = None

    @property
    def size(self) -> int:
        """m, the number of predictors."""
        return self.offset.shape[0]


@dataclass(frozen=True)
class Derivatives:
    """log p(y|eta, theta) and its derivatives in eta.

    Parameters
    ----------
    value : float
        The log density, summed over the data.
    gradient : (m,) array
        Its gradient.
    curvature : (m,) array or (m, m) csr_array
        The negative Hessian as it is, not yet positive semi-definite: its diagonal if every
        term has one predictor, else symmetric with a fixed pattern.
    """

    value: float
    gradient: np.ndarray
    curvature: np.ndarray | csr_array


class Likelihood(Protocol):
    """p(y|eta, theta) at one theta."""

    def log_density(self, eta: np.ndarray) -> np.ndarray:
        """The log density of y, shape (...), given eta of shape (..., m): -inf is allowed."""
        ...

    def derivatives(self, eta: np.ndarray) -> Derivatives:
        """Value, gradient and curvature at one eta (m,)."""
        ...


@dataclass(frozen=True)
class LatentAt:
    """Everything known at one theta.

    Parameters
    ----------
    theta : (d,) array
    log_prior : float
        log p(theta), which may be -inf.
    prior : GaussianPrior
    predictor : Predictor
    likelihood : Likelihood
    """

    theta: np.ndarray
    log_prior: float
    prior: GaussianPrior
    predictor: Predictor
    likelihood: Likelihood


class LatentGaussian(Protocol):
    """A model, as a map from theta to what is known there."""

    @property
    def size(self) -> int:
        """n, the number of elements of x."""
        ...

    @property
    def dim_theta(self) -> int:
        """d, the number of hyper-parameters; it may be 0."""
        ...

    def at(self, theta: np.ndarray) -> LatentAt:
        """The model at theta (d,).

        Raises
        ------
        NumericalFailure
            Something has no finite value there.
        """
        ...
