"""Everything that a latent Gaussian model computes from theta, as graphs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.reading.gaussian_prior import PriorGraphs, prior_graphs
from pymc_pseudomarginal.reading.graphs import rebuild
from pymc_pseudomarginal.reading.layout import Layout
from pymc_pseudomarginal.reading.linear_maps import VaryingMatrix, graph_at, products_graph
from pymc_pseudomarginal.reading.predictor_matrix import PredictorMatrix, frozen_entries
from pymc_pseudomarginal.reading.structure import Structure
from pymc_pseudomarginal.reading.term_likelihood import TermGraphs


class ModelGraphs:
    """Graphs of a model that was taken apart, in one vector theta and one vector x.

    Parameters
    ----------
    structure : Structure

    Attributes
    ----------
    theta, x : Layout
        Where the free variables stand in the two vectors.
    """

    def __init__(self, structure: Structure):
        self.structure = structure
        self.theta = Layout.of("theta", structure.theta, structure.space.start)
        self.x = Layout.of("x", structure.members, structure.space.start)

    @cached_property
    def of_theta(self) -> list[TensorVariable]:
        """Log prior, b, c, g; then, where they vary, the products of A and of Q, J and D."""
        prior, nothing = self.prior, np.zeros(self.x.size)
        graphs = [
            self._log_prior,
            graph_at(self._eta, self.x.vector, nothing),
            *self._in_theta([prior.constant, prior.linear]),
        ]
        graphs += self.A.graphs
        if self.Q.varying.size:
            product = self._in_theta([prior.hessian_product])[0]
            graphs.append(products_graph(product, prior.v, self.Q.seeds))
        if prior.rows is not None:
            graphs += self._in_theta([prior.rows, prior.row_weights])
        return graphs

    @cached_property
    def prior(self) -> PriorGraphs:
        """Of x, in the variables of theta."""
        space = self.structure.space
        graphs = [space.log_densities[v] for v in self.structure.members]
        return prior_graphs(space, self.x, graphs + self.structure.quadratic)

    @cached_property
    def A(self) -> PredictorMatrix:
        """The matrix of the predictors."""
        return PredictorMatrix(self.structure, self.x, self.theta, self._eta)

    @cached_property
    def Q(self) -> VaryingMatrix:
        """The precision of x, without the rows that are kept apart."""
        prior = self.prior
        product = self._in_theta([prior.hessian_product])[0]
        return frozen_entries(product, prior.v, prior.entries, self.structure, self.theta)

    @cached_property
    def terms(self) -> TermGraphs | None:
        """The likelihood and its derivatives, or None if nothing has terms."""
        terms = self.structure.terms
        if terms is None:
            return None
        return TermGraphs(terms, self._in_theta([terms.graph])[0], self.theta.vector)

    @cached_property
    def stored(self) -> list[TensorVariable]:
        """What PyMC stores of the variables that x holds whitened."""
        graphs = [w.graph for w in self.structure.space.stored.values()]
        return self._in_theta(rebuild(graphs, self.x.replacements))

    def _in_theta(self, graphs: list[TensorVariable]) -> list[TensorVariable]:
        return rebuild(graphs, self.theta.replacements)

    @cached_property
    def _log_prior(self) -> TensorVariable:
        """Log p(theta) and all that is observed of theta alone."""
        structure, space = self.structure, self.structure.space
        below = {f.name for f in structure.membership.factors}
        graphs = [space.log_densities[v] for v in structure.theta if space.names[v] not in below]
        alone = [f for f in space.factors if f.name not in below]
        graphs += space.log_densities_of(alone)
        total = sum((g.sum() for g in graphs), pt.zeros(()))
        return self._in_theta([total.astype("float64")])[0]

    @cached_property
    def _eta(self) -> TensorVariable:
        """Eta as a graph of theta and x, shape (m,)."""
        terms = self.structure.terms
        if terms is None:
            return pt.zeros((0,))
        stacked = pt.concatenate([pt.atleast_1d(p).ravel() for p in terms.places])
        (eta,) = rebuild([stacked.astype("float64")], self.x.replacements)
        return self._in_theta([eta])[0]
