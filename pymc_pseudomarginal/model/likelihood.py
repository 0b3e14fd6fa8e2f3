"""The likelihood p(y|f, theta) of a model: checked for factorisation, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_graph
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array

from pymc_pseudomarginal.model.closed_forms import ClosedForm, find_closed_form
from pymc_pseudomarginal.model.dependence import NO_LATENT, find_owners, is_separable
from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.factors import Factor, concatenate, read_factors
from pymc_pseudomarginal.model.graph import INTERPRETED, depends_on
from pymc_pseudomarginal.model.graph_likelihood import GraphFunctions, GraphLikelihood
from pymc_pseudomarginal.model.latent import Latent
from pymc_pseudomarginal.model.points import trial_points
from pymc_pseudomarginal.numerics.likelihoods import Likelihood, LinearPredictorLikelihood

LikelihoodFunction = Callable[[Sequence[np.ndarray]], Likelihood]
"""Values of the value variables of theta -> p(y|f, theta)."""


def find_likelihood(
    model: pm.Model, latent: Latent, hyperparameters: Sequence[TensorVariable]
) -> Observation:
    """Everything observed of f; `Observation.bind` checks whether it factorises."""
    f = pt.vector("f", shape=(latent.size,))
    parameters = [model.rvs_to_values[rv] for rv in hyperparameters]
    return Observation(model, latent, f, read_factors(model, latent, f), parameters)


@dataclass(frozen=True, repr=False)
class Observation:
    """What is observed of f.

    Attributes
    ----------
    model : pymc.Model
    latent : Latent
    f : TensorVariable, shape (n,)
        The input that stands for f in the graphs of the factors.
    factors : tuple of Factor
    parameters : list of TensorVariable
        The value variables of theta.
    """

    model: pm.Model
    latent: Latent
    f: TensorVariable
    factors: tuple[Factor, ...]
    parameters: list[TensorVariable]

    @property
    def size(self) -> int:
        """n, the number of latent values."""
        return self.latent.size

    @cached_property
    def functions(self) -> GraphFunctions:
        """The graph of the likelihood, compiled at first use."""
        elements = [element for factor in self.factors for element in factor.elements]
        return GraphFunctions(self.parameters, self.f, concatenate(elements))

    @cached_property
    def closed_form(self) -> ClosedForm | None:
        """The closed form of the only factor."""
        return find_closed_form(self.factors[0], self.f) if len(self.factors) == 1 else None

    @cached_property
    def predictor(self):
        """(*theta, f of shape (B, n)) -> eta of shape (B, m), and the family's parameters."""
        form = self.closed_form
        batch = pt.matrix("f_batch", shape=(None, self.size))
        outputs = [vectorize_graph(form.eta, {self.f: batch}), *form.parameters]
        function = compile_graph([*self.parameters, batch], outputs, on_unused_input="ignore")
        function.trust_input = True
        return function

    def bind(self) -> LikelihoodFunction:
        """Theta -> p(y|f, theta), for the data that the model holds now.

        Raises
        ------
        UnsupportedModelError
            If the data do not fit the model, or p(y|f) couples elements of f.
        """
        sizes, point = self._check_shapes()
        return self._bind_closed_form(point) or self._bind_graph(sizes, point)

    def _check_shapes(self) -> tuple[list[int], list[np.ndarray]]:
        """Sizes of the factors, and the values of theta at which the model was tried."""
        graphs = [concatenate(list(factor.elements)) for factor in self.factors]
        shapes = [_shape(factor) for factor in self.factors]
        function = compile_graph(
            [*self.parameters, self.f], graphs, mode=INTERPRETED, on_unused_input="ignore"
        )
        f = np.random.default_rng(0).standard_normal(self.size)
        for point in trial_points(self.model, self.parameters):
            try:
                values = function(*point, f)
            except ValueError as error:
                raise UnsupportedModelError(
                    f"log p(y|{self.latent.name}) cannot be evaluated: the latent has shape "
                    f"({self.size},) and the data {self._describe_shapes(shapes)}. Give one "
                    f"observation for each element, or index the latent. "
                    f"(PyTensor says: {str(error).splitlines()[0]})"
                ) from error
            if all(np.isfinite(value).all() for value in values):
                break
        for factor, shape, value in zip(self.factors, shapes, values, strict=True):
            if shape is not None and factor.rv.owner.op.ndim_supp == 0 and shape != value.shape:
                self._check_size(factor, shape, value)
        return [value.size for value in values], point

    def _check_size(self, factor, shape, value):
        if int(np.prod(shape)) != value.size:
            raise UnsupportedModelError(
                f"{factor.name!r} has data of shape {shape} for a distribution with "
                f"{value.size} elements (the latent {self.latent.name!r} has {self.size}). Give "
                "one observation for each element, or index the latent."
            )

    def _describe_shapes(self, shapes):
        return ", ".join(
            f"{factor.name} {shape}"
            for factor, shape in zip(self.factors, shapes, strict=True)
            if shape is not None
        )

    def _bind_closed_form(self, point) -> LikelihoodFunction | None:
        form = self.closed_form
        if form is None:
            return None
        y = _data(self.factors[0])
        rng = np.random.default_rng(0)
        index, coupled = find_owners(lambda f: self.predictor(*point, f)[0], self.size, rng)
        if coupled.any() or (index == NO_LATENT).any() or len(np.unique(index)) < len(index):
            return None
        tries = np.stack([np.zeros(self.size), np.ones(self.size), rng.standard_normal(self.size)])
        offset, one, at_random = self.predictor(*point, tries)[0]
        slope = one - offset
        if y.shape != index.shape or not np.allclose(
            offset + slope * tries[2, index], at_random, rtol=1e-9, atol=1e-9
        ):
            return None
        return _ClosedFormLikelihood(self, y, index)

    def _bind_graph(self, sizes, point) -> LikelihoodFunction:
        functions = self.functions
        rng = np.random.default_rng(0)
        log_elements = partial(functions.log_elements, *point)
        owners, coupled = find_owners(log_elements, self.size, rng)
        member = np.repeat(np.arange(len(sizes)), sizes)
        for i, factor in enumerate(self.factors):
            # What comes as one sum may still be one over the elements of f.
            terms = np.flatnonzero(coupled & (member == i))
            if len(terms) and not is_separable(
                lambda f, terms=terms: log_elements(f)[:, terms], self.size, rng
            ):
                raise UnsupportedModelError(
                    f"The likelihood of {factor.name!r} ({factor.kind}) couples elements of the "
                    f"latent {self.latent.name!r}: p(y|f) must be a product of terms with one "
                    "element of f each. Put the coupling into the covariance of the latent instead."
                )
        collect = None
        if not coupled.any():
            # A term without f is a constant; it may as well be counted with the first.
            rows = np.where(owners == NO_LATENT, 0, owners)
            columns = np.arange(len(owners))
            collect = csr_array(
                (np.ones(len(owners)), (rows, columns)), shape=(self.size, len(owners))
            )
        return lambda theta: GraphLikelihood(functions, theta, collect, self.names)

    @property
    def names(self) -> str:
        """The observed variables and potentials, for messages."""
        return ", ".join(repr(factor.name) for factor in self.factors)

    def __str__(self):
        """Every factor with its distribution and the hyper-parameters in it."""
        values = self.model.values_to_rvs
        described = []
        for factor in self.factors:
            inside = [
                values[v].name
                for v in self.parameters
                if any(depends_on(element, v) for element in factor.elements)
            ]
            given = ", ".join([self.latent.name, *inside])
            described.append(f"{factor.name} | {given} ~ {factor.kind}")
        form = self.closed_form
        return "; ".join(described) + (f" ({form.name})" if form is not None else "")


