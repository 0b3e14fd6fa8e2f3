"""The whitened parameterisation (ancillary augmentation): nu stays, f = m + L nu follows."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.transitions.given_latent import Coordinates, LatentState


def whitened(rng: np.random.Generator, state: LatentState) -> Coordinates:
    """Nu = L^-1 (f - m), standard normal whatever theta is."""
    current = state.setting
    nu = current.prior.whiten(state.f)

    def coordinates(setting):
        if setting is current:
            return state.f, 0.0
        return setting.prior.mean + setting.prior.colour(nu), 0.0

    return coordinates
