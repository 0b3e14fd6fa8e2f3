"""Missing responses: what PyMC imputes below f, drawn from p(y_missing|f, theta).

For masked data PyMC adds a free variable below f. Given f and theta it is independent
of everything observed, so that (theta, f) is sampled without it, and a draw from its own
distribution completes the joint posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pymc as pm
import pytensor
from pymc.pytensorf import compile as compile_graph
from pytensor.graph.replace import graph_replace
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import core_op, depends_on
from pymc_pseudomarginal.model.latent import Latent
from pymc_pseudomarginal.model.likelihood import Observation


def missing_responses(model: pm.Model, latent: Latent) -> tuple[TensorVariable, ...]:
    """The free variables that stand for masked parts of observed variables below f."""
    observed = {rv.name for rv in model.observed_RVs}
    return tuple(
        rv
        for rv in model.free_RVs
        if rv.name.endswith("_unobserved")
        and f"{rv.name.removesuffix('_unobserved')}_observed" in observed
        and depends_on(rv, latent.free_rv)
    )


@dataclass(frozen=True, repr=False)
class MissingResponses:
    """The missing responses of a model and how to draw them.

    Attributes
    ----------
    rvs : tuple of TensorVariable
    observation : Observation
        Of the rest; it has the model, f and the value variables of theta.
    """

    rvs: tuple[TensorVariable, ...]
    observation: Observation

    def __post_init__(self):
        for rv in self.rvs:
            _check(self.observation, rv)

    @property
    def values(self) -> list[TensorVariable]:
        """Their value variables."""
        return [self.observation.model.rvs_to_values[rv] for rv in self.rvs]

    @cached_property
    def _sampler(self):
        """((*theta, f) -> draws on the scale on which PyMC stores them, its generators)."""
        seen = self.observation
        outputs, generators = [], []
        for rv in self.rvs:
            (replaced,) = graph_replace([rv], {seen.latent.f: seen.f}, strict=False)
            _, shape, *parameters = replaced.owner.inputs
            parameters = seen.model.replace_rvs_by_values(parameters)
            generators.append(pytensor.shared(np.random.default_rng(), name=f"rng of {rv.name}"))
            node = rv.owner.op.make_node(generators[-1], shape, *parameters)
            transform, draw = seen.model.rvs_to_transforms[rv], node.outputs[1]
            outputs.append(draw if transform is None else transform.forward(draw, *node.inputs))
        function = compile_graph([*seen.parameters, seen.f], outputs, on_unused_input="ignore")
        return function, generators

    def draw(
        self, rng: np.random.Generator, theta: Sequence[np.ndarray], f: np.ndarray
    ) -> dict[str, np.ndarray]:
        """New values of the missing responses, by the names of their value variables."""
        if not self.rvs:
            return {}
        function, generators = self._sampler
        for generator in generators:
            seed = rng.integers(2**63)
            generator.set_value(np.random.Generator(np.random.PCG64(seed)), borrow=True)
        return {
            value.name: np.asarray(drawn, dtype=value.dtype)
            for value, drawn in zip(self.values, function(*theta, f), strict=True)
        }


def _check(observation: Observation, rv: TensorVariable) -> None:
    """Refuse what cannot be drawn, or what something else depends on."""
    model, latent = observation.model, observation.latent
    if not isinstance(core_op(rv), RandomVariable):
        raise UnsupportedModelError(
            f"{rv.name!r}, the missing part of an observed variable, has no distribution of "
            "its own to draw from. Drop those observations, and index the latent by the rest "
            f"({latent.name}[kept])."
        )
    for other in (*model.observed_RVs, *model.potentials, *model.free_RVs):
        if other is not rv and depends_on(other, rv):
            raise UnsupportedModelError(
                f"{other.name!r} depends on {rv.name!r}, a missing response below the latent "
                f"{latent.name!r}. Only what is observed may depend on the latent."
            )
