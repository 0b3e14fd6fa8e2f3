"""From x to predictors and terms, and back where a term has too many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable
from scipy.sparse.csgraph import connected_components

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.reading.affinity import Affinity
from pymc_pseudomarginal.reading.members import MemberSearch, Membership
from pymc_pseudomarginal.reading.predictors import find_predictors
from pymc_pseudomarginal.reading.quadratic import LogDensity
from pymc_pseudomarginal.reading.terms import (
    Terms,
    allowed_predictors,
    find_coupled,
    find_jump,
    write_terms,
)
from pymc_pseudomarginal.reading.value_space import Factor, ValueSpace, observed_log_density

_FEW = 10
"""Elements of x that may go to theta to spare every term a second predictor."""


@dataclass(frozen=True)
class Structure:
    """A model taken apart.

    Attributes
    ----------
    space : ValueSpace
    membership : Membership
    quadratic : list of TensorVariable
        Log densities besides those of the members that belong to the prior of x: quadratic
        potentials, Gaussian data that do not factorise.
    terms : Terms or None
        None if nothing but such data depends on x.
    """

    space: ValueSpace
    membership: Membership
    quadratic: list[TensorVariable]
    terms: Terms | None

    @property
    def members(self) -> list[TensorVariable]:
        """The inputs that make up x."""
        return self.membership.members

    @property
    def theta(self) -> list[TensorVariable]:
        """The other inputs."""
        return [v for v in self.space.inputs if v not in self.members]


def take_apart(space: ValueSpace) -> Structure:
    """Find x, the predictors and the terms of a model.

    Raises
    ------
    UnsupportedModelError
        If nothing of the model can be integrated out.
    """
    rng = np.random.default_rng(0)
    search = MemberSearch(space, rng)
    # What went to theta to spare a second predictor may come back when something else goes.
    final: dict[TensorVariable, str] = {}
    banned: dict[TensorVariable, str] = {}
    while True:
        membership = search.search(banned)
        if not membership.members:
            raise UnsupportedModelError(_nothing_left(space, search, membership))
        quadratic, factors = _split(space, membership, rng)
        terms = _best_terms(space, factors, membership.affinity, rng) if factors else None
        if terms is None:
            return Structure(space, membership, quadratic, terms)
        shared = _shared_scalars(space, terms, membership.affinity)
        if shared and terms.counts.max(initial=0) > 1:
            reason = "it is the same scalar in every term, beside another predictor"
            banned |= dict.fromkeys(shared, reason)
            continue
        blamed, reason = _refused(space, terms, membership.affinity)
        if not blamed:
            _check_coupling(space, terms)
            return Structure(space, membership, quadratic, terms)
        final |= {v: reason for v in space.inputs if v in blamed}
        banned = dict(final)


def _split(space: ValueSpace, membership: Membership, rng):
    """Quadratic log densities that do not factorise belong to the prior."""
    quadratic, others = [], []
    for factor in membership.factors:
        graph = _possibly_quadratic(space, factor)
        if graph is not None:
            density = LogDensity(graph, space.inputs)
            if density.is_quadratic(membership.members, space.trials[:2], rng):
                quadratic.append(graph)
                continue
        others.append(factor)
    return quadratic, others


def _possibly_quadratic(space: ValueSpace, factor: Factor) -> TensorVariable | None:
    if factor.kind != "observed":
        return factor.graphs[0]
    assert factor.rv is not None
    if getattr(factor.rv.owner.op, "ndim_supp", 0) == 0:
        return None  # elementwise: a likelihood with a predictor a term
    return observed_log_density(space.model, factor, factor.graphs)


def _best_terms(space: ValueSpace, factors: Sequence[Factor], affinity: Affinity, rng) -> Terms:
    """Terms with merged predictors; with several a term, the way that couples fewer."""
    merged = _terms(space, factors, affinity, rng, merge=True)
    if merged.counts.max(initial=0) <= 1:
        return merged
    apart = _terms(space, factors, affinity, rng, merge=False)
    return min(merged, apart, key=lambda t: (t.counts.max(), _largest_component(t)))


def _terms(space, factors, affinity, rng, *, merge: bool) -> Terms:
    own = find_predictors(factors, affinity, merge=merge)
    return write_terms(space, factors, own, affinity, rng)


def _largest_component(terms: Terms) -> int:
    groups = terms.groups.astype(np.int32)
    _, labels = connected_components(groups.T @ groups, directed=False)
    return int(np.bincount(labels).max(initial=0))


def _shared_scalars(space: ValueSpace, terms: Terms, affinity: Affinity) -> set[Variable]:
    """A few members behind predictors of size one, beside which a factor has another one."""

    def count(members) -> int:
        return sum(space.size(v) for v in members)

    choices = []
    for predictors in terms.predictors.values():
        for kept in predictors:
            others = [p for p in predictors if p is not kept]
            if not others or any(affinity.size(p) > 1 for p in others):
                continue
            gone = set().union(*[affinity.members_of(p) for p in others])
            rest = affinity.members_of(kept) - gone
            if rest and count(gone) <= _FEW:
                choices.append((count(gone), -count(rest), gone))
    return min(choices, key=lambda choice: choice[:2])[2] if choices else set()


def _refused(space: ValueSpace, terms: Terms, affinity: Affinity) -> tuple[set[Variable], str]:
    """Members of x that cannot be there, and why."""
    starts = np.concatenate([[0], terms.ends[:-1]])
    for factor, start, end in zip(terms.factors, starts, terms.ends, strict=True):
        count = int(terms.counts[start:end].max(initial=0))
        if count > allowed_predictors(factor):
            widest = _widest(terms, affinity, slice(start, end))
            reason = f"one term of {factor.name!r} depends on {count} linear predictors"
            return affinity.members_of(widest), reason
    predictor = find_jump(terms, space.trials)
    if predictor is not None:
        return affinity.members_of(predictor), "the likelihood jumps as it changes"
    return set(), ""


def _widest(terms: Terms, affinity: Affinity, rows: slice) -> TensorVariable:
    """The predictor of which one term has most elements."""
    groups = terms.groups[rows].tocsc()

    def width(predictor):
        own = groups[:, terms.places[predictor]].tocsr()
        return int(np.diff(own.indptr).max(initial=0)), -len(affinity.members_of(predictor))

    return max(terms.places, key=width)


def _check_coupling(space: ValueSpace, terms: Terms) -> None:
    factor = find_coupled(terms, space.trials)
    if factor is not None:
        raise UnsupportedModelError(
            f"A term of {factor.name!r} changes though none of its linear predictors does: the "
            "likelihood couples them. Write it so that each observation has its own predictors."
        )


def _nothing_left(space: ValueSpace, search: MemberSearch, membership: Membership) -> str:
    free = ", ".join(str(rv.name) for rv in space.free) or "none"
    if not search.candidates:
        return (
            f"No variable of the model is Gaussian given the others (free variables: {free}). "
            "Expected a pm.Normal, pm.MvNormal, a Gaussian process, random walk or field, in "
            "which the predictor of something observed is linear."
        )
    reasons = "; ".join(
        f"{space.names[v]!r} cannot, since {reason}" for v, reason in membership.left_out.items()
    )
    return (
        f"No Gaussian variable of the model can be integrated out: {reasons}. Each observation "
        "must depend on the latent through one linear predictor, or a few."
    )
