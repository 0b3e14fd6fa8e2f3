"""Typed numerical failures.

Nothing in `numerics` returns NaN on failure: it raises one of these. A sampler
catches `NumericalFailure` in one place (`transitions.pseudo_marginal`) and turns
it into a recorded rejection.
"""


class NumericalFailure(ArithmeticError):
    """A quantity that the algorithm needs does not exist in floating point."""


class NotPositiveDefinite(NumericalFailure):
    """A covariance matrix has no Cholesky factor."""


class NoFiniteApproximation(NumericalFailure):
    """Newton's method or EP did not arrive at a Gaussian with finite parameters."""
