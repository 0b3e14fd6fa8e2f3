"""A model as graphs of its value variables: log densities, parameters of what is observed.

Everything that the reader asks of a model it asks of these graphs. A multivariate normal
variable v is written as mu + chol(K) z from the start: z takes its place as the variable, so
that dense covariances and those of a Gaussian process that PyMC whitens itself are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.multivariate import MvNormalRV
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.stable_densities import stable_log_density
from pymc_pseudomarginal.reading.graphs import (
    in_place_of,
    is_discrete,
    rebuild,
    simplified,
)
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.markov_fields import markov_log_density

_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)
_JITTER = 0.3


@dataclass(frozen=True)
class Factor:
    """One observed variable, potential, or free variable below the latent.

    Attributes
    ----------
    name : str
    kind : str
        "observed", "potential" or "free".
    rv : TensorVariable or None
        The observed variable.
    graphs : list of TensorVariable
        The inputs of an observed variable's distribution, or the log density, in value space.
    """

    name: str
    kind: str
    rv: TensorVariable | None
    graphs: list[TensorVariable]


@dataclass(frozen=True)
class ValueSpace:
    """A model in value space.

    Attributes
    ----------
    model : pymc.Model
    free : list of TensorVariable
        The free variables on which something observed depends.
    unobserved : list of TensorVariable
        The other free variables: drawn from their own distribution afterwards.
    variables : dict
        For every free variable the input that stands for it: its value variable, or z.
    log_densities : dict
        For every such input the log density of its free variable, Jacobians included.
    factors : list of Factor
        Observed variables and potentials.
    stored : dict
        For every whitened input the graph of what PyMC stores, mu + chol(K) z, and of its
        mean and Cholesky factor.
    """

    model: pm.Model
    free: list[TensorVariable]
    unobserved: list[TensorVariable]
    variables: dict[TensorVariable, TensorVariable]
    log_densities: dict[TensorVariable, TensorVariable]
    factors: list[Factor]
    stored: dict[TensorVariable, Whitened]

    @property
    def inputs(self) -> list[TensorVariable]:
        """The variables in the order in which the user created them."""
        return list(self.variables.values())

    @cached_property
    def names(self) -> dict[TensorVariable, str]:
        """The user's names of the inputs."""
        return {variable: str(rv.name) for rv, variable in self.variables.items()}

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        """The initial point, by the names of the inputs."""
        return self.from_point(self.model.initial_point(0))

    @cached_property
    def trials(self) -> list[dict[str, np.ndarray]]:
        """Three points off the initial one, where a coefficient may be zero."""
        rng = np.random.default_rng(20)
        return [
            {
                name: value + _JITTER * rng.standard_normal(value.shape)
                if value.dtype.kind == "f"
                else value
                for name, value in self.start.items()
            }
            for _ in range(3)
        ]

    def log_densities_of(self, factors: Iterable[Factor]) -> list[TensorVariable]:
        """Log densities of observed variables and potentials."""
        return [
            f.graphs[0] if f.rv is None else observed_log_density(self.model, f, f.graphs)
            for f in factors
        ]

    def size(self, variable: TensorVariable) -> int:
        """The number of elements of an input."""
        return int(np.size(self.start[variable.name]))

    def from_point(self, point) -> dict[str, np.ndarray]:
        """Values of the inputs from those of PyMC's value variables."""
        result: dict[str, np.ndarray] = {}
        for rv, variable in self.variables.items():
            value = np.asarray(point[self.model.rvs_to_values[rv].name])
            if variable in self.stored:
                value = self.stored[variable].whiten(value, result)
            result[str(variable.name)] = value
        return result


@dataclass(frozen=True)
class Whitened:
    """A multivariate normal variable v = mu + L z.

    Attributes
    ----------
    graph, mean, factor : TensorVariable
        v, mu and L in value space.
    """

    graph: TensorVariable
    mean: TensorVariable
    factor: TensorVariable

    @cached_property
    def _moments(self) -> Interpreter:
        outputs = [self.mean, self.factor]
        inputs = [v for v in explicit_graph_inputs(outputs) if isinstance(v, TensorVariable)]
        return Interpreter(outputs, inputs)

    def whiten(self, value: np.ndarray, point: dict[str, np.ndarray]) -> np.ndarray:
        """Z of a value of v, given the variables before it."""
        values = self._moments(point)
        mean, factor = (Interpreter.value(g, values) for g in (self.mean, self.factor))
        residual = np.broadcast_to(value - mean, value.shape)[..., None]
        return np.linalg.solve(np.broadcast_to(factor, (*value.shape, value.shape[-1])), residual)[
            ..., 0
        ]


