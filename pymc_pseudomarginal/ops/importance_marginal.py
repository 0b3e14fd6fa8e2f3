"""The importance-sampled log marginal likelihood as a PyTensor Op."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply

from pymc_pseudomarginal.numerics import NumericalFailure, importance_set
from pymc_pseudomarginal.ops.base import MarginalOp, prior_inputs


def importance_log_marginal(mean, covariance, y, u, *, approximation="laplace"):
    """Log of an unbiased estimate of p(y), as a function of standard normals u.

    Parameters
    ----------
    mean : tensor, shape (n,)
    covariance : tensor, shape (n, n)
    y : tensor, shape (n,)
        Labels, 0 or 1.
    u : tensor, shape (2, N, n)
        Standard normals. With u random (`pm.Normal("u", shape=(2, N, n))`) and this
        value as a `pm.Potential`, the marginal posterior of everything else is exact.
    approximation : {"laplace", "ep"}
        The importance density.

    Returns
    -------
    TensorVariable, scalar
        -inf where no finite estimate exists. It has no gradient.
    """
    return ImportanceLogMarginal(approximation)(mean, covariance, y, u)


class ImportanceLogMarginal(MarginalOp):
    """log of the mean importance weight of (mean, covariance, y, u)."""

    def make_node(self, mean, covariance, y, u):
        """An Apply with one scalar output."""
        u = pt.as_tensor(u, dtype="float64")
        if u.type.ndim != 3:
            raise ValueError(f"u must have the shape (2, N, n); found {u.type.ndim} dimension(s).")
        return Apply(self, [*prior_inputs(mean, covariance, y), u], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        """Approximate, draw, weigh."""
        *problem, u = inputs
        if u.shape[0] != 2 or u.shape[2:] != inputs[0].shape:
            raise ValueError(f"u must have shape (2, N, {len(inputs[0])}); found {u.shape}.")
        try:
            log_estimate = importance_set(*self.approximate(*problem), u).log_estimate
        except NumericalFailure:
            log_estimate = -np.inf
        outputs[0][0] = np.asarray(log_estimate, dtype="float64")
