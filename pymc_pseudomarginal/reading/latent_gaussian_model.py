"""`LatentGaussianModel`: what was understood of a model, as functions of theta."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pymc as pm
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csc_array

from pymc_pseudomarginal.linalg.latent import GaussianPrior, LatentAt, Predictor
from pymc_pseudomarginal.numerics.errors import NumericalFailure
from pymc_pseudomarginal.reading.compiling import Compiler, with_vectorised_exp
from pymc_pseudomarginal.reading.description import describe
from pymc_pseudomarginal.reading.model_graphs import ModelGraphs
from pymc_pseudomarginal.reading.sparse_values import SparseValues
from pymc_pseudomarginal.reading.structure import Structure
from pymc_pseudomarginal.reading.term_likelihood import (
    NoLikelihood,
    TermFunctions,
    TermLikelihood,
)
from pymc_pseudomarginal.reading.unobserved import UnobservedDraws


class LatentGaussianModel:
    """A PyMC model as p(theta) N(x; m(theta), Q(theta)^-1) p(y | A(theta) x + b(theta), theta).

    Parameters
    ----------
    structure : Structure
    interpreted : bool
        Interpret the model's graphs rather than compile them: for a few evaluations.
    graphs : ModelGraphs, optional
        Those of another model of the same structure, not to write them twice.

    Attributes
    ----------
    theta, x : Layout
        Where the free variables stand in the two vectors.
    """

    def __init__(
        self,
        structure: Structure,
        *,
        interpreted: bool = False,
        graphs: ModelGraphs | None = None,
    ):
        self.structure = structure
        self._graphs = ModelGraphs(structure) if graphs is None else graphs
        self.theta, self.x = self._graphs.theta, self._graphs.x
        self._compiler = Compiler(interpreted=interpreted)

    @property
    def model(self) -> pm.Model:
        """The PyMC model."""
        return self.structure.space.model

    @property
    def size(self) -> int:
        """n, the number of elements of x."""
        return self.x.size

    @property
    def dim_theta(self) -> int:
        """d, the number of hyper-parameters on PyMC's unconstrained scale."""
        return self.theta.size

    @cached_property
    def start(self) -> np.ndarray:
        """Theta at the model's initial point, shape (d,)."""
        return self.theta.stack(self.structure.space.start)

    def split(self) -> dict[str, set[str]]:
        """The names of the free variables in x, in theta, and of those drawn afterwards."""
        names = self.structure.space.names
        return {
            "latent": {names[v] for v in self.structure.members},
            "theta": {names[v] for v in self.structure.theta},
            "unobserved": {str(rv.name) for rv in self.structure.space.unobserved},
        }

    @property
    def is_one_process(self) -> bool:
        """Whether x is the whitened values of one dense Gaussian vector, and all are observed."""
        return self._graphs.A.triangle == slice(0, self.size)

    def interpreted(self) -> LatentGaussianModel:
        """The same model without a compiler."""
        return LatentGaussianModel(self.structure, interpreted=True, graphs=self._graphs)

    def at(self, theta: np.ndarray) -> LatentAt:
        """Everything that is known at theta (d,)."""
        log_prior, offset, constant, linear, *rest = self._functions(theta)
        values, graphs = iter(rest), self._graphs
        A = graphs.A.assembled(values)
        Q = graphs.Q.values(next(values) if graphs.Q.varying.size else None)
        rows = weights = None
        if graphs.prior.rows is not None:
            rows, weights = values
        entries = A if isinstance(A, np.ndarray) else A.data
        if not np.isfinite(entries.sum() + Q.sum() + offset.sum()):
            raise NumericalFailure("The prior or the predictor of x has no finite value.")
        prior = GaussianPrior(float(constant), linear, self._Q_form(Q), rows, weights)
        return LatentAt(
            theta,
            float(log_prior) if not np.isnan(log_prior) else -np.inf,
            prior,
            Predictor(A, offset, graphs.A.triangle),
            TermLikelihood(self._terms, theta) if self._terms is not None else NoLikelihood(),
        )

    def to_point(self, theta: np.ndarray, x: np.ndarray) -> dict[str, np.ndarray]:
        """Values of PyMC's value variables of the free variables that are sampled."""
        space = self.structure.space
        values = self.theta.unstack(theta) | self.x.unstack(x)
        stored = {str(v.name): value for v, value in self._stored_values(theta, x).items()}
        values |= stored
        return {
            str(self.model.rvs_to_values[rv].name): values[str(variable.name)]
            for rv, variable in space.variables.items()
        }

    def from_point(self, point: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Theta (d,) and x (n,) of a point of PyMC's."""
        values = self.structure.space.from_point(point)
        return self.theta.stack(values), self.x.stack(values)

    @cached_property
    def unobserved(self) -> UnobservedDraws:
        """How the free variables on which nothing observed depends are drawn."""
        return UnobservedDraws(self.structure.space)

    def log_joint(self, theta: np.ndarray, x: np.ndarray) -> float:
        """Log p(theta, x, y), the sum of the parts."""
        at = self.at(theta)
        eta = at.predictor.matrix @ x + at.predictor.offset
        likelihood = float(at.likelihood.log_density(eta))
        return at.log_prior + at.prior.log_density(x) + likelihood

    def __repr__(self) -> str:
        return describe(self)

    # -- functions of the graphs

    @cached_property
    def _functions(self):
        """Theta -> what `ModelGraphs.of_theta` lists."""
        graphs = self._graphs
        return self._compiler([self.theta.vector], lambda: with_vectorised_exp(graphs.of_theta))

    @cached_property
    def _terms(self) -> TermFunctions | None:
        terms = self._graphs.terms
        return None if terms is None else TermFunctions(terms, self._compiler)

    @cached_property
    def _Q_form(self):
        Q = self._graphs.Q
        return SparseValues(csc_array, Q.rows, Q.columns, (self.size, self.size))

    @cached_property
    def _stored(self):
        return self._compiler([self.theta.vector, self.x.vector], self._graphs.stored)

    def _stored_values(self, theta, x) -> dict[TensorVariable, np.ndarray]:
        stored = self.structure.space.stored
        if not stored:
            return {}
        return dict(zip(stored, self._stored(theta, x), strict=True))
