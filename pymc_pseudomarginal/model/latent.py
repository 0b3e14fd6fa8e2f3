"""Finding the latent Gaussian f of a model, its mean and its covariance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_graph
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace, vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.math import Dot
from pytensor.tensor.random.basic import MvNormalRV, NormalRV
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import (
    INDEXING,
    INTERPRETED,
    client_map,
    constant_value,
    core_op,
    depends_on,
    scalar_op_name,
    skip_views_and_axes,
)
from pymc_pseudomarginal.model.points import trial_points

_ZERO = pt.zeros((1,))


@dataclass(frozen=True)
class Latent:
    """f ~ N(mean, covariance) as found in the graph of a model.

    Attributes
    ----------
    free_rv : TensorVariable
        The free variable that PyMC stores: f itself or, if `whitened`, the standard
        normal z with f = mean + A z.
    f : TensorVariable
        The node of f on which the observed variables hang.
    size : int
        n.
    mean : TensorVariable, shape (n,) or broadcastable to it
    covariance : TensorVariable or None, shape (n, n)
        None if it is given by its `root`.
    root : TensorVariable or None, shape (n, n)
        A with covariance A Aᵀ; None where A is the Cholesky factor of `covariance`.
    whitened : bool
    structured : bool
        Whether the elements of f are correlated; independent effects are not.
    """

    free_rv: TensorVariable
    f: TensorVariable
    size: int
    mean: TensorVariable
    covariance: TensorVariable | None
    root: TensorVariable | None
    whitened: bool
    structured: bool = True

    @property
    def name(self) -> str:
        """The name by which the user knows f."""
        return self.f.name or self.free_rv.name

    @property
    def moments(self) -> list[TensorVariable]:
        """The graphs that make up the prior."""
        return [x for x in (self.mean, self.covariance, self.root) if x is not None]


def latent_candidates(model: pm.Model) -> list[Latent]:
    """Every free Gaussian vector, seen as a latent f.

    A Gaussian vector that enters only the prior of another (coefficients of a mean
    function, say) is a hyper-parameter and not among them; nor is one below which nothing
    is observed (the process at new inputs, say), unless this is true of all.
    """
    observed = client_map([*model.observed_RVs, *model.potentials])
    # What nothing observed uses may still be used, and named, by a deterministic.
    clients = client_map(model.deterministics) | observed
    start = model.initial_point()
    candidates = []
    for rv in model.free_RVs:
        if rv.ndim != 1:
            continue
        size = start[model.rvs_to_values[rv].name].size
        if isinstance(core_op(rv), MvNormalRV):
            candidates.append(_multivariate_normal(rv, size))
        elif isinstance(core_op(rv), NormalRV):
            mu, sigma = rv.owner.op.dist_params(rv.owner)
            if _equals(mu, 0.0) and _equals(sigma, 1.0):
                candidates.append(_whitened(model, rv, size, clients))
            else:
                covariance = pt.diag(pt.broadcast_to(sigma, (size,)) ** 2)
                candidates.append(
                    Latent(rv, rv, size, mu, covariance, None, whitened=False, structured=False)
                )
    candidates = [c for c in candidates if c.free_rv in observed] or candidates
    above = {id(v) for c in candidates for v in ancestors(c.moments)}
    return [c for c in candidates if id(c.free_rv) not in above]


def _equals(parameter: Variable, number: float) -> bool:
    value = constant_value(parameter)
    return value is not None and bool((value == number).all())


def _multivariate_normal(rv: TensorVariable, size: int) -> Latent:
    mean, covariance = rv.owner.op.dist_params(rv.owner)
    if type(core_op(covariance)).__name__ == "MatrixInverse":
        # tau= was given; rounding leaves its inverse a little asymmetric.
        covariance = 0.5 * (covariance + covariance.T)
    return Latent(rv, rv, size, mean, covariance, None, whitened=False)


def _whitened(model: pm.Model, z: TensorVariable, size: int, clients: dict) -> Latent:
    """F = mean + A z for a standard normal z, wherever the graph is still affine in z."""
    chain = _chain_below(z, clients)
    for length in range(len(chain), 1, -1):
        product = _matrix_product(chain[:length])
        if product is not None and _is_cholesky(product[0]) and chain[length - 1].ndim == 1:
            matrix, mean = product
            covariance = matrix.owner.inputs[0]
            return Latent(z, chain[length - 1], size, mean, covariance, None, whitened=True)
    length = _affine_length(model, z, size, chain)
    if length == 1:
        root = pt.eye(size)
        return Latent(z, z, size, _ZERO, None, root, whitened=True, structured=False)
    product = _matrix_product(chain[:length])
    if product is not None:
        matrix, mean = product
        return Latent(z, chain[length - 1], size, mean, None, matrix, whitened=True)
    return _by_columns(model, z, size, chain[length - 1])


def _is_cholesky(matrix: TensorVariable) -> bool:
    # By name: the class moved between the two PyTensor versions.
    return type(core_op(matrix)).__name__ == "Cholesky"


def _chain_below(z: TensorVariable, clients: dict) -> list[TensorVariable]:
    """Z and what is made of it, node by node, up to the first name, index or branch."""
    chain = [z]
    while True:
        # Who only asks for the shape does not depend on the values.
        consumers = [n for n in clients.get(chain[-1], []) if not isinstance(n.op, Shape | Shape_i)]
        if len(consumers) != 1:
            break
        node = consumers[0]
        if len(node.outputs) != 1 or isinstance(node.op, INDEXING):
            break
        chain.append(node.outputs[0])
        if chain[-1].name is not None:
            break  # the first name that the user (or the GP) gave is where f is complete
    return chain


def _affine_length(model, z, size, chain) -> int:
    """How many nodes of the chain, from z on, lead to the last one that can be f.

    That one is a vector of the size of z and an affine function of it, as seen from its
    values at a few points.
    """
    first, second = np.random.default_rng(0).standard_normal((2, size))
    values = _evaluate(model, z, chain, [first, second, first + second, 0.0 * first])
    length = 1
    if values is None:
        return length
    for position, (a, b, both, zero) in enumerate(zip(*values, strict=True), start=1):
        scale = np.max(np.abs(both), initial=1.0)
        if not np.allclose(a + b, both + zero, rtol=1e-8, atol=1e-8 * scale):
            break
        if both.shape == first.shape:
            length = position
    return length


def _evaluate(model, z, outputs, arguments) -> list | None:
    """Values of the outputs at several z, for some theta where they are finite."""
    graphs = model.replace_rvs_by_values(outputs)
    hyper = [model.rvs_to_values[rv] for rv in model.free_RVs if rv is not z]
    function = compile_graph(
        [*hyper, model.rvs_to_values[z]], graphs, mode=INTERPRETED, on_unused_input="ignore"
    )
    for point in trial_points(model, hyper):
        try:
            values = [function(*point, argument) for argument in arguments]
        except np.linalg.LinAlgError:
            continue
        if all(np.isfinite(x).all() for row in values for x in row):
            return values
    return None


def _matrix_product(chain) -> tuple[TensorVariable, TensorVariable] | None:
    """(A, mean) if the chain is A z plus a mean, with nothing but axes between."""
    matrix, terms = None, []
    for variable, output in pairwise(chain):
        if skip_views_and_axes(output) is skip_views_and_axes(variable):
            continue
        inputs = output.owner.inputs
        if matrix is None and isinstance(core_op(output), Dot) and inputs[1] is variable:
            matrix = inputs[0]
            if matrix.ndim != 2 or depends_on(matrix, chain[0]):
                return None
        elif matrix is not None and scalar_op_name(output) == "Add" and output.ndim == 1:
            terms += [term for term in inputs if term is not variable]
        else:
            return None
    if matrix is None:
        return None
    return matrix, sum(terms, start=_ZERO)


def _by_columns(model, z, n, f) -> Latent:
    """Mean and root of an affine f(z) from its values at zero and at the unit vectors."""
    zero, unit = pt.zeros((n,)), pt.matrix("unit", shape=(n, n))
    (mean,) = graph_replace([f], {z: zero}, strict=False)
    columns = vectorize_graph(f, {z: unit})
    (columns,) = graph_replace([columns], {unit: pt.eye(n)}, strict=False)
    root = (columns - mean).T
    values = _evaluate(model, z, [root], [np.zeros(n)])
    A = np.eye(n) if values is None else values[0][0]
    structured = bool((np.diag(np.diagonal(A)) != A).any())
    return Latent(z, f, n, mean, None, root, whitened=True, structured=structured)
