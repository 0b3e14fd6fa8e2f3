"""Free variables on which nothing observed depends, drawn given all that is sampled.

PyMC adds one for masked data, and ``gp.conditional`` adds a process at new inputs. Given the
other variables they are independent of everything observed, so that theta and x are sampled
without them, and draws from their own distributions complete the joint posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from pymc.pytensorf import compile as compile_graph
from pymc.pytensorf import reseed_rngs
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import RandomGeneratorType

from pymc_pseudomarginal.reading.graphs import rebuild
from pymc_pseudomarginal.reading.value_space import ValueSpace


class UnobservedDraws:
    """Draws of the unobserved variables of a model.

    Parameters
    ----------
    space : ValueSpace
    """

    def __init__(self, space: ValueSpace):
        self.space = space

    @property
    def names(self) -> list[str]:
        """The names of their value variables."""
        values = self.space.model.rvs_to_values
        return [str(values[rv].name) for rv in self.space.unobserved]

    @cached_property
    def _sampler(self):
        """(point values) -> draws on the scale on which PyMC stores them, and its generators."""
        model, unobserved = self.space.model, self.space.unobserved
        values = [model.rvs_to_values[rv] for rv in self.space.free]
        replaced = {}
        for rv, value in zip(self.space.free, values, strict=True):
            transform = model.rvs_to_transforms[rv]
            constrained = (
                value if transform is None else transform.backward(value, *rv.owner.inputs)
            )
            replaced[rv] = rv.type.filter_variable(constrained, allow_convert=True)
        # Parameters of a transform are parameters of the model: replaced as well.
        for rv in self.space.free:
            (replaced[rv],) = rebuild(
                [replaced[rv]], {k: v for k, v in replaced.items() if k is not rv}
            )
        draws = rebuild(unobserved, replaced)
        outputs = []
        for rv, draw in zip(unobserved, draws, strict=True):
            transform = model.rvs_to_transforms[rv]
            outputs.append(
                draw if transform is None else transform.forward(draw, *draw.owner.inputs)
            )
        function = compile_graph(values, outputs, on_unused_input="ignore")
        generators = [
            v
            for v in ancestors(outputs)
            if isinstance(v, SharedVariable) and isinstance(v.type, RandomGeneratorType)
        ]
        return function, values, generators

    def draw(
        self, rng: np.random.Generator, point: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """New values of the variables, by the names of their value variables."""
        if not self.space.unobserved:
            return {}
        function, values, generators = self._sampler
        reseed_rngs(generators, int(rng.integers(2**31)))
        drawn = function(*[np.asarray(point[v.name]) for v in values])
        return {
            name: np.asarray(value, dtype=self.space.model[name].dtype)
            if name in self.space.model.named_vars
            else np.asarray(value)
            for name, value in zip(self.names, drawn, strict=True)
        }
