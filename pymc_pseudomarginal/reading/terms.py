"""The likelihood as terms, each a function of theta and of a few elements of eta."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.distributions.multivariate import DirichletMultinomialRV
from pytensor.tensor.random.basic import CategoricalRV, DirichletRV, MultinomialRV
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array, eye_array

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import INTERPRETED
from pymc_pseudomarginal.reading.affinity import Affinity, find_affine
from pymc_pseudomarginal.reading.graphs import (
    in_place_of,
    is_random,
    jumps,
    nodes_above,
    rebuild,
    simplified,
    summands,
)
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.patterns import propagate
from pymc_pseudomarginal.reading.value_space import Factor, ValueSpace, observed_log_density

MAX_PREDICTORS = 4
"""Predictors in one term, where it is not one a class."""

_OF_CLASSES = CategoricalRV | MultinomialRV | DirichletRV | DirichletMultinomialRV
_GRID = np.linspace(-3.0, 3.0, 13)
_BISECTIONS = 45
_JUMP = 1e-8


@dataclass(frozen=True)
class Terms:
    """All terms of the log-likelihood.

    Attributes
    ----------
    theta : list of TensorVariable
        The inputs that are not in x.
    eta : TensorVariable, shape (m,)
        The input that stands for all predictors.
    predictors : dict
        The predictors of every factor, by its name.
    places : dict
        For every predictor its slice of eta.
    graph : TensorVariable, shape (n_terms,)
    factors : list of Factor
        The factor of each run of terms.
    ends : array of int
        Where the terms of each factor end.
    groups : csr_array of bool, shape (n_terms, m)
        On which elements of eta each term depends.
    jumping : bool
        Whether a comparison or a step lies between eta and the terms.
    """

    theta: list[TensorVariable]
    eta: TensorVariable
    predictors: dict[str, list[TensorVariable]]
    places: dict[TensorVariable, slice]
    graph: TensorVariable
    factors: list[Factor]
    ends: np.ndarray
    groups: csr_array
    jumping: bool

    @property
    def counts(self) -> np.ndarray:
        """The number of predictors of each term."""
        return np.diff(self.groups.indptr)

    def evaluator(self) -> Callable[[Mapping, np.ndarray], np.ndarray]:
        """(theta by name, eta) -> terms, interpreted."""
        function = pytensor.function(
            [*self.theta, self.eta], self.graph, mode=INTERPRETED, on_unused_input="ignore"
        )

        def evaluate(point: Mapping, eta: np.ndarray) -> np.ndarray:
            values = [np.asarray(point[t.name], dtype=t.dtype) for t in self.theta]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return np.asarray(function(*values, eta))

        return evaluate


def write_terms(
    space: ValueSpace,
    factors: Sequence[Factor],
    predictors: Mapping[str, list[TensorVariable]],
    affinity: Affinity,
    rng: np.random.Generator,
) -> Terms:
    """The terms of some factors, whose predictors are given by name, in theta and eta."""
    places: dict[TensorVariable, slice] = {}
    start = 0
    for predictor in dict.fromkeys(p for own in predictors.values() for p in own):
        places[predictor] = slice(start, start + affinity.size(predictor))
        start = places[predictor].stop
    eta = pt.vector("eta", shape=(start,), dtype="float64")
    replaced = {
        p: in_place_of(p, eta[place].reshape(np.shape(affinity.values[p])))
        for p, place in places.items()
    }
    graphs = [_factor_terms(space, factor, replaced) for factor in factors]
    (graph,) = simplified([pt.concatenate([g for own in graphs for g in own])])
    theta = [v for v in space.inputs if v not in affinity.members]
    interpreter = Interpreter([graph], [*theta, eta])
    _check_closed(space, interpreter, affinity)
    points = [{**p, "eta": np.zeros(start)} for p in space.trials[:2]]
    dependence = find_affine(interpreter, [eta], points, rng)
    seeds = {eta: csr_array(eye_array(start, dtype=bool, format="csr"))}
    patterns = propagate(dependence, seeds, dependence.depends)
    return Terms(
        theta,
        eta,
        dict(predictors),
        places,
        graph,
        list(factors),
        np.cumsum(_term_counts(graphs, theta, eta, points[0])),
        patterns.of[graph],
        any(jumps(n) and dependence.depends(n.outputs[0]) for n in interpreter.nodes),
    )


def _check_closed(space: ValueSpace, interpreter: Interpreter, affinity: Affinity) -> None:
    left = {i for node in interpreter.nodes for i in node.inputs} & set(affinity.members)
    if left:
        names = ", ".join(sorted(repr(space.names[v]) for v in left))
        raise UnsupportedModelError(
            f"The likelihood depends on {names} by other ways than through linear predictors."
        )


def _term_counts(graphs, theta, eta, point) -> list[int]:
    """How many terms each factor has."""
    flat = [g for own in graphs for g in own]
    values = Interpreter(flat, [*theta, eta])(point)
    return [sum(int(np.size(Interpreter.value(g, values))) for g in own) for own in graphs]


def _factor_terms(space: ValueSpace, factor: Factor, replaced) -> list[TensorVariable]:
    """Vectors of terms of one factor."""
    graphs = rebuild(factor.graphs, replaced)
    if factor.kind == "observed":
        terms = [observed_log_density(space.model, factor, graphs)]
    else:
        terms = [term for graph in graphs for term in summands(graph)]
    for node in nodes_above(terms):
        if is_random(node.outputs[0]):
            raise UnsupportedModelError(
                f"The log density of {factor.name!r} contains random numbers "
                f"({node.outputs[-1]}): a variable in it does not belong to the model. "
                "Register every random variable under a name."
            )
    return simplified([pt.atleast_1d(t).ravel().astype("float64") for t in terms])


def allowed_predictors(factor: Factor) -> int:
    """How many predictors a term of a factor may have: four, or one for every class."""
    if factor.rv is not None and isinstance(factor.rv.owner.op, _OF_CLASSES):
        weights = factor.rv.owner.op.dist_params(factor.rv.owner)[-1]
        classes = weights.type.shape[-1] or int(weights.shape[-1].eval(mode=INTERPRETED))
        return max(MAX_PREDICTORS, classes)
    return MAX_PREDICTORS


def find_jump(terms: Terms, points: Sequence[Mapping]) -> TensorVariable | None:
    """A predictor in which the terms are not continuous, found by bisection."""
    if not terms.jumping:
        return None
    evaluate, point = terms.evaluator(), points[0]
    base, direction = np.random.default_rng(3).standard_normal((2, *terms.eta.type.shape))
    for predictor, place in terms.places.items():

        def moved(t: float, place=place) -> np.ndarray:
            eta = 0.3 * base
            eta[place] += t * direction[place]
            return evaluate(point, eta)

        values = np.stack([moved(t) for t in _GRID])
        with np.errstate(all="ignore"):
            # Far below its largest value a term loses its digits: differences there mean nothing.
            largest = np.fmax.reduce(values, axis=0)
            values[values < largest - 20.0] = np.nan
            steps = np.abs(np.diff(values, axis=0))
        steps[~np.isfinite(steps)] = 0.0
        worst = np.argsort(-steps.max(axis=0))[:5]
        if any(_jumps_at(moved, values[:, i], steps[:, i], i) for i in worst):
            return predictor
    return None


def _jumps_at(moved, values: np.ndarray, steps: np.ndarray, i: int) -> bool:
    """Whether the largest step of a term stays when its interval is halved again and again."""
    k = int(steps.argmax())
    least = _JUMP * (1.0 + np.abs(values[k : k + 2]).max())
    if not steps[k] > least:
        return False
    low, high, at_low, at_high = _GRID[k], _GRID[k + 1], values[k], values[k + 1]
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        at_middle = moved(middle)[i]
        if abs(at_middle - at_low) >= abs(at_high - at_middle):
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return bool(abs(at_high - at_low) > max(least, 1e-5 * steps[k]))


def find_coupled(terms: Terms, points: Sequence[Mapping]) -> Factor | None:
    """A factor with a term that changes though none of its predictors does."""
    evaluate = terms.evaluator()
    rng = np.random.default_rng(9)
    for k in range(4):
        eta, step = rng.standard_normal((2, *terms.eta.type.shape))
        moved = rng.random(eta.shape) < (0.3, 0.7)[k % 2]
        before, after = (evaluate(points[k % 3], e) for e in (eta, eta + moved * step))
        still = terms.groups.astype(np.int64) @ moved.astype(np.int64) == 0
        with np.errstate(all="ignore"):
            # Sums are rounded differently where their other terms change.
            changed = np.abs(after - before) > 1e-9 * (1.0 + np.abs(before))
        wrong = np.flatnonzero(still & changed)
        if wrong.size:
            return terms.factors[int(np.searchsorted(terms.ends, wrong[0], side="right"))]
    return None
