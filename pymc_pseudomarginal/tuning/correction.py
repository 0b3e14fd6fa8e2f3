"""How the posterior differs from its approximation, as a quadratic in theta."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_pseudomarginal.tuning.mixture_fit import weighted_moments

# Hyper-parameters up to which the pilot can tell curvatures.
_MOST_QUADRATIC = 5
_REACH = 3.0
_LARGEST, _FARTHEST = 6.0, 10.0


def fitted_correction(
    thetas: np.ndarray, log_ratios: np.ndarray, differences: np.ndarray, unit: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Ridge regression of the log ratio of posterior and approximation.

    Parameters
    ----------
    thetas : array, shape (m, d)
        Fresh draws of a density.
    log_ratios : array, shape (m,)
        Log posterior over this density, known up to a constant.
    differences : array, shape (m,)
        Log posterior over the approximation, known up to a constant.
    unit : array, shape (d, d)
        Factor of a covariance, in units of which theta is seen.

    Returns
    -------
    callable
        From thetas (k, d) to the correction (k,).
    """
    shares = np.exp(log_ratios - log_ratios.max())
    shares /= shares.sum()
    centre = weighted_moments(thetas, shares)[0]
    inverse = np.linalg.inv(unit)

    def standardised(values: np.ndarray) -> np.ndarray:
        z = (values - centre) @ inverse.T
        # Beyond what was seen the correction stays as it is there.
        radius = np.sqrt((z * z).mean(axis=1, keepdims=True))
        return z * np.minimum(1.0, _REACH / np.maximum(radius, 1e-12))

    features = _features(standardised(thetas))
    # Ratios that are very low are known badly, and matter little.
    weights = np.sqrt(shares * len(shares) + 0.2)
    outcome = differences - np.average(differences, weights=shares)
    outcome = np.clip(outcome, -_FARTHEST, _FARTHEST)
    design = np.column_stack([np.ones(len(features)), features])
    ridge = 0.5 * np.eye(design.shape[1])
    ridge[0, 0] = 1e-6
    weighted = weights[:, None] * design
    coefficients = np.linalg.solve(weighted.T @ weighted + ridge, weighted.T @ (weights * outcome))[
        1:
    ]

    def correction(values: np.ndarray) -> np.ndarray:
        found = _features(standardised(values)) @ coefficients
        return np.clip(found, -_LARGEST, _LARGEST)

    return correction


def _features(z):
    """Linear and, up to five hyper-parameters, quadratic terms, shape (k, d) to (k, p)."""
    d = z.shape[1]
    if d > _MOST_QUADRATIC:
        return z
    rows, columns = np.tril_indices(d)
    return np.column_stack([z, z[:, rows] * z[:, columns]])
