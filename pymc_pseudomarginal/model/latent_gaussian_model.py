"""A PyMC model understood as p(theta) N(f|m, K) p(y|f, theta), with compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_graph
from pytensor.graph.replace import graph_replace
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.diagonal import without_identity
from pymc_pseudomarginal.model.exponential import with_vectorised_exp
from pymc_pseudomarginal.model.graph import INTERPRETED, depends_on, distribution_name
from pymc_pseudomarginal.model.latent import Latent
from pymc_pseudomarginal.model.likelihood import Observation
from pymc_pseudomarginal.model.unobserved import Unobserved
from pymc_pseudomarginal.numerics import DensePrior, NotPositiveDefinite, RootedPrior
from pymc_pseudomarginal.numerics.likelihoods import Likelihood


@dataclass(frozen=True, repr=False)
class LatentGaussianModel:
    """What `read_model` understood of a PyMC model.

    theta is a flat vector on the unconstrained scale: the raveled value variables of
    the hyper-parameters in the order in which the model declares them.

    Attributes
    ----------
    model : pymc.Model
    hyperparameters : tuple of TensorVariable
        The free variables but the latent and what is unobserved below it.
    latent : Latent
        f, its mean and its covariance.
    observation : Observation
        What is observed of f.
    unobserved : Unobserved
        Free variables below f on which nothing observed depends.
    """

    model: pm.Model
    hyperparameters: tuple[TensorVariable, ...]
    latent: Latent
    observation: Observation
    unobserved: Unobserved

    @cached_property
    def hyper_values(self) -> list[TensorVariable]:
        """The value variables of the hyper-parameters."""
        return [self.model.rvs_to_values[rv] for rv in self.hyperparameters]

    @cached_property
    def latent_value(self) -> TensorVariable:
        """The value variable in which PyMC stores the latent."""
        return self.model.rvs_to_values[self.latent.free_rv]

    @cached_property
    def initial_point(self) -> dict[str, np.ndarray]:
        """PyMC's initial point."""
        return self.model.initial_point()

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every hyper-parameter's value variable, by its name."""
        return {v.name: self.initial_point[v.name].shape for v in self.hyper_values}

    @property
    def natural_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every hyper-parameter on its natural scale, by its name."""
        shapes = self.model.eval_rv_shapes()
        return {rv.name: tuple(int(n) for n in shapes[rv.name]) for rv in self.hyperparameters}

    @property
    def size(self) -> int:
        """n, the number of latent values."""
        return self.latent.size

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where in theta every value variable stands, by its name."""
        slices, start = {}, 0
        for name, shape in self.shapes.items():
            stop = start + int(np.prod(shape))
            slices[name] = slice(start, stop)
            start = stop
        return slices

    @property
    def factors_beside_latent(self) -> list[TensorVariable]:
        """Observed variables and potentials that do not involve f."""
        factors = (*self.model.observed_RVs, *self.model.potentials)
        return [factor for factor in factors if not depends_on(factor, self.latent.free_rv)]

    @cached_property
    def _moments(self):
        latent = self.latent
        matrix = without_identity(latent.covariance) if latent.root is None else latent.root
        mean = pt.broadcast_to(latent.mean, (matrix.shape[0],))
        return self._compile(with_vectorised_exp(self.model.replace_rvs_by_values([mean, matrix])))

    @cached_property
    def _log_prior(self):
        factors = [*self.hyperparameters, *self.factors_beside_latent]
        return self._compile(self.model.logp(vars=factors, jacobian=True))

    def _compile(self, outputs):
        function = compile_graph(self.hyper_values, outputs, on_unused_input="ignore")
        function.trust_input = True
        return function

    def theta(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """theta, shape (d,), copied out of a point of the model."""
        parts = [np.ravel(point[value.name]) for value in self.hyper_values]
        return np.concatenate(parts) if parts else np.empty(0)

    @cached_property
    def _places(self) -> list[tuple[slice, tuple[int, ...]]]:
        return [(self.slices[name], shape) for name, shape in self.shapes.items()]

    def hyper_values_at(self, theta: np.ndarray) -> list[np.ndarray]:
        """The value variables of the hyper-parameters at theta, in the order of the model."""
        return [theta[place].reshape(shape) for place, shape in self._places]

    def hyper_point(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """The value variables of the hyper-parameters at theta, by name."""
        return dict(zip(self.shapes, self.hyper_values_at(theta), strict=True))

    def log_prior(self, theta: np.ndarray) -> float:
        """Log p(theta), with the Jacobian and every factor that does not involve f."""
        return float(self._log_prior(*self.hyper_values_at(theta)))

    def prior(self, theta: np.ndarray) -> DensePrior:
        """p(f|theta).

        Raises
        ------
        NotPositiveDefinite
            If the mean or the covariance is not finite at theta.
        """
        mean, matrix = self._moments(*self.hyper_values_at(theta))
        mean = np.array(mean, dtype=float)  # PyTensor may give a broadcast view
        # One pass over n² numbers; an infinite or NaN entry makes the sum so too.
        if not np.isfinite(matrix.sum()) or not np.isfinite(mean.sum()):
            raise NotPositiveDefinite("The mean or the covariance of the latent is not finite.")
        return DensePrior(mean, matrix) if self.latent.root is None else RootedPrior(mean, matrix)

    def bind_data(self) -> Callable[[np.ndarray], Likelihood]:
        """Theta -> p(y|f, theta), for the data that the model holds now.

        Raises
        ------
        UnsupportedModelError
            If the data do not fit the model or p(y|f, theta) does not factorise over f.
        """
        at_values = self.observation.bind()
        return lambda theta: at_values(self.hyper_values_at(theta))

    def draw_unobserved(
        self, rng: np.random.Generator, theta: np.ndarray, f: np.ndarray
    ) -> dict[str, np.ndarray]:
        """What is unobserved below f, drawn given f and theta, by the names of value variables."""
        return self.unobserved.draw(rng, self.hyper_values_at(theta), f)

    def f(self, point: Mapping[str, np.ndarray], prior: DensePrior) -> np.ndarray:
        """The latent f at a point of the model, shape (n,), a copy."""
        stored = point[self.latent_value.name]
        if self.latent.whitened:
            return prior.mean + prior.colour(stored)
        return np.array(stored)

    def stored_latent(self, f: np.ndarray, prior: DensePrior) -> np.ndarray:
        """F as PyMC stores it: whitened or as it is, shape (n,)."""
        return prior.whiten(f) if self.latent.whitened else f

    @cached_property
    def _to_unconstrained(self):
        """Hyper-parameters on their natural scale -> their value variables."""
        natural = {rv: rv.type(name=rv.name) for rv in self.hyperparameters}
        outputs = []
        for rv, given in natural.items():
            transform = self.model.rvs_to_transforms[rv]
            if transform is not None:
                inputs = graph_replace(rv.owner.inputs, natural, strict=False)
                given = transform.forward(given, *inputs)
            outputs.append(given)
        # A few scalars: less work to interpret for thousands of draws than to compile.
        return compile_graph(
            list(natural.values()), outputs, mode=INTERPRETED, on_unused_input="ignore"
        )

    @cached_property
    def _to_natural(self):
        return self._compile(self.model.replace_rvs_by_values(list(self.hyperparameters)))

    def natural(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """The hyper-parameters at theta on their natural scale, by name."""
        names = [rv.name for rv in self.hyperparameters]
        return dict(zip(names, self._to_natural(*self.hyper_values_at(theta)), strict=True))

    def unconstrained(self, values: Mapping[str, object]) -> np.ndarray:
        """Theta at the natural values of all hyper-parameters, shape (d,), unchecked."""
        natural = [np.asarray(values[rv.name], dtype=rv.dtype) for rv in self.hyperparameters]
        parts = [np.ravel(part) for part in self._to_unconstrained(*natural)]
        return np.concatenate(parts) if parts else np.empty(0)

    def theta_from_natural(self, values: Mapping[str, object] | None) -> np.ndarray:
        """Theta at hyper-parameters given by name on their natural scale.

        Parameters
        ----------
        values : mapping or None
            A value for every hyper-parameter; None takes PyMC's initial point.
        """
        if values is None:
            return self.theta(self.initial_point)
        names = [rv.name for rv in self.hyperparameters]
        missing = [name for name in names if name not in values]
        unknown = [name for name in values if name not in names]
        if missing or unknown:
            raise ValueError(
                f"A point must hold the hyper-parameters {names} on their natural scale; "
                f"missing: {missing or 'none'}, unknown: {unknown or 'none'}."
            )
        for name, shape in self.natural_shapes.items():
            if np.shape(values[name]) != shape:
                raise ValueError(
                    f"{name} must have the shape {shape}; found {np.shape(values[name])}."
                )
        theta = self.unconstrained(values)
        self._check_support(values, theta)
        return theta

    def _check_support(self, values: Mapping[str, object], theta: np.ndarray) -> None:
        """Refuse values of zero density, and those that theta does not lead back to."""
        rvs = list(self.hyperparameters)
        if not rvs:
            return
        density = self._compile(self.model.logp(vars=rvs, jacobian=False, sum=False))
        log_densities, again = density(*self.hyper_values_at(theta)), self.natural(theta)
        for rv, log_density in zip(rvs, log_densities, strict=True):
            # Weights that do not sum to one become others that do.
            same = np.allclose(again[rv.name], values[rv.name])
            if not same or not np.isfinite(log_density).all():
                raise ValueError(f"{rv.name} = {values[rv.name]} is outside its support.")

    def __repr__(self):
        """What was understood, a line each."""
        theta = ", ".join(self._describe(rv) for rv in self.hyperparameters) or "none"
        stored = f", stored whitened as {self.latent.free_rv.name}" if self.latent.whitened else ""
        inputs = ", ".join(
            rv.name
            for rv in self.hyperparameters
            if any(depends_on(graph, rv) for graph in self.latent.moments)
        )
        given = f"; {inputs}" if inputs else ""
        unobserved = ", ".join(rv.name for rv in self.unobserved.rvs)
        return "\n".join(
            [
                "LatentGaussianModel",
                f"  theta       {theta}",
                f"  f           {self.latent.name} ({self.size},){stored}",
                f"  prior       f ~ Normal(m, K{given}), K dense",
                f"  likelihood  {self.observation}",
                *([f"  unobserved  {unobserved}, drawn given f"] if unobserved else []),
            ]
        )

    def _describe(self, rv):
        kind = distribution_name(rv)
        transform = self.model.rvs_to_transforms[rv]
        scale = f" [{transform.name}]" if transform is not None else ""
        shape = self.shapes[self.model.rvs_to_values[rv].name]
        return f"{rv.name}{shape if shape else ''} ~ {kind}{scale}"
