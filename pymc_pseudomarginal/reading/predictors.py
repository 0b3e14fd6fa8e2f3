"""The linear predictors: the last variables above the likelihood that are affine in x."""

from __future__ import annotations

from collections.abc import Iterable

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.reading.affinity import Affinity, Kind
from pymc_pseudomarginal.reading.graphs import CHECKS, op_name
from pymc_pseudomarginal.reading.moving import MOVING_OPS
from pymc_pseudomarginal.reading.value_space import Factor


def find_predictors(
    factors: Iterable[Factor], affinity: Affinity, *, merge: bool
) -> dict[str, list[TensorVariable]]:
    """The predictors of every factor, by its name.

    Parameters
    ----------
    factors : iterable of Factor
    affinity : Affinity
    merge : bool
        Climb from ``u[i]`` to the smaller ``u`` wherever the graph between is one chain. With
        one predictor a term this merges equal rows; with several it would couple terms.
    """
    result = {}
    for factor in factors:
        predictors = _cut(factor, affinity)
        while (climbed := _climb(predictors, affinity, merge)) != predictors:
            predictors = climbed
        result[factor.name] = predictors
    return result


def _cut(factor: Factor, affinity: Affinity) -> list[TensorVariable]:
    """Affine variables that something curved, a distribution or the factor itself uses."""
    above = set(ancestors(factor.graphs))
    interpreter = affinity.interpreter
    outputs = [output for node in interpreter.nodes for output in node.outputs]
    return [
        v
        for v in [*affinity.members, *outputs]
        if affinity.is_affine(v)
        and v in above
        and (
            v in factor.graphs
            or v in interpreter.sinks
            or any(
                affinity.kind(output) is Kind.CURVED and output in above
                for node in interpreter.clients.get(v, [])
                for output in node.outputs
            )
        )
    ]


def _climb(predictors, affinity: Affinity, merge: bool) -> list[TensorVariable]:
    """Predictors that are elementwise functions of one variable give way to it.

    ``cutpoints - eta[:, None]`` and ``eta / s`` are both functions of eta. The chains upwards
    form trees; of each the lowest variable that all chains share is taken, or the smallest above.
    """
    trees: dict[Variable, list[list[TensorVariable]]] = {}
    for predictor in predictors:
        chain = _chain(predictor, affinity)
        trees.setdefault(chain[-1], []).append(chain)
    result = []
    for chains in trees.values():
        shared = [v for v in chains[0] if all(v in chain for chain in chains[1:])]
        result.append(min(shared, key=affinity.size) if merge else shared[0])
    return result


def _chain(variable: TensorVariable, affinity: Affinity) -> list[TensorVariable]:
    """The variable and, upwards, what it is an elementwise or rearranged copy of."""
    chain = [variable]
    while (node := variable.owner) is not None:
        if not (isinstance(node.op, Elemwise) or op_name(node) in MOVING_OPS | CHECKS):
            break
        sources = {i for i in node.inputs if affinity.depends(i)}
        if len(sources) != 1:
            break
        (variable,) = sources
        if not affinity.is_affine(variable):
            break
        chain.append(variable)
    return chain
