"""The factors of log p(y|f, theta): observed variables and potentials below f."""

from __future__ import annotations

from dataclasses import dataclass

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.math import Sum
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import (
    core_op,
    depends_on,
    distribution_name,
    scalar_op_name,
    skip_views_and_axes,
)
from pymc_pseudomarginal.model.latent import Latent
from pymc_pseudomarginal.model.stable_densities import stable_log_density


@dataclass(frozen=True)
class Factor:
    """One observed variable or potential that depends on f.

    Attributes
    ----------
    name : str
    kind : str
        "Poisson", say, or "Potential".
    rv : TensorVariable or None
        The observed variable as a function of `f` and the value variables of theta;
        None for a potential.
    value : TensorVariable or None
        Its data.
    elements : tuple of TensorVariable
        Terms of any shape whose sum over everything is the log density; functions of
        `f` and the value variables of theta.
    """

    name: str
    kind: str
    rv: TensorVariable | None
    value: TensorVariable | None
    elements: tuple[TensorVariable, ...]


def read_factors(model: pm.Model, latent: Latent, f: TensorVariable) -> tuple[Factor, ...]:
    """All factors of the model that depend on the latent, as functions of the vector `f`."""
    observed = [rv for rv in model.observed_RVs if depends_on(rv, latent.free_rv)]
    potentials = [p for p in model.potentials if depends_on(p, latent.free_rv)]
    if not observed and not potentials:
        names = ", ".join(rv.name for rv in model.observed_RVs) or "none"
        raise UnsupportedModelError(
            f"No observed variable depends on the latent {latent.name!r} (observed: {names}). "
            f"Connect one to it, e.g. pm.Poisson('y', mu=pm.math.exp({latent.name}), observed=y)."
        )
    return tuple(
        [_observed_factor(model, latent, f, rv) for rv in observed]
        + [_potential_factor(model, latent, f, potential) for potential in potentials]
    )


def _observed_factor(model, latent, f, rv):
    replaced = _as_function_of(f, latent, rv)
    # Theta goes in by its values before the density is derived: PyMC may copy what is
    # inside a composed distribution (Censored, say), and would not find it afterwards.
    inputs = model.replace_rvs_by_values(list(replaced.owner.inputs))
    position = replaced.owner.outputs.index(replaced)
    replaced = replaced.owner.op.make_node(*inputs).outputs[position]
    value = model.rvs_to_values[rv]
    elements = _log_density(replaced, value, rv.name, latent, f)
    _refuse_random(elements, rv.name)
    return Factor(rv.name, distribution_name(rv), replaced, value, (elements,))


def _log_density(rv, value, name, latent, f):
    try:
        stable = stable_log_density(rv, value)
        return pm.logp(rv, value, warn_rvs=False) if stable is None else stable
    except ValueError as error:
        raise UnsupportedModelError(
            f"log p({name}|{latent.name}) cannot be written down: the latent has shape "
            f"{f.type.shape} and the data {name} {value.type.shape}. Give one observation "
            f"for each element, or index the latent. (PyTensor says: {str(error).splitlines()[0]})"
        ) from error
    except (NotImplementedError, RuntimeError) as error:
        raise UnsupportedModelError(
            f"PyMC has no log density for {name!r} on its own: {error} Write it as a "
            "distribution that has one, or as a pm.Potential."
        ) from error


def _potential_factor(model, latent, f, potential):
    replaced = _as_function_of(f, latent, potential)
    elements = tuple(model.replace_rvs_by_values(summands(replaced)))
    for element in elements:
        _refuse_random(element, potential.name)
    return Factor(potential.name, "Potential", None, None, elements)


def _refuse_random(log_density, name):
    """A log density must be a function; a random number left in it would go unnoticed."""
    for variable in ancestors([log_density]):
        if isinstance(core_op(variable), RandomVariable):
            raise UnsupportedModelError(
                f"The log density of {name!r} contains random numbers ({variable}): a variable "
                "in it does not belong to the model. Register every random variable under a name."
            )


def _as_function_of(f, latent: Latent, variable: TensorVariable) -> TensorVariable:
    (replaced,) = graph_replace([variable], {latent.f: f}, strict=False)
    if depends_on(replaced, latent.free_rv):
        raise UnsupportedModelError(
            f"{variable.name!r} depends on {latent.free_rv.name!r} by other ways than through "
            f"{latent.name!r}. Write f once, f = pm.Deterministic('f', ...), and let everything "
            "that is observed depend on that."
        )
    return replaced


def summands(log_density: Variable) -> list[Variable]:
    """The terms of a scalar sum, before they were summed: a user may have done it already."""
    inner = skip_views_and_axes(log_density)
    if isinstance(core_op(inner), Sum) and inner.ndim == 0:
        return [inner.owner.inputs[0]]
    if scalar_op_name(inner) == "Add" and inner.ndim == 0:
        return [term for part in inner.owner.inputs for term in summands(part)]
    return [log_density]


def concatenate(elements: list[TensorVariable]) -> TensorVariable:
    """All terms in one vector."""
    return pt.concatenate([pt.cast(pt.atleast_1d(e).ravel(), "float64") for e in elements])