class _ClosedFormLikelihood:
    """Theta -> a closed-form likelihood of eta = slope f[index] + offset."""

    def __init__(self, observation: Observation, y: np.ndarray, index: np.ndarray):
        self.observation = observation
        self.y = y
        self.index = index
        form = observation.closed_form
        self._fixed = not any(
            depends_on(graph, v)
            for graph in (form.eta, *form.parameters)
            for v in observation.parameters
        )
        self._base = None if form.parameters else self._build()
        self._ends = np.stack([np.zeros(observation.size), np.ones(observation.size)])
        self._known: Likelihood | None = None

    def _build(self, *parameters):
        try:
            return self.observation.closed_form.build(self.y, *parameters)
        except ValueError as error:
            name = self.observation.factors[0].name
            raise UnsupportedModelError(f"{name!r}: {error}") from None

    def __call__(self, theta: Sequence[np.ndarray]) -> Likelihood:
        if self._known is not None:
            return self._known
        (offset, one), *parameters = self.observation.predictor(*theta, self._ends)
        base = self._base or self._build(*parameters)
        slope, size = one - offset, self.observation.size
        plain = np.array_equal(self.index, np.arange(size))
        if not (plain and np.all(slope == 1.0) and np.all(offset == 0.0)):
            base = LinearPredictorLikelihood(base, size, self.index, slope, offset)
        if self._fixed:
            self._known = base
        return base


def _data(factor: Factor) -> np.ndarray:
    return np.asarray(factor.value.eval(mode=INTERPRETED))


def _shape(factor: Factor) -> tuple[int, ...] | None:
    return None if factor.value is None else _data(factor).shape
