"""Gaussian approximations and importance sampling in NumPy and SciPy, free of PyMC."""

from pymc_pseudomarginal.numerics.approximation import Approximation
from pymc_pseudomarginal.numerics.ep import expectation_propagation
from pymc_pseudomarginal.numerics.errors import (
    NoFiniteApproximation,
    NotPositiveDefinite,
    NumericalFailure,
)
from pymc_pseudomarginal.numerics.gaussian_expectation import gaussian_expectation
from pymc_pseudomarginal.numerics.gradients import ep_gradient, laplace_gradient
from pymc_pseudomarginal.numerics.importance import ImportanceSet, importance_set
from pymc_pseudomarginal.numerics.laplace import laplace
from pymc_pseudomarginal.numerics.new_points import NewPoints
from pymc_pseudomarginal.numerics.prior import DensePrior, RootedPrior
from pymc_pseudomarginal.numerics.sites import given_sites

APPROXIMATIONS = {"laplace": laplace, "ep": expectation_propagation}
"""The Gaussian approximations by the names that users give."""

FOR_IMPORTANCE = {
    "laplace": {"chord_tolerance": 1e-2},
    "ep": {"tolerance": 0.1, "last_update": True},
}
"""Arguments with which they stop as soon as q serves importance sampling.

From a start as near as a tuned prediction, going on to convergence hardly makes the log weights
less spread: their spread comes from what no Gaussian can match.
"""

__all__ = [
    "APPROXIMATIONS",
    "FOR_IMPORTANCE",
    "Approximation",
    "DensePrior",
    "ImportanceSet",
    "NewPoints",
    "NoFiniteApproximation",
    "NotPositiveDefinite",
    "NumericalFailure",
    "RootedPrior",
    "ep_gradient",
    "expectation_propagation",
    "gaussian_expectation",
    "given_sites",
    "importance_set",
    "laplace",
    "laplace_gradient",
]
