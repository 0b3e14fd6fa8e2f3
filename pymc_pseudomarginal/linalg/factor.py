"""The interface of a factor of P = Q + A'WA, and the choice of its form."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from pymc_pseudomarginal.linalg.curvature import CurvatureForm, Weights
from pymc_pseudomarginal.linalg.dense_factor import DenseForm
from pymc_pseudomarginal.linalg.latent import GaussianPrior, Predictor
from pymc_pseudomarginal.linalg.low_rank import LowRankFactor
from pymc_pseudomarginal.linalg.sparse_factor import SparseForm
from pymc_pseudomarginal.linalg.sparse_symbolic import Symbolic, gram_products
from pymc_pseudomarginal.numerics.errors import NotPositiveDefinite

# Up to this size the two differ by microseconds.
DENSE_UP_TO = 50
# A multiplication of the sparse factorisation takes as long as this many of LAPACK's: measured
# on lattices, walks and crossed effects of 100 to 2500 elements (1 ns against .05 ns).
_SLOWER = 20.0
# Dense matrices beyond this size would take gigabytes.
_DENSE_AT_MOST = 10_000
# More products a_ij w_il a_lk than this: the indices alone would take hundreds of megabytes.
_MAX_PRODUCTS = 1e8


class Factor(Protocol):
    """A root T of P^-1: T T' = P^-1."""

    log_determinant: float

    def solve(self, b: np.ndarray) -> np.ndarray:
        """P^-1 b of b (n,)."""
        ...

    def colour(self, u: np.ndarray) -> np.ndarray:
        """T u of u (n,), or of every row of u (k, n)."""
        ...

    def colour_back(self, g: np.ndarray) -> np.ndarray:
        """T'g of g (n,)."""
        ...

    def whiten(self, x: np.ndarray) -> np.ndarray:
        """T^-1 x of x (n,)."""
        ...

    def predictor_variances(self, predictor: Predictor) -> np.ndarray:
        """The diagonal of A P^-1 A', shape (m,)."""
        ...


class Form(Protocol):
    """What is known of P before its values: how to factor it."""

    def factor(self, prior: GaussianPrior, predictor: Predictor, weights: Weights) -> Factor:
        """The factor of P at one theta; raises NotPositiveDefinite."""
        ...


@dataclass(frozen=True)
class Plan:
    """How the curvatures and precisions of one model are worked with at every theta.

    Parameters
    ----------
    curvature_form : CurvatureForm
    form : Form
    """

    curvature_form: CurvatureForm
    form: Form


def plan(prior: GaussianPrior, predictor: Predictor, curvature: np.ndarray | csr_array) -> Plan:
    """The form of P for a model, from the patterns of its parts at any theta."""
    curvature_form = CurvatureForm(curvature)
    A = predictor.matrix
    dense = Plan(curvature_form, DenseForm(predictor))
    if prior.size <= DENSE_UP_TO or isinstance(A, np.ndarray):
        return dense
    if gram_products(A, curvature_form) > _MAX_PRODUCTS:
        return dense
    sparse = SparseWithRows(prior, predictor, curvature_form)
    return Plan(curvature_form, sparse) if _pays(sparse.symbolic) else dense


class SparseWithRows:
    """The sparse form of P, with the prior's few dense rows added by a low-rank update.

    Parameters
    ----------
    prior, predictor, curvature
        As of `SparseForm`.
    """

    def __init__(
        self, prior: GaussianPrior, predictor: Predictor, curvature: CurvatureForm
    ) -> None:
        self._sparse = SparseForm(prior, predictor, curvature)
        self._dense = DenseForm(predictor)

    @property
    def symbolic(self) -> Symbolic:
        """The analysis of P without its rows."""
        return self._sparse.symbolic

    def factor(self, prior: GaussianPrior, predictor: Predictor, weights: Weights) -> Factor:
        """The factor of P; dense where P without its rows is singular."""
        if prior.rows is None or prior.row_weights is None:
            return self._sparse.factor(prior, predictor, weights)
        try:
            base = self._sparse.factor(prior, predictor, weights)
            return LowRankFactor(base, prior.rows, prior.row_weights)
        except NotPositiveDefinite:
            if prior.size > _DENSE_AT_MOST:
                raise
            return self._dense.factor(prior, predictor, weights)


def _pays(symbolic: Symbolic) -> bool:
    """Whether the sparse factorisation is the faster one, or the only one that fits."""
    n = symbolic.order.shape[0]
    dense = n**3 / 6.0
    return n > _DENSE_AT_MOST or symbolic.operations * _SLOWER < dense
