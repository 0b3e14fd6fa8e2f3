"""Which elements of which variables depend on which elements of x: by structure, never by luck.

A pattern may be larger than the truth but never smaller. Only zeros that no theta can change
count; Ops without a rule depend on everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from pytensor.graph.basic import Apply, Variable
from scipy.sparse import csr_array, eye_array

from pymc_pseudomarginal.reading.affinity import Affinity
from pymc_pseudomarginal.reading.dependence import (
    DenseDependence,
    adds,
    dependence_on_input,
    slope_moves,
)

__all__ = ["DenseDependence", "Pattern", "Patterns", "propagate", "quadratic_pattern"]

Pattern: TypeAlias = csr_array
"""Boolean, shape (size of a variable, n): the elements of x behind each of its elements."""

LOW_RANK_FROM = 200
"""Elements of x from which a scalar over them is kept as a row."""
MAX_ENTRIES = 3e7


@dataclass(frozen=True)
class Patterns:
    """How variables depend on x.

    Attributes
    ----------
    of : dict
        The pattern of every variable.
    varying : dict
        The part of it whose slopes may change with theta; none where a variable is missing.
    """

    of: dict[Variable, Pattern]
    varying: dict[Variable, Pattern]


def propagate(
    affinity: Affinity,
    seeds: Mapping[Variable, Pattern],
    follow: Callable[[Variable], bool],
    *,
    with_slopes: bool = False,
) -> Patterns:
    """Patterns of everything below the seeds.

    Parameters
    ----------
    affinity : Affinity
        Of the graph.
    seeds : mapping
        Patterns of the variables to begin with.
    follow : callable
        Whether the pattern of an output is wanted.
    with_slopes : bool
        Follow too which slopes may change with theta.
    """
    found = Patterns(dict(seeds), {})
    for node in affinity.interpreter.nodes:
        dependent = [k for k, i in enumerate(node.inputs) if i in found.of]
        if not dependent:
            continue
        for o, output in enumerate(node.outputs):
            if output not in found.of and follow(output):
                total, varying = _behind(
                    node, o, dependent, found, affinity, with_slopes=with_slopes
                )
                if total is not None:
                    found.of[output] = total
                if varying is not None and varying.nnz:
                    found.varying[output] = varying
    return found


def quadratic_pattern(
    affinity: Affinity, patterns: Patterns, n: int
) -> tuple[Pattern, Pattern, list[Variable]]:
    """Pattern of the Hessian of a log density that is quadratic in x, and scalars kept apart.

    Where a graph stops being affine, all elements of x behind one element of the result are
    coupled. A scalar over many elements of x that a node is curved in by itself would couple
    them all: it is left out, and returned.

    Parameters
    ----------
    affinity : Affinity
        Of the log density.
    patterns : Patterns
        Of all affine variables.
    n : int
        The size of x.

    Returns
    -------
    pattern, varying : csr_array of bool, shape (n, n)
        Of all entries, and of those that may change with theta.
    rows : list of Variable
    """
    pattern = csr_array(eye_array(n, dtype=bool, format="csr"))
    varying = csr_array((n, n), dtype=bool)
    rows: list[Variable] = []
    scaled = _scaled_by_theta(affinity)
    for node in affinity.interpreter.nodes:
        dependent = [
            k for k, i in enumerate(node.inputs) if affinity.is_affine(i) and i in patterns.of
        ]
        curved = [o for o, output in enumerate(node.outputs) if affinity.is_curved(output)]
        if not dependent or not curved or adds(node):
            continue
        inputs = [node.inputs[k] for k in dependent]
        if len(inputs) == 1 and _is_long_row(patterns.of[inputs[0]]):
            rows.append(inputs[0])
            continue
        moving = any(i in patterns.varying for i in inputs) or any(
            slope_moves(node, k, affinity) for k in dependent
        )
        for o in curved:
            coupled = _coupled(node, o, dependent, patterns, affinity)
            pattern = _union(pattern, coupled)
            if moving or node.outputs[o] in scaled:
                varying = _union(varying, coupled)
    return pattern, varying, list(dict.fromkeys(rows))


def _scaled_by_theta(affinity: Affinity) -> set[Variable]:
    """Variables that theta multiplies somewhere below."""
    scaled: set[Variable] = set()
    for node in reversed(affinity.interpreter.nodes):
        below = not scaled.isdisjoint(node.outputs)
        for k, i in enumerate(node.inputs):
            if affinity.depends(i) and (below or slope_moves(node, k, affinity)):
                scaled.add(i)
    return scaled


def _is_long_row(pattern: Pattern) -> bool:
    return pattern.shape[0] == 1 and pattern.nnz > LOW_RANK_FROM


def _coupled(node: Apply, o: int, dependent, patterns: Patterns, affinity: Affinity) -> Pattern:
    """Which elements of x meet in one element of an output."""
    behind, _ = _behind(node, o, dependent, patterns, affinity, with_slopes=False)
    if behind is None:
        n = next(iter(patterns.of.values())).shape[1]
        return csr_array((n, n), dtype=bool)
    widest = int(np.diff(behind.indptr).max(initial=0))
    if float(widest) ** 2 > MAX_ENTRIES:
        raise DenseDependence(f"the prior couples {widest} variables with each other")
    counts = behind.astype(np.int32)
    return _boolean(counts.T @ counts)


def _behind(
    node: Apply, o: int, dependent, patterns: Patterns, affinity: Affinity, *, with_slopes: bool
) -> tuple[Pattern | None, Pattern | None]:
    """The pattern of one output of a node, and the part of it whose slopes vary."""
    total: Pattern | None = None
    varying: Pattern | None = None
    for k in dependent:
        step = dependence_on_input(node, k, o, affinity)
        if step is None:
            continue
        source = node.inputs[k]
        piece = _compose(step, patterns.of[source])
        total = _joined(total, piece)
        if total.nnz > MAX_ENTRIES:
            raise DenseDependence(f"{type(node.op).__name__} with {total.nnz} dependences")
        if with_slopes and slope_moves(node, k, affinity):
            varying = _joined(varying, piece)
        elif with_slopes and source in patterns.varying:
            varying = _joined(varying, _compose(step, patterns.varying[source]))
    return total, varying


def _compose(step: np.ndarray | csr_array, pattern: Pattern) -> Pattern:
    """The pattern behind an output: rows of the input's, or a product."""
    if isinstance(step, np.ndarray):
        if (step < 0).any():  # an element that does not come from this input
            rows = np.flatnonzero(step >= 0)
            shape = (step.size, pattern.shape[0])
            chosen = csr_array((np.ones(rows.size, np.int32), (rows, step[rows])), shape=shape)
            return _boolean(chosen @ pattern.astype(np.int32))
        return csr_array(pattern[step])
    return _boolean(step.astype(np.int32) @ pattern.astype(np.int32))


def _boolean(matrix) -> Pattern:
    matrix = csr_array(matrix)
    matrix.eliminate_zeros()
    return matrix.astype(bool)


def _joined(first: Pattern | None, second: Pattern) -> Pattern:
    return second if first is None else _union(first, second)


def _union(first: Pattern, second: Pattern) -> Pattern:
    return _boolean(first.astype(np.int32) + second.astype(np.int32))
