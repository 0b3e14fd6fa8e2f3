"""Which free variables make up x: the largest set that is jointly Gaussian given the others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.reading.affinity import Affinity, Kind, find_affine
from pymc_pseudomarginal.reading.graphs import op_name
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.quadratic import LogDensity
from pymc_pseudomarginal.reading.value_space import Factor, ValueSpace, depends_on_any

_EXHAUSTIVE = 16
"""Variables in conflict up to which every subset is tried."""
_LINEAR_BONUS = 0.5
"""Breaks ties towards the variable in which a product is linear: less than one element."""


@dataclass
class Conflicts:
    """Pairs of variables that cannot both be in x."""

    order: list[TensorVariable]
    pairs: dict[tuple[TensorVariable, TensorVariable], str] = field(default_factory=dict)
    linear: set[TensorVariable] = field(default_factory=set)

    def add(self, first, second, reason: str) -> None:
        """Note that two variables exclude each other."""
        if first is not second:
            key = sorted((first, second), key=self.order.index)
            self.pairs.setdefault((key[0], key[1]), reason)


@dataclass(frozen=True)
class Membership:
    """What is in x.

    Attributes
    ----------
    members : list of TensorVariable
        In the order of creation.
    factors : list of Factor
        What depends on x: observed variables, potentials, free variables of theta below x.
    affinity : Affinity
        How the graphs of these factors depend on x.
    left_out : dict
        Gaussian variables that had to stay in theta, and why.
    """

    members: list[TensorVariable]
    factors: list[Factor]
    affinity: Affinity
    left_out: dict[TensorVariable, str]


class MemberSearch:
    """Finds x in a model.

    Parameters
    ----------
    space : ValueSpace
    rng : numpy.random.Generator
        For the points and lines that are tried.
    """

    def __init__(self, space: ValueSpace, rng: np.random.Generator):
        self.space = space
        self.rng = rng
        self.points = space.trials[:2]
        self.densities = {
            v: LogDensity(graph, space.inputs) for v, graph in space.log_densities.items()
        }
        self.candidates = [v for rv, v in space.variables.items() if self._is_candidate(rv, v)]

    def _is_candidate(self, rv: TensorVariable, variable: TensorVariable) -> bool:
        density = self.densities[variable]
        transform = self.space.model.rvs_to_transforms[rv]
        if transform is None or isinstance(transform, pm.distributions.transforms.ZeroSumTransform):
            return density.is_quadratic([variable], self.points, self.rng)
        # On another scale only a proper Gaussian counts: LogNormal is one on the log scale, a
        # flat density on an interval is not quadratic there but might be by accident.
        return density.is_concave([variable], self.points, self.rng)

    def search(self, banned: dict[TensorVariable, str]) -> Membership:
        """The largest set of candidates without a conflict, those that are banned left out."""
        candidates = [v for v in self.candidates if v not in banned]
        members, left_out = list(candidates), dict(banned)
        while True:
            factors, affinity, conflicts = self._examine(members)
            if not conflicts.pairs:
                break
            kept = self._largest_independent(members, conflicts)
            for variable in members:
                if variable not in kept:
                    left_out[variable] = self._reason(variable, kept, conflicts)
            members = kept
        members, factors, affinity = self._grow(candidates, members, left_out, factors, affinity)
        return Membership(members, factors, affinity, left_out)

    def _grow(self, candidates, members, left_out, factors, affinity):
        """Take back what was dropped for the sake of something that was dropped later."""
        dropped = [v for v in candidates if v not in members]
        if len(dropped) > 1:
            for variable in sorted(dropped, key=lambda v: -self.space.size(v)):
                trial = [v for v in candidates if v in members or v is variable]
                again = self._examine(trial)
                if not again[2].pairs:
                    members, (factors, affinity, _) = trial, again
                    del left_out[variable]
        return members, factors, affinity

    def _reason(self, variable, kept, conflicts: Conflicts) -> str:
        for (first, second), reason in conflicts.pairs.items():
            other = second if first is variable else first
            if variable in (first, second) and other in kept:
                return f"{reason} {self.space.names[other]!r}, which has more elements in x"
        return "it is in conflict with other Gaussian variables"

    def live_factors(self, members: Sequence[TensorVariable]) -> list[Factor]:
        """Factors that depend on x; a free variable outside with a parent in x is one too."""
        factors = [f for f in self.space.factors if depends_on_any(f.graphs, members)]
        inside = set(members)
        for variable, density in self.densities.items():
            if variable not in inside and not inside.isdisjoint(density.sources):
                name, graph = self.space.names[variable], density.graph
                factors.append(Factor(name, "free", None, [graph]))
        return factors

    def _examine(self, members) -> tuple[list[Factor], Affinity, Conflicts]:
        factors = self.live_factors(members)
        graphs = [g for f in factors for g in f.graphs]
        interpreter = Interpreter(graphs, self.space.inputs)
        affinity = find_affine(interpreter, members, self.points, self.rng)
        conflicts = Conflicts(self.space.inputs)
        self._prior_conflicts(members, conflicts)
        self._product_conflicts(affinity, conflicts)
        return factors, affinity, conflicts

    def _prior_conflicts(self, members, conflicts: Conflicts) -> None:
        for variable in members:
            density = self.densities[variable]
            moving = [v for v in members if v in density.sources]
            if len(moving) < 2 or density.is_quadratic(moving, self.points, self.rng):
                continue
            bad = [
                v
                for v in moving
                if v is not variable
                and not density.is_quadratic([variable, v], self.points, self.rng)
            ]
            for v in bad:
                conflicts.add(variable, v, "its prior is not Gaussian jointly with")
                conflicts.linear.add(variable)
            if not bad:
                for a, b in itertools.combinations([v for v in moving if v is not variable], 2):
                    if not density.is_quadratic([variable, a, b], self.points, self.rng):
                        conflicts.add(a, b, "a prior is not Gaussian jointly in it and")

    def _product_conflicts(self, affinity: Affinity, conflicts: Conflicts) -> None:
        """Nodes that are linear in one input, by a factor that another member of x moves."""
        for node in affinity.interpreter.nodes:
            if not any(affinity.kind(o) is Kind.CURVED for o in node.outputs):
                continue
            dependent = [k for k, i in enumerate(node.inputs) if affinity.depends(i)]
            for k, j in itertools.permutations(dependent, 2):
                if not affinity.is_affine(node.inputs[k]):
                    continue
                first, second = (affinity.members_of(node.inputs[i]) for i in (k, j))
                if first - second and second - first and self._multiplies(affinity, node, k, j):
                    for a, b in itertools.product(first - second, second - first):
                        conflicts.add(a, b, "it is multiplied by a function of")
                        conflicts.linear.add(a)

    def _multiplies(self, affinity: Affinity, node, k: int, j: int) -> bool:
        """Whether the node is affine in input k, with a slope that input j changes."""
        if op_name(node) in {"Elemwise:Add", "Elemwise:Sub"}:
            return False
        interpreter, values = affinity.interpreter, affinity.values
        arguments = [interpreter.value_or_none(i, values) for i in node.inputs]
        if np.asarray(arguments[j]).dtype.kind != "f":
            return False
        step_k = self.rng.standard_normal(np.shape(arguments[k]))
        step_j = 0.1 * self.rng.standard_normal(np.shape(arguments[j]))
        step_j *= 1.0 + np.abs(arguments[j])

        def at(t_k: float, t_j: float) -> np.ndarray:
            new = list(arguments)
            for i, t, step in ((k, t_k, step_k), (j, t_j, step_j)):
                new[i] = np.asarray(arguments[i] + t * step, dtype=node.inputs[i].dtype)
            with np.errstate(all="ignore"):
                return np.asarray(interpreter.perform(node, new)[0], dtype=float)

        low, middle, high = at(-1.0, 0.0), at(0.0, 0.0), at(1.5, 0.0)
        scale = np.abs(low) + np.abs(middle) + np.abs(high)
        if not (np.abs(1.5 * low - 2.5 * middle + high) <= 1e-8 * scale + 1e-11).all():
            return False
        mixed = at(1.0, 1.0) - at(1.0, 0.0) - at(0.0, 1.0) + middle
        return bool((np.abs(mixed) > 1e-8 * (1.0 + np.abs(middle))).any())

    def _largest_independent(self, members, conflicts: Conflicts) -> list[TensorVariable]:
        """Members without a conflict, as many elements as possible; the first on ties."""
        weight = {v: self.space.size(v) + _LINEAR_BONUS * (v in conflicts.linear) for v in members}
        touched = [v for v in members if any(v in pair for pair in conflicts.pairs)]
        if len(touched) <= _EXHAUSTIVE:
            kept = _best_subset(touched, weight, conflicts.pairs)
        else:
            kept = set()
            for variable in sorted(touched, key=lambda v: -weight[v]):
                if not any(set(pair) <= kept | {variable} for pair in conflicts.pairs):
                    kept.add(variable)
        return [v for v in members if v not in touched or v in kept]


def _best_subset(touched, weight, pairs) -> set[Variable]:
    best: set[Variable] = set()
    best_weight = -1.0
    for bits in range(1 << len(touched)):
        kept = {v for i, v in enumerate(touched) if not bits >> i & 1}
        total = sum(weight[v] for v in kept)
        if total > best_weight + 1e-9 and not any(a in kept and b in kept for a, b in pairs):
            best, best_weight = kept, total
    return best
