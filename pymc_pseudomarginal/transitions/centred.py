"""The centred parameterisation (sufficient augmentation): f stays while theta moves."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.transitions.given_latent import Coordinates, LatentState


def centred(rng: np.random.Generator, state: LatentState) -> Coordinates:
    """F itself, with density N(f|m, K) given theta."""
    return lambda setting: (state.f, setting.prior.log_density(state.f))
