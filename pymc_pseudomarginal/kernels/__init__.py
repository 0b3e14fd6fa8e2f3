"""Exact Markov kernels for theta and the noise u of a latent Gaussian model.

All of them leave p(theta) N(u; 0, I) w(theta, u) invariant, where x = latent(u) is a draw of q
and w = p(y, x|theta) / q(x): under it (theta, x) has exactly the posterior. A draw is a pure
function `draw(tuned, target, rng, state) -> (state, info)`.
"""
