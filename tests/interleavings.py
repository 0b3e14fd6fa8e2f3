"""The exact interleaving of theta and f, and a deliberately wrong one as the control."""

from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.pseudo_marginal import State, pseudo_marginal_mh


def naive_interleaving(rng, state, evaluate, propose, n_importance):
    """theta from its marginal, then the OLD f by elliptical slice given the NEW theta."""
    moved, info = pseudo_marginal_mh(rng, state, evaluate, propose, n_importance, refresh=False)
    conditional = moved.conditional
    f, _ = elliptical_slice(rng, state.f, conditional.prior, conditional.likelihood)
    return State(conditional, f, moved.retained), info


def exact_interleaving(rng, state, evaluate, propose, n_importance, **options):
    """The exact scheme: f from the kept importance set, then the elliptical slice."""
    moved, info = pseudo_marginal_mh(rng, state, evaluate, propose, n_importance, **options)
    conditional = moved.conditional
    f, _ = elliptical_slice(rng, moved.f, conditional.prior, conditional.likelihood)
    return State(conditional, f, moved.retained), info
