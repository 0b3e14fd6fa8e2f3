"""A likelihood compiled from the graph of a model, with derivatives by PyTensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_graph
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.numerics.likelihoods import TiltedMoments, tilted_moments_by_quadrature

# Relative step of differences: rounding of the second derivative is then 1e-9 of log p.
_DIFFERENCE = 1e-3


@dataclass(frozen=True)
class GraphFunctions:
    """The compiled functions of log p(y|f, theta).

    Attributes
    ----------
    parameters : list of TensorVariable
        The value variables of theta.
    f : TensorVariable, shape (n,)
    elements : TensorVariable, shape (M,)
        Terms that sum to log p(y|f, theta).
    """

    parameters: list[TensorVariable]
    f: TensorVariable
    elements: TensorVariable

    @cached_property
    def log_elements(self):
        """(*theta, f of shape (B, n)) -> (B, M)."""
        batch = pt.matrix("f_batch", shape=(None, self.f.type.shape[0]))
        return self._compile(batch, vectorize_graph(self.elements, {self.f: batch}))

    @cached_property
    def derivatives(self):
        """(*theta, f) -> gradient and second derivative, each (n,)."""
        return self._compile(self.f, [self._gradient, self._second])

    @cached_property
    def third_derivative(self):
        """(*theta, f) -> third derivative, (n,)."""
        return self._compile(self.f, self._diagonal(self._second))

    @property
    def _gradient(self):
        return self._diagonal(self.elements)

    @property
    def _second(self):
        # The Hessian is diagonal, so that its row sums are its diagonal.
        return self._diagonal(self._gradient)

    def _diagonal(self, terms):
        return pt.grad(terms.sum(), self.f, disconnected_inputs="ignore")

    def _compile(self, f, outputs):
        function = compile_graph([*self.parameters, f], outputs, on_unused_input="ignore")
        function.trust_input = True
        return function


class GraphLikelihood:
    """p(y|f, theta) at one theta, behind the `Likelihood` protocol.

    Parameters
    ----------
    functions : GraphFunctions
    theta : sequence of array
        Values of ``functions.parameters``.
    collect : csr_array, shape (n, M), or None
        Which elements belong to which latent value. None where the graph does not tell
        them apart (a sum that the user made); EP is then not possible.
    name : str
        Of the observed variables, for messages.
    """

    def __init__(
        self,
        functions: GraphFunctions,
        theta: Sequence[np.ndarray],
        collect: csr_array | None,
        name: str,
    ):
        self.functions = functions
        self.theta = theta
        self.collect = collect
        self.name = name

    def log_density(self, f):
        """Log p(y|f), for f of shape (..., n); shape (...)."""
        elements = self.functions.log_elements(*self.theta, np.atleast_2d(f))
        total = elements.sum(axis=-1)
        return total if f.ndim == 2 else total[0]

    def derivatives(self, f):
        """Gradient, and the negative curvature where it is positive, else zero.

        Where log p is not concave W = 0 keeps q a Gaussian; any Gaussian is exact. So
        are central differences good enough where the graph's derivatives are NaN, as
        those of PyMC's Truncated are.
        """
        gradient, second = self.functions.derivatives(*self.theta, f)
        bad = ~np.isfinite(gradient + second)
        if bad.any() and self.collect is not None:
            first_difference, second_difference = self._differences(f)
            gradient = np.where(bad, first_difference, gradient)
            second = np.where(bad, second_difference, second)
        return gradient, np.maximum(-second, 0.0)

    def _differences(self, f):
        """First and second derivative of every latent value's share, by differences."""
        step = _DIFFERENCE * (1.0 + np.abs(f))
        below, here, above = self.log_densities(np.stack([f - step, f, f + step]))
        return (above - below) / (2.0 * step), (above - 2.0 * here + below) / step**2

    def third_derivative(self, f):
        """d³ log p(y_i|f_i) / df_i³, zero where W is (it stays so nearby)."""
        second = self.functions.derivatives(*self.theta, f)[1]
        # A second derivative that is NaN compares as false.
        return np.where(second < 0.0, self.functions.third_derivative(*self.theta, f), 0.0)

    def log_densities(self, f):
        """The share of every latent value in log p(y|f): shape (Q, n) to (Q, n)."""
        if self.collect is None:
            raise UnsupportedModelError(
                f"EP needs log p(y|f) in terms of one element of f each, but {self.name} gives "
                "a sum that cannot be taken apart. Give the potential or distribution its terms "
                "unsummed (PyMC sums them), or use approximation='laplace'."
            )
        return (self.collect @ self.functions.log_elements(*self.theta, f).T).T

    def tilted_moments(self, mean, variance) -> TiltedMoments:
        """By Gauss-Hermite quadrature."""
        return tilted_moments_by_quadrature(self.log_densities, self.derivatives, mean, variance)
