"""Markov transitions as pure functions (rng, state, callables) -> (state, info)."""
