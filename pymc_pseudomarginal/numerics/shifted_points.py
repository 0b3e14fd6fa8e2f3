"""Standard normals from a low-discrepancy point set that is shifted at random.

The N points of a Sobol sequence fill the unit cube more evenly than independent draws.
Moved together by one uniform shift, modulo one, every single point is uniform (Cranley &
Patterson 1976), and its normal quantiles are independent standard normals: a mean over the
points is unbiased, whatever they are. One point and its place after the shift give the
shift, and with it all the others.

Between shift and quantile the cube is folded, x to 1 - |2 x - 1|, which keeps uniform what
is uniform. Without it the jump from one end to the other that the shift brings costs an
order of convergence (Hickernell 2002). And points that are half a unit apart in all
coordinates become antithetic, z and -z: the first and second point of a Sobol sequence, the
third and fourth, and so on.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

# The first and the last number in (0, 1) of those that are 2^-53 apart; at 0 and 1
# themselves the quantile is infinite.
_FIRST, _LAST = 2.0**-53, 1.0 - 2.0**-53


@lru_cache(maxsize=8)
def sobol_points(n_points: int, n: int) -> np.ndarray:
    """The first points of the Sobol sequence in 2 n dimensions, shape (2, N, n).

    The order of the axes is that of the standard normals of `draw`. With N a power of two,
    the points are i/N, i = 0..N-1, in every coordinate. They are kept, as it takes longer
    to compute than to use them, and must not be written to.

    Raises
    ------
    ValueError
        If there are more dimensions than the sequence has direction numbers for.

    References
    ----------
    Joe & Kuo (2008), Constructing Sobol sequences with better two-dimensional
    projections, SIAM Journal on Scientific Computing 30.
    """
    if 2 * n > qmc.Sobol.MAXDIM:
        raise ValueError(
            f"Quasi-Monte Carlo needs two dimensions for each latent value, and SciPy's Sobol "
            f"sequence has {qmc.Sobol.MAXDIM}: enough for {qmc.Sobol.MAXDIM // 2} latent "
            f"values; found {n}. Take antithetic or independent draws instead."
        )
    # No scrambling: the shift is what makes the points random. A whole power of two is
    # generated, since SciPy warns of anything else.
    sequence = qmc.Sobol(2 * n, scramble=False)
    points = sequence.random_base2((n_points - 1).bit_length())[:n_points]
    points = np.ascontiguousarray(points.reshape(n_points, 2, n).swapaxes(0, 1))
    points.flags.writeable = False
    return points


def shifted_normals(points: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Normal quantiles of the points, shifted and folded, shape (2, N, n).

    Parameters
    ----------
    points : array, shape (2, N, n)
        In the unit cube.
    shift : array, shape (2, n)
        In the unit cube, the same for all points. If it is uniform, every point gives 2 n
        independent standard normals.

    References
    ----------
    Cranley & Patterson (1976), Randomization of number theoretic methods for multiple
    integration, SIAM Journal on Numerical Analysis 13; Hickernell (2002), Obtaining
    O(N^(-2+ε)) convergence for lattice quadrature rules, in Monte Carlo and Quasi-Monte
    Carlo Methods 2000, Springer.
    """
    folded = 1.0 - np.abs(2.0 * ((points + shift[:, None]) % 1.0) - 1.0)
    return ndtri(np.clip(folded, _FIRST, _LAST))


def shift_between(point: np.ndarray, z: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The shift with which a point gives the standard normals z, shape (2, n).

    Exact to about 1e-16 as a number in [0, 1]: normals beyond ±8 are as good as at ±8.

    Parameters
    ----------
    point : array, shape (2, n)
        In the unit cube.
    z : array, shape (2, n)
    upper : array of bool, shape (2, n)
        On which side of the fold each coordinate lies. Given z, both are equally likely.
    """
    lower_place = 0.5 * ndtr(z)
    return (np.where(upper, 1.0 - lower_place, lower_place) - point) % 1.0
