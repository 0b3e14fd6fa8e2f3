"""What the Ops share: probit data, failures as -inf, and the Numba linker."""

from __future__ import annotations

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import basic as numba_basic

from pymc_pseudomarginal.arguments import check_approximation
from pymc_pseudomarginal.numerics import APPROXIMATIONS, DensePrior, NoFiniteApproximation
from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood

# Tight enough for gradients: the formulas hold at the mode or the fixed point only.
_TOLERANCES = {"laplace": 1e-18, "ep": 1e-9}


class MarginalOp(Op):
    """An Op over `numerics` whose first inputs are m (n,), K (n, n) and 0/1 labels (n,)."""

    __props__ = ("approximation",)

    def __init__(self, approximation: str = "laplace"):
        self.approximation = check_approximation(approximation)

    def approximate(self, mean, covariance, y):
        """The Gaussian approximation, and the likelihood that it was made with."""
        _check_shapes(mean, covariance, y)
        likelihood = ProbitLikelihood.from_labels(y)
        approximate = APPROXIMATIONS[self.approximation]
        if not np.isfinite(mean).all():
            raise NoFiniteApproximation("The mean is not finite.")
        prior = DensePrior(mean, covariance)
        # B may be positive definite where K is not; the approximation would not notice.
        prior.factorise()
        tolerance = _TOLERANCES[self.approximation]
        return approximate(prior, likelihood, tolerance=tolerance), likelihood


def _check_shapes(mean, covariance, y):
    n = len(covariance)
    for name, x, shape in (
        ("mean", mean, (n,)),
        ("covariance", covariance, (n, n)),
        ("y", y, (n,)),
    ):
        if x.shape != shape:
            raise ValueError(f"{name} must have shape {shape}; found {x.shape}.")


def prior_inputs(mean, covariance, y):
    """The three inputs as tensors of float64, checked for their dimensions."""
    inputs = [pt.as_tensor(x, dtype="float64") for x in (mean, covariance, y)]
    for name, x, ndim in zip(("mean", "covariance", "y"), inputs, (1, 2, 1), strict=True):
        if x.type.ndim != ndim:
            raise ValueError(f"{name} must have {ndim} dimension(s); found {x.type.ndim}.")
    return inputs


def disconnected():
    """The gradient with respect to an input that the output does not vary with."""
    return DisconnectedType()()


@numba_basic.numba_funcify.register(MarginalOp)
def _run_in_python(op, node, **kwargs):
    """Let compiled code call `perform`: the time goes into LAPACK in either case.

    PyTensor's own fall-back does the same, with a warning about it.
    """
    types = [numba_basic.get_numba_type(output.type) for output in node.outputs]
    signature = types[0] if len(types) == 1 else numba.types.Tuple(types)

    def call(inputs):
        storage = [[None] for _ in node.outputs]
        op.perform(node, inputs, storage)
        results = tuple(cell[0] for cell in storage)
        return results[0] if len(results) == 1 else results

    @numba_basic.numba_njit
    def perform(*inputs):
        with numba.objmode(result=signature):
            result = call(inputs)
        return result

    return perform
