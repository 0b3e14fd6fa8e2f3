"""Recognising the likelihood p(y|f) of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_graph
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.tensor.random.basic import BernoulliRV
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import (
    INTERPRETED,
    constant_value,
    core_op,
    depends_on,
    scalar_op_name,
    skip_views,
)
from pymc_pseudomarginal.model.latent import Latent
from pymc_pseudomarginal.numerics.likelihoods import Likelihood, ProbitLikelihood

# pm.math.invprobit takes the square root of two in single precision.
_SINGLE_PRECISION = 1e-6


@dataclass(frozen=True)
class ProbitObservation:
    """y ~ Bernoulli(Phi(f)), one label per element of f.

    Attributes
    ----------
    rv : TensorVariable
        The observed variable.
    value : TensorVariable
        Its data, as PyMC holds them.
    """

    rv: TensorVariable
    value: TensorVariable

    def __str__(self):
        return f"{self.rv.name} ~ Bernoulli(Phi(f)), in its stable form"

    def likelihood(self, size: int) -> Likelihood:
        """The likelihood of the data as they are now, checked against n = `size`."""
        y = _checked_data(self.rv, self.value, size)
        try:
            return ProbitLikelihood.from_labels(y)
        except ValueError as error:
            raise UnsupportedModelError(f"{self.rv.name!r}: {error}") from None


def find_likelihood(model: pm.Model, latent: Latent) -> ProbitObservation:
    """The observed variable that hangs on f, recognised as a probit likelihood.

    Raises
    ------
    UnsupportedModelError
        If nothing observed depends on f, or not in a form that is supported.
    """
    name = latent.name
    for potential in model.potentials:
        if depends_on(potential, latent.free_rv):
            raise UnsupportedModelError(
                f"The potential {potential.name!r} depends on the latent {name!r}; only observed "
                "variables may. Write that factor as an observed variable."
            )
    below = [rv for rv in model.observed_RVs if depends_on(rv, latent.free_rv)]
    if not below:
        observed = ", ".join(rv.name for rv in model.observed_RVs) or "none"
        raise UnsupportedModelError(
            f"No observed variable depends on the latent {name!r} (observed: {observed}). "
            f"Connect one to it, e.g. pm.Bernoulli('y', p=pm.math.invprobit({name}), observed=y)."
        )
    if len(below) > 1:
        names = ", ".join(rv.name for rv in below)
        raise UnsupportedModelError(
            f"{len(below)} observed variables depend on the latent {name!r} ({names}); one is "
            "supported. Concatenate them into one."
        )
    (rv,) = below
    value = model.rvs_to_values[rv]
    if isinstance(core_op(rv), BernoulliRV):
        stored = model.initial_point()[model.rvs_to_values[latent.free_rv].name]
        _checked_data(rv, value, stored.size)
    if not _is_probit(rv, latent.f):
        _refuse(model, latent, rv)
    return ProbitObservation(rv, value)


def _checked_data(rv: TensorVariable, value: TensorVariable, size: int) -> np.ndarray:
    y = np.asarray(value.eval(mode=INTERPRETED))
    if y.shape != (size,):
        raise UnsupportedModelError(
            f"{rv.name!r} has shape {y.shape} but the latent has shape ({size},). "
            "Give one observation for each element of the latent."
        )
    return y


def _is_probit(rv: TensorVariable, f: TensorVariable) -> bool:
    """Whether rv is Bernoulli with p = erfc(-f / sqrt 2) / 2."""
    if not isinstance(core_op(rv), BernoulliRV):
        return False
    p = skip_views(rv.owner.op.dist_params(rv.owner)[0])
    if scalar_op_name(p) != "Mul" or len(p.owner.inputs) != 2:
        return False
    half, erfc = sorted(p.owner.inputs, key=lambda v: constant_value(v) is None)
    erfc = skip_views(erfc)
    if constant_value(half) != 0.5 or scalar_op_name(erfc) != "Erfc":
        return False
    factor = _multiple_of(erfc.owner.inputs[0], f)
    return factor is not None and abs(-np.sqrt(2.0) * factor - 1.0) < _SINGLE_PRECISION


def _multiple_of(variable: Variable, f: TensorVariable) -> float | None:
    """C if `variable` is c f, written with negation and constant factors; else None."""
    if variable is f:
        return 1.0
    if isinstance(core_op(variable), ViewOp):
        return _multiple_of(variable.owner.inputs[0], f)
    operation = scalar_op_name(variable)
    if operation == "Neg":
        inner = _multiple_of(variable.owner.inputs[0], f)
        return None if inner is None else -inner
    if operation not in ("Mul", "TrueDiv") or len(variable.owner.inputs) != 2:
        return None
    first, second = variable.owner.inputs
    if operation == "Mul" and constant_value(first) is not None:
        first, second = second, first
    inner, constant = _multiple_of(first, f), constant_value(second)
    if inner is None or constant is None or constant.size != 1:
        return None
    return inner * constant.item() if operation == "Mul" else inner / constant.item()


def _refuse(model, latent, rv):
    kind = type(rv.owner.op).__name__.removesuffix("RV")
    if not _factorises(model, latent, rv):
        raise UnsupportedModelError(
            f"The likelihood of {rv.name!r} ({kind}) couples elements of the latent "
            f"{latent.name!r}: p(y|f) must be a product of terms with one element of f each. "
            "Put the coupling into the covariance of the latent instead."
        )
    raise UnsupportedModelError(
        f"The likelihood of {rv.name!r} ({kind}) is not supported; found no "
        f"pm.Bernoulli(p=pm.math.invprobit({latent.name})). Write it in that form: 0/1 labels "
        "and nothing between the latent and invprobit."
    )


def _factorises(model: pm.Model, latent: Latent, rv: TensorVariable) -> bool:
    """Whether the Hessian of log p(y|f) in f is diagonal, at a random f."""
    point = model.initial_point()
    size = point[model.rvs_to_values[latent.free_rv].name].size
    f, v = pt.vector("f", shape=(size,)), pt.vector("v", shape=(size,))
    (replaced,) = graph_replace([rv], {latent.f: f}, strict=False)
    elements = pm.logp(replaced, model.rvs_to_values[rv])
    (elements,) = model.replace_rvs_by_values([elements])
    gradient = pt.grad(elements.sum(), f)
    diagonal = pt.grad(gradient.sum(), f, disconnected_inputs="ignore")
    product = pt.grad((gradient * v).sum(), f, disconnected_inputs="ignore")
    values = [model.rvs_to_values[free] for free in model.free_RVs]
    function = compile_graph([*values, f, v], [diagonal, product], on_unused_input="ignore")
    rng = np.random.default_rng(0)
    f0, v0 = rng.standard_normal((2, size))
    h, hv = function(*(point[value.name] for value in values), f0, v0)
    return bool(np.allclose(hv, h * v0, rtol=1e-6, atol=1e-8))
