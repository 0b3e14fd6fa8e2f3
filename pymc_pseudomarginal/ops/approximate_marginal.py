"""The Laplace or EP log marginal likelihood as a PyTensor Op with a gradient."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply

from pymc_pseudomarginal.numerics import NumericalFailure, ep_gradient, laplace_gradient
from pymc_pseudomarginal.ops.base import MarginalOp, disconnected, prior_inputs

_GRADIENTS = {"laplace": laplace_gradient, "ep": ep_gradient}


def approximate_log_marginal(mean, covariance, y, *, approximation="laplace"):
    """Approximate log p(y) for f ~ N(mean, covariance) and y_i ~ Bernoulli(Phi(f_i)).

    Parameters
    ----------
    mean : tensor, shape (n,)
    covariance : tensor, shape (n, n)
    y : tensor, shape (n,)
        Labels, 0 or 1.
    approximation : {"laplace", "ep"}

    Returns
    -------
    TensorVariable, scalar
        Differentiable in mean and covariance. Where no finite approximation exists,
        it is -inf, with zero gradients.

    Examples
    --------
    >>> with pm.Model():
    ...     ls = pm.Gamma("ls", 2, 4)
    ...     K = pm.gp.cov.ExpQuad(1, ls=ls)(X) + 1e-6 * np.eye(len(X))
    ...     pm.Potential("y", approximate_log_marginal(np.zeros(len(X)), K, y))
    ...     idata = pm.sample()  # NUTS on the approximate marginal
    """
    return ApproximateLogMarginal(approximation)(mean, covariance, y)


class ApproximateLogMarginal(MarginalOp):
    """log Z_q of (mean, covariance, y)."""

    def make_node(self, mean, covariance, y):
        """An Apply with one scalar output."""
        return Apply(self, prior_inputs(mean, covariance, y), [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        """Run the approximation."""
        try:
            log_marginal = self.approximate(*inputs)[0].log_marginal
        except NumericalFailure:
            log_marginal = -np.inf
        outputs[0][0] = np.asarray(log_marginal, dtype="float64")

    def connection_pattern(self, node):
        """No gradient in the labels."""
        return [[True], [True], [False]]

    def pullback(self, inputs, outputs, cotangents):
        """Gradients in the mean and the covariance."""
        mean, covariance = ApproximateLogMarginalGradient(self.approximation)(*inputs)
        return [cotangents[0] * mean, cotangents[0] * covariance, disconnected()]

    def L_op(self, inputs, outputs, output_grads):
        """The name of `pullback` in PyTensor 2."""
        return self.pullback(inputs, outputs, output_grads)


class ApproximateLogMarginalGradient(MarginalOp):
    """d log Z_q / dm and d log Z_q / dK of (mean, covariance, y)."""

    def make_node(self, mean, covariance, y):
        """An Apply with a vector and a matrix output."""
        inputs = prior_inputs(mean, covariance, y)
        return Apply(self, inputs, [inputs[0].type(), inputs[1].type()])

    def perform(self, node, inputs, outputs):
        """Run the approximation and differentiate it."""
        mean, covariance, _ = inputs
        try:
            gradient = _GRADIENTS[self.approximation](*self.approximate(*inputs))
        except NumericalFailure:
            gradient = np.zeros_like(mean), np.zeros_like(covariance)
        outputs[0][0], outputs[1][0] = (np.ascontiguousarray(g) for g in gradient)
