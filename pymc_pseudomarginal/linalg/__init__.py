"""A latent Gaussian vector given theta, and factors of its conditional precision.

Everything above this layer sees a latent through `latent.LatentGaussian` and a
precision matrix through `factor.Factor`; whether it is dense or sparse is decided
once per model by `plan.plan`.
"""
