"""p(y|eta, theta) compiled from the terms of a model, with derivatives by PyTensor."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array

from pymc_pseudomarginal.linalg.latent import Derivatives
from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.reading.colouring import colour_symmetric
from pymc_pseudomarginal.reading.compiling import Compiler
from pymc_pseudomarginal.reading.terms import Terms


class TermGraphs:
    """The terms and their derivatives as graphs of theta and eta.

    Parameters
    ----------
    terms : Terms
    graph : TensorVariable, shape (n_terms,)
        The terms with theta as one vector.
    theta : TensorVariable, shape (d,)

    Attributes
    ----------
    total : TensorVariable
        The sum of the terms.
    derivatives : list of TensorVariable
        The sum, its gradient, and the negative Hessian: its diagonal if every term has one
        predictor, else its products with the seeds of the colouring.
    colouring : SymmetricColouring or None
    """

    def __init__(self, terms: Terms, graph: TensorVariable, theta: TensorVariable):
        self.theta, self.eta = theta, terms.eta
        self.total = graph.sum()
        gradient = _derivative(self.total, terms)
        self.colouring = None
        if terms.counts.max(initial=0) <= 1:
            # The Hessian is diagonal, so that its row sums are its diagonal.
            curvature = -_derivative(gradient.sum(), terms)
        else:
            groups = terms.groups.astype(np.int32)
            self.colouring = colour_symmetric((groups.T @ groups).astype(bool))
            curvature = -pt.stack(
                [_derivative((gradient * seed).sum(), terms) for seed in self.colouring.seeds]
            )
        self.derivatives = [self.total, gradient, curvature]

    def of_many(self) -> tuple[TensorVariable, TensorVariable]:
        """A matrix of several eta, (r, m), and the sums of the terms at each, (r,)."""
        batch = pt.matrix("eta_batch", shape=(None, self.eta.type.shape[0]), dtype="float64")
        return batch, vectorize_graph(self.total, {self.eta: batch})


class TermFunctions:
    """The functions of the terms.

    Parameters
    ----------
    graphs : TermGraphs
    compiler : Compiler
    """

    def __init__(self, graphs: TermGraphs, compiler: Compiler):
        self.colouring = graphs.colouring
        self.derivatives = compiler([graphs.theta, graphs.eta], graphs.derivatives)
        self.log_density = compiler([graphs.theta, graphs.eta], graphs.total)
        self._graphs, self._compiler = graphs, compiler

    @cached_property
    def log_densities(self):
        """Theta, eta of shape (r, m) -> log densities, shape (r,)."""
        batch, totals = self._graphs.of_many()
        return self._compiler([self._graphs.theta, batch], totals)


def _derivative(value: TensorVariable, terms: Terms) -> TensorVariable:
    """The gradient in eta.

    Raises
    ------
    UnsupportedModelError
        If an Op has none, or no second one.
    """
    try:
        gradient = pt.grad(value, terms.eta, disconnected_inputs="ignore")
        return pt.as_tensor_variable(gradient)
    except (NotImplementedError, TypeError) as error:  # what PyTensor raises, by its version
        names = " or ".join(sorted({repr(factor.name) for factor in terms.factors}))
        raise UnsupportedModelError(
            f"The log density of {names} has no second derivative in PyTensor ({error}), which "
            "Laplace's approximation needs. Write it with Ops that have one; an Op of your own "
            "needs a gradient."
        ) from error


class TermLikelihood:
    """p(y|eta, theta) at one theta, behind the `Likelihood` protocol."""

    def __init__(self, functions: TermFunctions, theta: np.ndarray):
        self._functions = functions
        self._theta = theta

    def log_density(self, eta: np.ndarray) -> np.ndarray:
        """Log p(y|eta, theta), shape (...), of eta of shape (..., m)."""
        if eta.ndim == 1:
            value = self._functions.log_density(self._theta, eta)
        else:
            flat = np.ascontiguousarray(eta.reshape(-1, eta.shape[-1]))
            value = self._functions.log_densities(self._theta, flat).reshape(eta.shape[:-1])
        # Outside of the support PyMC's densities are -inf or, where terms cancel, NaN.
        return np.where(np.isnan(value), -np.inf, value)

    def derivatives(self, eta: np.ndarray) -> Derivatives:
        """Value, gradient (m,) and curvature of the log density at one eta (m,)."""
        value, gradient, curvature = self._functions.derivatives(self._theta, eta)
        colouring = self._functions.colouring
        if colouring is not None:
            entries = curvature[colouring.colours, colouring.positions]
            indices = (colouring.rows, colouring.columns)
            curvature = csr_array((entries, indices), shape=(eta.size, eta.size))
        return Derivatives(float(value), gradient, curvature)


class NoLikelihood:
    """A likelihood without terms: everything that is observed of x is in its prior."""

    def log_density(self, eta: np.ndarray) -> np.ndarray:
        """Zero, shape (...)."""
        return np.zeros(eta.shape[:-1])

    def derivatives(self, eta: np.ndarray) -> Derivatives:
        """Nothing."""
        return Derivatives(0.0, np.zeros(0), np.zeros(0))
