"""Observed variables whose tilted moments have closed forms: probit, Gaussian, ordered probit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV, NormalRV
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.factors import Factor
from pymc_pseudomarginal.model.graph import core_op, depends_on
from pymc_pseudomarginal.model.links import ordered_arguments, probit_argument
from pymc_pseudomarginal.numerics.likelihoods import (
    GaussianLikelihood,
    Likelihood,
    OrderedProbitLikelihood,
    ProbitLikelihood,
)


@dataclass(frozen=True)
class ClosedForm:
    """A family of `numerics.likelihoods`, as found in the graph of an observed variable.

    Attributes
    ----------
    name : str
        Of the family.
    eta : TensorVariable, shape (m,)
        The linear predictor, a function of f and theta.
    parameters : tuple of TensorVariable
        The family's parameters, functions of theta.
    build : callable
        (y, *parameters) -> the likelihood of eta.
    """

    name: str
    eta: TensorVariable
    parameters: tuple[TensorVariable, ...]
    build: Callable[..., Likelihood]


def find_closed_form(factor: Factor, f: TensorVariable) -> ClosedForm | None:
    """The closed form of an observed variable; None if it has none."""
    if factor.rv is None:
        return None
    for op_type, recognise in FAMILIES.items():
        if isinstance(core_op(factor.rv), op_type):
            found = recognise(*factor.rv.owner.op.dist_params(factor.rv.owner))
            if found is None or found.eta.ndim != 1:
                return None
            return None if any(depends_on(p, f) for p in found.parameters) else found
    return None


def _probit(p):
    eta = probit_argument(p)
    return None if eta is None else ClosedForm("probit", eta, (), ProbitLikelihood.from_labels)


def _gaussian(mu, sigma):
    return ClosedForm("Gaussian", mu, (sigma**2,), GaussianLikelihood)


def _ordered_probit(p):
    arguments = ordered_arguments(p)
    if arguments is None or arguments.sigma is None:
        return None
    eta, cutpoints, sigma = arguments
    # Divided by sigma, the noise around eta is standard.
    columns = sigma if sigma.ndim == 0 else pt.shape_padright(sigma)
    return ClosedForm(
        "ordered probit", eta / sigma, (cutpoints / columns,), _ordered_probit_likelihood
    )


def _ordered_probit_likelihood(y, cutpoints):
    n_categories = cutpoints.shape[-1] + 1
    if not np.all((y >= 0) & (y < n_categories)):
        found = ", ".join(str(value) for value in np.unique(y)[:9])
        raise ValueError(f"Categories must be 0 to {n_categories - 1}; found the values {found}.")
    return OrderedProbitLikelihood.from_categories(y, cutpoints)


FAMILIES = {BernoulliRV: _probit, NormalRV: _gaussian, CategoricalRV: _ordered_probit}
