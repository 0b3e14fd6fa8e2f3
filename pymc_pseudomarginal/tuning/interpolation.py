"""A log density of theta between the places where it is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.interpolate import RBFInterpolator

from pymc_pseudomarginal.kernels.student_t import StudentMixture
from pymc_pseudomarginal.kernels.triangular import TriangularDensity, monomials

Densities = Callable[[np.ndarray], np.ndarray]

DEEPEST = 25.0
"""How far a log density may be below what is expected before it is as good as zero."""

# How far above the highest of the bulk, relative to what is near, the interpolation may go.
_HIGHER = 6.0
# Known values for each coefficient of a quadratic, without which there is none.
_KNOWN_EACH = 1.5
# Coordinates become logarithmic there, in standard deviations.
_FAR = 4.0
_DEGREES, _WIDER, _WIDE_SHARE = 15.0, 1.3, 0.1
_SMOOTHING = 1e-6
_RIDGE = 0.01
_KNOTS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0)
# Solving for the coefficients takes the cube of their number.
_MOST = 1000


def interpolated(
    thetas: Sequence[np.ndarray], values: Sequence[float], near: TriangularDensity
) -> Densities:
    """A density that is near, times what interpolates between known values.

    The difference of logarithms is a smooth trend and radial functions, in the coordinates of the
    density that is near: in them a funnel or a banana is straight.

    Parameters
    ----------
    thetas : sequence of arrays, shape (d,)
    values : sequence of float
        The log density there; perhaps minus infinity.
    near : TriangularDensity

    Returns
    -------
    callable
        From rows (k, d) to log densities (k,).
    """
    # The latest; of two values at one place the interpolation could make nothing.
    places, first = np.unique(np.array(thetas[-_MOST:]), axis=0, return_index=True)
    known = np.array(values[-_MOST:])[first]
    around = _Around(near)
    coordinates, levels = around(places)
    differences = known - levels
    highest = differences[known > known.max() - _HIGHER].max()
    differences = np.clip(differences, highest - DEEPEST, highest + _HIGHER)
    trend = _trend(coordinates, differences)
    rest = RBFInterpolator(
        coordinates,
        differences - trend(coordinates),
        kernel="cubic",
        degree=1,
        smoothing=_SMOOTHING,
    )

    def log_density(rows: np.ndarray) -> np.ndarray:
        coordinates, levels = around(rows)
        found = trend(coordinates) + rest(coordinates)
        return levels + np.minimum(found, highest + _HIGHER)

    return log_density


def _trend(coordinates, differences):
    """Ridge regression on quadratics of all and cubic splines of each coordinate."""
    features = _features(coordinates)
    # What is far below is known to be low, and no more.
    weights = 1.0 / (1.0 + (np.maximum(differences.max() - differences - _HIGHER, 0.0) / 2.0) ** 2)
    gram = (weights * features.T) @ features + np.diag(
        np.where(np.arange(features.shape[1]) == 0, 1e-6, _RIDGE)
    )
    coefficients = np.linalg.solve(gram, features.T @ (weights * differences))
    return lambda places: _features(places) @ coefficients


def _features(coordinates):
    bends = [np.maximum(coordinates - knot, 0.0) ** 3 / 6 for knot in _KNOTS]
    return np.column_stack([monomials(coordinates), *bends])


class _Around:
    """Coordinates in which a density is standard, and its logarithm with heavier tails."""

    def __init__(self, near: TriangularDensity):
        self.near = near
        self.wide = StudentMixture.single(near.centre, _WIDER * near.factor, _DEGREES)

    def __call__(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (m, d) and levels (m,) at thetas (m, d)."""
        near = self.near
        e, log_widths = near.standardised(thetas)
        close = near.log_density_of(e, log_widths)
        wide = self.wide.log_density(thetas[:, near.order])
        levels = np.logaddexp(np.log1p(-_WIDE_SHARE) + close, np.log(_WIDE_SHARE) + wide)
        return _FAR * np.arcsinh(e / (_FAR * near.spreads)), levels
