"""The prior of x: c + g'x - x'Qx/2 from the model's own log densities.

Their value and gradient at x = 0 give c and g, normalisers included; Q comes from products of
the Hessian with seeds. A scalar over many elements of x in which the log density is quadratic
(the soft constraint of an intrinsic field) stays a row, u = j'x, of weight d: Q + J'DJ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.reading.affinity import find_affine
from pymc_pseudomarginal.reading.colouring import colour_symmetric
from pymc_pseudomarginal.reading.graphs import in_place_of, rebuild
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.layout import Layout
from pymc_pseudomarginal.reading.linear_maps import Entries, graph_at
from pymc_pseudomarginal.reading.patterns import propagate, quadratic_pattern
from pymc_pseudomarginal.reading.value_space import ValueSpace


@dataclass(frozen=True)
class PriorGraphs:
    """Graphs of theta for the prior of x.

    Attributes
    ----------
    constant, linear : TensorVariable
        c, a scalar, and g, shape (n,).
    hessian_product : TensorVariable, shape (n,)
        Q v.
    v : TensorVariable, shape (n,)
    entries : Entries
        Of Q, without the rows.
    rows, row_weights : TensorVariable or None
        J, shape (r, n), and D, shape (r, r).
    """

    constant: TensorVariable
    linear: TensorVariable
    hessian_product: TensorVariable
    v: TensorVariable
    entries: Entries
    rows: TensorVariable | None
    row_weights: TensorVariable | None


def prior_graphs(
    space: ValueSpace, layout: Layout, graphs: Sequence[TensorVariable]
) -> PriorGraphs:
    """Write the prior of x.

    Parameters
    ----------
    space : ValueSpace
    layout : Layout
        Of x.
    graphs : sequence of TensorVariable
        Log densities that are quadratic in x, in value space.
    """
    entries, scalars = _pattern(space, layout, graphs)
    total = sum((g.sum() for g in graphs), pt.zeros(()))
    x, v, n = layout.vector, pt.vector("v", shape=(layout.size,), dtype="float64"), layout.size
    (density,) = rebuild([total], layout.replacements)
    density = density.astype("float64")
    gradient = pt.grad(density, x, disconnected_inputs="ignore")
    zero = np.zeros(n)
    rows = weights = None
    apart = gradient
    if scalars:
        u = pt.vector("u", shape=(len(scalars),), dtype="float64")
        stand_in = {s: in_place_of(s, u[k].reshape((1,) * s.ndim)) for k, s in enumerate(scalars)}
        (density,) = rebuild(rebuild([total], stand_in), layout.replacements)
        density = density.astype("float64")
        apart = pt.grad(density, x, disconnected_inputs="ignore")
        rows, weights = _rows(layout, scalars, density, u)
        at_zero = {u: pt.zeros((len(scalars),)), x: pt.as_tensor_variable(zero)}
        rows, weights = rebuild([rows, weights], at_zero)
        (apart,) = rebuild([apart], {u: at_zero[u]})
    product = -pt.grad((apart * v).sum(), x, disconnected_inputs="ignore")
    constant, linear = rebuild(
        [rebuild([total], layout.replacements)[0], gradient], {x: zero_of(n)}
    )
    return PriorGraphs(
        constant.astype("float64"),
        linear,
        graph_at(product, x, zero),
        v,
        entries,
        rows,
        weights,
    )


def zero_of(n: int) -> TensorVariable:
    """A constant vector of zeros."""
    return pt.as_tensor_variable(np.zeros(n))


def _rows(layout: Layout, scalars, density, u):
    """J and D of the scalars that stay rows."""
    x = layout.vector
    inside = rebuild(scalars, layout.replacements)
    rows = pt.stack([pt.grad(s.sum(), x) for s in inside])
    slope = pt.grad(density, u)
    weights = -pt.stack(
        [pt.grad(slope[k], u, disconnected_inputs="ignore") for k in range(len(scalars))]
    )
    return rows, weights


def _pattern(space: ValueSpace, layout: Layout, graphs) -> tuple[Entries, list[TensorVariable]]:
    interpreter = Interpreter(graphs, space.inputs)
    rng = np.random.default_rng(1)
    affinity = find_affine(interpreter, layout.variables, space.trials[:2], rng)
    patterns = propagate(affinity, layout.seeds, affinity.is_affine, with_slopes=True)
    pattern, varying, scalars = quadratic_pattern(affinity, patterns, layout.size)
    return Entries.of(colour_symmetric(pattern), varying), scalars
