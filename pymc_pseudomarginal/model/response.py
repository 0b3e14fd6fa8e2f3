"""The response at new points: the distribution of y given a latent value and theta.

A new point can take the place of a datum if the observed variable depends on its element
of f in the same way for all data. Its graph, which is compiled for the n elements of f,
then serves for new latent values, n at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.distributions.moments import mean as mean_of
from pymc.exceptions import UndefinedMomentException
from pymc.pytensorf import compile as compile_graph
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV
from pytensor.tensor.random.op import RandomVariable
from scipy.special import ndtr

from pymc_pseudomarginal.model.dependence import NO_LATENT, find_owners
from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.factors import Factor
from pymc_pseudomarginal.model.graph import INTERPRETED, core_op, distribution_parameters
from pymc_pseudomarginal.model.likelihood import Observation
from pymc_pseudomarginal.numerics import gaussian_expectation

_TRIALS = np.array([-1.3, 0.0, 0.7])
"""Latent values at which the data are compared with each other."""


class Response:
    """What is observed at a point with a given latent value.

    Parameters
    ----------
    observation : Observation
    theta : sequence of array
        Values of theta at which to see whether all data have the same distribution.

    Attributes
    ----------
    name : str
        Of the observed variable.
    quantity : {"p", "mean"}
        What `expectation` gives: probabilities of a binary or categorical response, or
        its mean.
    can_be_drawn : bool
        Whether `draw` works: not for distributions composed of others, nor where data with
        the same mean differ otherwise (in their noise, say).

    Raises
    ------
    UnsupportedModelError
        If the model does not say what is observed at a new point.
    """

    def __init__(self, observation: Observation, theta: Sequence[np.ndarray]):
        self.observation = observation
        factor = _only_variable(observation)
        self.name = factor.name
        self._generator = pytensor.shared(np.random.default_rng(), name=f"rng of {self.name}")
        self._rv = _without_size(factor.rv, self._generator)
        binary = isinstance(core_op(factor.rv), BernoulliRV)
        self.categorical = isinstance(core_op(factor.rv), CategoricalRV)
        self.quantity = "p" if binary or self.categorical else "mean"
        self._value_graph = _value_graph(self._rv, factor, self.quantity)
        form = observation.closed_form
        probit = binary and form is not None and form.name == "probit"
        # Evaluated at three latent values for every theta: not worth compiling.
        self._predictor = self._compile(form.eta, mode=INTERPRETED) if probit else None
        self._places, self._elements = self._check_equal(self._predictor or self._value, theta)
        self.can_be_drawn = isinstance(core_op(self._rv), RandomVariable) and all(
            _are_equal(self._at_trials(self._compile(parameter, mode=INTERPRETED), theta))
            for parameter in distribution_parameters(self._rv)
        )

    def expectation(
        self, theta: Sequence[np.ndarray], mean: np.ndarray, variance: np.ndarray
    ) -> np.ndarray:
        """E[p] or E[mean of y] for a latent value N(mean, variance), elementwise.

        Analytic for the probit link of an affine predictor, else by quadrature.
        """
        if self._predictor is not None:
            offset, one, other = self._evaluate(self._predictor, theta, np.array([0.0, 1.0, -2.0]))
            slope = one - offset
            if np.isclose(other, offset - 2.0 * slope, rtol=1e-9, atol=1e-12):
                return ndtr((offset + slope * mean) / np.sqrt(1.0 + slope**2 * variance))
        return gaussian_expectation(lambda f: self._evaluate(self._value, theta, f), mean, variance)

    def draw(
        self, rng: np.random.Generator, theta: Sequence[np.ndarray], f: np.ndarray
    ) -> np.ndarray:
        """Responses at latent values f, of the shape of f."""
        function = self._sampler  # PyMC gives the generator a state of its own when it compiles
        seed = rng.integers(2**63)
        self._generator.set_value(np.random.Generator(np.random.PCG64(seed)), borrow=True)
        return self._evaluate(function, theta, f)

    @cached_property
    def _sampler(self):
        return self._compile(self._rv)

    @cached_property
    def _value(self):
        return self._compile(self._value_graph)

    def _compile(self, graph, mode=None):
        """(*theta, f of shape (B, n)) -> `graph` at every row, its elements on one axis."""
        seen = self.observation
        batch = pt.matrix("f_batch", shape=(None, seen.size))
        rows = vectorize_graph(graph, {seen.f: batch})
        if rows.ndim == graph.ndim:  # without f, the same in every row
            rows = pt.broadcast_to(rows, (batch.shape[0], *graph.shape))
        categories = [rows.shape[-1]] if graph.ndim > self._rv.ndim else []
        rows = rows.reshape((batch.shape[0], -1, *categories))
        function = compile_graph(
            [*seen.parameters, batch], rows, mode=mode, on_unused_input="ignore"
        )
        function.trust_input = True
        return function

    def _check_equal(self, function, theta):
        """An element of f for each place, and an element of y that depends on it."""

        def first(f):  # the probability of one category tells as much as all
            values = function(*theta, f)
            return values[..., 0] if values.ndim == 3 else values

        owners, _ = find_owners(first, self.observation.size, np.random.default_rng(0))
        if (owners == NO_LATENT).any() or not _are_equal(self._at_trials(function, theta)):
            raise UnsupportedModelError(
                f"The distribution of {self.name!r} differs from datum to datum by more than the "
                "latent (an exposure, covariates, a group), and the model does not say what "
                "those are at new inputs."
            )
        return np.unique(owners, return_index=True)

    def _at_trials(self, function, theta):
        """A compiled function with all of f at each of the trial values."""
        return function(*theta, np.repeat(_TRIALS[:, None], self.observation.size, axis=1))

    def _evaluate(self, function, theta, f):
        """A compiled function at latent values f of any shape."""
        places = len(self._places)
        flat = np.ravel(f)
        rows = -(-flat.size // places)
        filled = np.zeros(rows * places)
        filled[: flat.size] = flat
        batch = np.zeros((rows, self.observation.size))
        batch[:, self._places] = filled.reshape(rows, places)
        values = function(*theta, batch)[:, self._elements]
        values = values.reshape(rows * places, *values.shape[2:])[: flat.size]
        return values.reshape(np.shape(f) + values.shape[1:])


def _are_equal(values: np.ndarray) -> bool:
    """Whether all data, along the second axis, have the same values."""
    scale = np.max(np.abs(values), axis=1, keepdims=True)
    return not np.any(np.abs(values - values[:, :1]) > 1e-9 * scale)


def _only_variable(observation: Observation) -> Factor:
    if len(observation.factors) == 1 and observation.factors[0].rv is not None:
        return observation.factors[0]
    found = ", ".join(f"{f.name!r} ({f.kind})" for f in observation.factors)
    raise UnsupportedModelError(
        f"Several variables or a potential depend on the latent, {found}; which of them is meant "
        "at new inputs cannot be told."
    )


def _without_size(rv, generator):
    """The variable with elements that its parameters alone make, and a generator of our own.

    A size would be that of the data, and has no place at new points.
    """
    op = rv.owner.op
    if not isinstance(op, RandomVariable) or any(op.ndims_params):
        return rv
    parameters = pt.broadcast_arrays(*op.dist_params(rv.owner))
    return op.make_node(generator, None, *parameters).outputs[1]


def _value_graph(rv, factor, quantity):
    if quantity == "p":
        return distribution_parameters(rv)[0]
    try:
        return mean_of(rv)
    except (NotImplementedError, UndefinedMomentException) as error:
        raise UnsupportedModelError(
            f"PyMC does not know the mean of {factor.name!r} ({factor.kind})."
        ) from error
