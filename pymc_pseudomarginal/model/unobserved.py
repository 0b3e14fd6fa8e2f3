"""Free variables below f on which nothing observed depends, drawn given f and theta.

PyMC adds one for masked data, and ``gp.conditional`` adds the process at new inputs.
Given f and theta such a variable is independent of everything observed, so that (theta, f)
is sampled without it, and a draw from its own distribution completes the joint posterior.
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
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import core_op, depends_on
from pymc_pseudomarginal.model.latent import Latent
from pymc_pseudomarginal.model.likelihood import Observation


def unobserved_below(model: pm.Model, latent: Latent) -> tuple[TensorVariable, ...]:
    """The free variables below f on which nothing observed depends."""
    above = set(ancestors([*model.observed_RVs, *model.potentials]))
    return tuple(
        rv
        for rv in model.free_RVs
        if rv is not latent.free_rv and rv not in above and depends_on(rv, latent.free_rv)
    )


@dataclass(frozen=True, repr=False)
class Unobserved:
    """The unobserved variables below f and how to draw them.

    Attributes
    ----------
    rvs : tuple of TensorVariable
    observation : Observation
        What is observed; it has the model, f and the value variables of theta.
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
        """New values of the variables, by the names of their value variables."""
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
            f"The unobserved variable {rv.name!r} below the latent {latent.name!r} is composed of "
            "others and cannot be drawn on its own. Where it stands for masked data, drop "
            f"those and index the latent by the rest ({latent.name}[kept])."
        )
    for other in model.free_RVs:
        if other is not rv and depends_on(other, rv):
            raise UnsupportedModelError(
                f"The free variable {other.name!r} depends on {rv.name!r}, which depends on the "
                f"latent {latent.name!r}. Draw {other.name!r} after sampling, by "
                "pm.sample_posterior_predictive."
            )
