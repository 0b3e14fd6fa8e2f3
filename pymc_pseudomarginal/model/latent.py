"""Finding the latent Gaussian f of a model, its mean and its covariance."""

from __future__ import annotations

from dataclasses import dataclass

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.math import Dot
from pytensor.tensor.random.basic import MvNormalRV, NormalRV
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import (
    client_map,
    constant_value,
    core_op,
    scalar_op_name,
    skip_views_and_axes,
)

_EXPECTED = (
    "Expected one of: pm.gp.Latent(...).prior('f', X=X), with reparameterize True or False; "
    "pm.MvNormal('f', mu=..., cov=...) or chol=..., of one dimension."
)


@dataclass(frozen=True)
class Latent:
    """f ~ N(mean, covariance) as found in the graph of a model.

    Attributes
    ----------
    free_rv : TensorVariable
        The free variable that PyMC stores: f itself or, if `whitened`, the standard
        normal z with f = mean + chol(covariance) z.
    f : TensorVariable
        The node of f on which the observed variables hang.
    mean : TensorVariable, shape (n,) or broadcastable to it
    covariance : TensorVariable, shape (n, n)
    whitened : bool
    """

    free_rv: TensorVariable
    f: TensorVariable
    mean: TensorVariable
    covariance: TensorVariable
    whitened: bool

    @property
    def name(self) -> str:
        """The name by which the user knows f."""
        return self.f.name or self.free_rv.name


def find_latent(model: pm.Model) -> Latent:
    """The one latent Gaussian of the model.

    A Gaussian vector that enters only the prior of another (coefficients of a mean
    function, say) is a hyper-parameter, not the latent.

    Raises
    ------
    UnsupportedModelError
        If there is none, or more than one.
    """
    outputs = [*model.observed_RVs, *model.potentials]
    clients = client_map([*outputs, *model.deterministics])
    candidates = [
        latent
        for rv in model.free_RVs
        if (latent := _as_multivariate_normal(rv) or _as_whitened(rv, clients)) is not None
    ]
    above = {id(v) for c in candidates for v in ancestors([c.mean, c.covariance])}
    latents = [c for c in candidates if id(c.free_rv) not in above]
    if not latents:
        free = ", ".join(rv.name for rv in model.free_RVs) or "none"
        raise UnsupportedModelError(
            f"No latent Gaussian variable was found among the free variables ({free}). {_EXPECTED}"
        )
    if len(latents) > 1:
        names = " and ".join(repr(latent.name) for latent in latents)
        raise UnsupportedModelError(
            f"The model has {len(latents)} latent Gaussian variables, {names}; exactly one is "
            "supported. Where they are added up, add the Gaussian processes instead "
            "(gp = gp1 + gp2), so that their sum has one prior."
        )
    (latent,) = latents
    transform = model.rvs_to_transforms[latent.free_rv]
    if transform is not None:
        raise UnsupportedModelError(
            f"The latent {latent.name!r} has the transform {transform.name!r}, with which it is no "
            "longer Gaussian. Remove the transform."
        )
    return latent


def _as_multivariate_normal(rv: TensorVariable) -> Latent | None:
    if not isinstance(core_op(rv), MvNormalRV) or rv.ndim != 1:
        return None
    mean, covariance = rv.owner.op.dist_params(rv.owner)
    return Latent(rv, rv, mean, covariance, whitened=False)


def _as_whitened(rv: TensorVariable, clients: dict[Variable, list]) -> Latent | None:
    """F = mean + chol(K) z for a standard normal z, as `gp.Latent.prior` writes it."""
    if not _is_standard_normal(rv):
        return None
    product, covariance = _cholesky_product(rv, clients)
    if product is None:
        return None
    mean, f = [], product
    while len(consumers := clients.get(f, [])) == 1:
        # The first name that the user (or the GP) gave is where f is complete.
        if f.name is not None:
            break
        output = consumers[0].outputs[0]
        if scalar_op_name(output) == "Add" and output.ndim == 1:
            mean += [term for term in output.owner.inputs if term is not f]
        elif skip_views_and_axes(output) is not skip_views_and_axes(f):
            break
        f = output
    if f.ndim != 1:
        return None
    total = sum(mean[1:], start=mean[0]) if mean else pt.zeros((1,))
    return Latent(rv, f, total, covariance, whitened=True)


def _is_standard_normal(rv: TensorVariable) -> bool:
    if not isinstance(core_op(rv), NormalRV) or rv.ndim != 1:
        return False
    mu, sigma = (constant_value(p) for p in rv.owner.op.dist_params(rv.owner))
    return mu is not None and sigma is not None and bool((mu == 0).all() and (sigma == 1).all())


def _cholesky_product(rv, clients):
    """(chol(K) @ z, K) if that is the only use of z, else (None, None)."""
    variable = rv
    while len(consumers := clients.get(variable, [])) == 1:
        node = consumers[0]
        output = node.outputs[0]
        if isinstance(core_op(output), Dot):
            left, right = node.inputs
            # By name: the class moved between the two PyTensor versions.
            if right is variable and type(core_op(left)).__name__ == "Cholesky":
                return output, left.owner.inputs[0]
            break
        if skip_views_and_axes(output) is not skip_views_and_axes(variable):
            break
        variable = output
    return None, None
