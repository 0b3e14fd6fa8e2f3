"""Log densities of PyMC's Markov random fields over the edges of their graph.

PyMC's own take the eigenvalues of a dense matrix (CAR) or refuse a sparse one (ICAR). These are
the same functions, written over the edges, with the determinant from a sparse factorisation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.tensor.variable import TensorVariable
from scipy import linalg
from scipy.sparse import csc_array, csr_array, diags_array, issparse, tril
from scipy.sparse.linalg import splu

_EIGENVALUES_UP_TO = 300
"""Sites up to which eigenvalues are taken, once; a factorisation serves larger fields."""


def markov_log_density(rv: TensorVariable, value, parameters) -> TensorVariable | None:
    """Log p(value) of a CAR or ICAR variable, or None where it is not one that can be rewritten.

    Parameters
    ----------
    rv : TensorVariable
    value : TensorVariable, shape (n,)
    parameters : list of TensorVariable
        The distribution's parameters in value space.
    """
    kind = type(rv.owner.op).__name__
    if kind not in {"CARRV", "ICARRV"} or value.ndim != 1:
        return None
    W = _constant_matrix(parameters[1] if kind == "CARRV" else parameters[0])
    if W is None:
        return None
    if kind == "CARRV":
        mu, _, alpha, tau = parameters[:4]
        return _car(value, mu[0] if mu.ndim == 2 else mu, W, alpha.sum(), tau.sum())
    _, sigma, zero_sum_stdev = parameters[:3]
    return _icar(value, W, sigma.sum(), zero_sum_stdev.sum())


def _car(x, mu, W: csr_array, alpha, tau):
    """Conditional autoregression of precision tau (D - alpha W), up to PyMC's constant."""
    n = W.shape[0]
    degrees = np.asarray(W.sum(axis=0)).ravel()
    edges = tril(W, -1).tocoo()
    delta = x - mu
    products = edges.data.astype(float) * delta[edges.row] * delta[edges.col]
    quadratic = tau * ((degrees * delta**2).sum() - 2.0 * alpha * products.sum())
    return 0.5 * (n * pt.log(tau) + _log_determinant(W, degrees, alpha) - quadratic)


def _icar(x, W: csr_array, sigma, zero_sum_stdev):
    """Intrinsic autoregression with a soft constraint on the sum."""
    edges = tril(W).tocoo()
    keep = edges.data == 1
    row, column, n = edges.row[keep], edges.col[keep], W.shape[0]
    scale = zero_sum_stdev * n
    return (
        -0.5 / sigma**2 * ((x[row] - x[column]) ** 2).sum()
        - 0.5 * (x.sum() / scale) ** 2
        - 0.5 * np.log(2.0 * np.pi)
        - pt.log(scale)
    )


def _log_determinant(W: csr_array, degrees: np.ndarray, alpha):
    """log|I - alpha D^-1/2 W D^-1/2|."""
    root = diags_array(1.0 / np.sqrt(degrees))
    scaled = csc_array(root @ W @ root)
    if W.shape[0] <= _EIGENVALUES_UP_TO:
        return pt.log(1.0 - alpha * linalg.eigvalsh(scaled.toarray())).sum()
    return SparseLogDeterminant(scaled)(alpha)


class SparseLogDeterminant(Op):
    """log|I - alpha S| of a sparse symmetric S, as a function of alpha; NaN outside its domain."""

    __props__ = ("key",)

    def __init__(self, matrix: csc_array):
        self.matrix = matrix
        parts = (matrix.data, matrix.indices, matrix.indptr)
        self.key = hash(tuple(part.tobytes() for part in parts))

    def make_node(self, alpha) -> Apply:
        """Apply to a scalar."""
        return Apply(self, [pt.as_tensor_variable(alpha, ndim=0)], [pt.dscalar()])

    def perform(self, node: Apply, inputs: list[Any], outputs: list[list[Any]]) -> None:
        """Factorise without pivoting off the diagonal, so that the signs of U are its inertia."""
        n = self.matrix.shape[0]
        shifted = csc_array(diags_array(np.ones(n)) - float(inputs[0]) * self.matrix)
        options = {"SymmetricMode": True}
        try:
            factor = splu(
                shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
            )
            pivots = factor.U.diagonal()
        except RuntimeError:  # exactly singular
            pivots = np.array([-1.0])
        result = np.log(pivots).sum() if (pivots > 0.0).all() else np.nan
        outputs[0][0] = np.asarray(result)


def _constant_matrix(W) -> csr_array | None:
    """The value of an adjacency matrix that depends on no parameter."""
    while W.owner is not None and type(W.owner.op).__name__ in {"DimShuffle", "DenseFromSparse"}:
        W = W.owner.inputs[0]
    if isinstance(W, Constant):
        value = W.data
    elif isinstance(W, SharedVariable):
        value = W.get_value(borrow=True)
    else:
        return None
    if not issparse(value):
        value = np.asarray(value)
        value = value.reshape(value.shape[-2:])
    return csr_array(value)