def to_value_space(model: pm.Model) -> ValueSpace:
    """Write a model in value space.

    Raises
    ------
    UnsupportedModelError
        If a free variable is discrete.
    """
    unobserved = _unobserved(model)
    free = [rv for rv in model.free_RVs if rv not in unobserved]
    for rv in free:
        if is_discrete(rv):
            raise UnsupportedModelError(
                f"The free variable {rv.name!r} is discrete; all that is sampled must be "
                "continuous. Marginalise it (pymc_extras.marginalize, pm.Mixture) or fix it."
            )
    variables = {rv: model.rvs_to_values[rv] for rv in free}
    whitened: dict[TensorVariable, Whitened] = {}
    replaced: dict[Variable, Variable] = {}
    for rv in free:
        if isinstance(rv.owner.op, MvNormalRV) and model.rvs_to_transforms[rv] is None:
            value = variables[rv]
            variables[rv] = z = value.type(f"{rv.name}_whitened__")
            whitened[z] = _whiten(model, rv, z, replaced)
            replaced[value] = in_place_of(value, whitened[z].graph)
    densities = rebuild(_log_densities(model, variables, whitened), replaced)
    factors = _factors(model, replaced)
    return ValueSpace(
        model,
        free,
        unobserved,
        variables,
        dict(zip(variables.values(), densities, strict=True)),
        factors,
        whitened,
    )


def _unobserved(model: pm.Model) -> list[TensorVariable]:
    """Free variables on which nothing observed depends, directly or through others."""
    above = set(ancestors([*model.observed_RVs, *model.potentials]))
    return [rv for rv in model.free_RVs if rv not in above]


def _whiten(model, rv, z, replaced) -> Whitened:
    parameters = model.replace_rvs_by_values(list(rv.owner.op.dist_params(rv.owner)))
    mean, covariance = rebuild(simplified(parameters), replaced)
    factor = pt.linalg.cholesky(covariance)
    graph = mean + pt.matmul(factor, z[..., None])[..., 0]
    return Whitened(graph, mean, factor)


def _log_densities(model, variables, whitened) -> list[TensorVariable]:
    result = {}
    plain = []
    for rv, variable in variables.items():
        if variable in whitened:
            result[rv] = -0.5 * variable**2 - _LOG_ROOT_2PI
        elif type(rv.owner.op).__name__ in {"CARRV", "ICARRV"}:
            parameters = model.replace_rvs_by_values(list(rv.owner.op.dist_params(rv.owner)))
            graph = markov_log_density(rv, variable, parameters)
            if graph is None:
                plain.append(rv)
            else:
                result[rv] = simplified([graph])[0]
        else:
            plain.append(rv)
    if plain:
        try:
            graphs = simplified(model.logp(vars=plain, sum=False))
        except NotImplementedError as error:
            raise UnsupportedModelError(
                f"PyMC has no log density for a variable of the model: {error} Write it as a "
                "distribution that has one, or as a pm.Potential."
            ) from error
        result |= dict(zip(plain, graphs, strict=True))
    return [result[rv] for rv in variables]


def _factors(model, replaced) -> list[Factor]:
    """All at once, so that what two factors share stays shared."""
    inputs = [list(rv.owner.inputs) for rv in model.observed_RVs]
    flat = [i for own in inputs for i in own]
    graphs = model.replace_rvs_by_values([*flat, *model.potentials])
    graphs = iter(simplified(rebuild(graphs, replaced)))
    observed = [
        Factor(str(rv.name), "observed", rv, [next(graphs) for _ in own])
        for rv, own in zip(model.observed_RVs, inputs, strict=True)
    ]
    potentials = [Factor(str(p.name), "potential", None, [next(graphs)]) for p in model.potentials]
    return observed + potentials


def observed_log_density(
    model: pm.Model, factor: Factor, inputs: Sequence[TensorVariable]
) -> TensorVariable:
    """Log density of an observed variable, elementwise, whose distribution has these inputs."""
    rv = factor.rv
    assert rv is not None
    if type(rv.owner.op).__name__ == "PartialObservedRV":
        raise UnsupportedModelError(
            f"{factor.name!r} belongs to a multivariate distribution of which some values are "
            "missing. Expected complete observations: leave the incomplete ones out, or write the "
            "distribution as univariate ones."
        )
    node = rv.owner.op.make_node(*inputs)
    drawn = node.outputs[rv.owner.outputs.index(rv)]
    value = model.rvs_to_values[rv]
    try:
        stable = stable_log_density(drawn, value)
        return pm.logp(drawn, value, warn_rvs=False) if stable is None else stable
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise UnsupportedModelError(
            f"PyMC has no log density for {factor.name!r} on its own: {error} Write it as a "
            "distribution that has one, or as a pm.Potential."
        ) from error


def depends_on_any(graphs: Iterable[TensorVariable], sources) -> bool:
    """Whether one of the sources is above one of the graphs."""
    wanted = set(sources)
    return any(v in wanted for v in ancestors(list(graphs)))
