"""The loop over theta and over blocks of new points that all predictions share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version

import numpy as np
import pymc as pm
import xarray as xr
from rich.progress import track

from pymc_pseudomarginal.model import LatentGaussianModel, UnsupportedModelError
from pymc_pseudomarginal.model.new_inputs import NewInputs
from pymc_pseudomarginal.model.reader import understand
from pymc_pseudomarginal.model.response import Response
from pymc_pseudomarginal.numerics import NewPoints, NumericalFailure
from pymc_pseudomarginal.prediction.posterior import Draws

VERSION = version("pymc_pseudomarginal")

_NUMBERS_AT_ONCE = 2**22
"""Of the matrix between the data and a block of new points: 32 MB."""

Condition = Callable[[np.ndarray, np.ndarray], Callable[[NewPoints], tuple]]
"""(theta, numbers of the draws that have it) -> (new points -> mean and variance of f*)."""


def read_process(model: pm.Model, gp: pm.gp.Latent) -> tuple[LatentGaussianModel, NewInputs]:
    """What is understood of a model, and its process at new inputs.

    The last answer is kept: reading and compiling take longer than predicting a few hundred
    points, and predictions for one model often follow each other.
    """
    if not isinstance(gp, pm.gp.Latent | pm.gp.LatentKron):
        raise TypeError(
            "gp must be the pm.gp.Latent or pm.gp.LatentKron whose prior is the latent of the "
            f"model; found {type(gp).__name__}."
        )
    return _read_process(model, gp, _fingerprint(model))


@lru_cache(maxsize=1)
def _read_process(model, gp, fingerprint):
    read = understand(model)
    return read, NewInputs(read, gp)


def _fingerprint(model: pm.Model) -> tuple:
    """What reading depends on: the variables of the model and the shapes of its data."""
    shapes = tuple(data.get_value(borrow=True).shape for data in model.data_vars)
    return (*model.free_RVs, *model.observed_RVs, *model.potentials, *shapes)


@dataclass(frozen=True)
class Integration:
    """Latent moments and responses at new inputs, theta by theta.

    Attributes
    ----------
    model : LatentGaussianModel
    inputs : NewInputs
        The Gaussian process.
    response : Response or None
        None where the model does not define one.
    """

    model: LatentGaussianModel
    inputs: NewInputs
    response: Response | None

    @classmethod
    def prepare(
        cls, model: LatentGaussianModel, inputs: NewInputs, theta: np.ndarray
    ) -> Integration:
        """Find the response, comparing the data with each other at theta, shape (d,)."""
        try:
            response = Response(model.observation, model.hyper_values_at(theta))
        except UnsupportedModelError as reason:
            warnings.warn(
                f"Only the latent is predicted, as f_mean and f_var. {reason}", stacklevel=3
            )
            response = None
        return cls(model, inputs, response)

    def run(
        self,
        X: np.ndarray,
        draws: Draws,
        condition: Condition,
        rng: np.random.Generator,
        progressbar: bool,
    ) -> dict[str, np.ndarray]:
        """All quantities by name, each of shape (S, m) or, for C categories, (S, m, C).

        Parameters
        ----------
        X : array, shape (m, d)
            The new inputs.
        draws : Draws
        condition : Condition
        rng : numpy.random.Generator
            For predictive draws.
        progressbar : bool
        """
        results: dict[str, np.ndarray] = {}
        block = max(1, _NUMBERS_AT_ONCE // self.model.size)
        blocks = [slice(start, start + block) for start in range(0, len(X), block)]
        for theta, rows in track(
            draws.by_theta(), "Predicting", total=len(draws.theta), disable=not progressbar
        ):
            try:
                moments = condition(theta, rows)
                for points in blocks:
                    mean, variance = moments(self.inputs.at(theta, X[points]))
                    mean = np.broadcast_to(mean, (len(rows), mean.shape[-1]))
                    for name, values in self._quantities(theta, mean, variance, rng).items():
                        store = _store(results, name, values, len(draws.which), len(X))
                        store[rows, points] = values
            except NumericalFailure as failure:
                failure.add_note(f"This happened at {self.model.natural(theta)}.")
                raise
        return results

    def _quantities(self, theta, mean, variance, rng):
        quantities = {"f_mean": mean, "f_var": np.broadcast_to(variance, mean.shape)}
        response = self.response
        if response is None:
            return quantities
        values = self.model.hyper_values_at(theta)
        quantities[response.quantity] = response.expectation(values, mean, variance)
        if response.quantity == "mean" and response.can_be_drawn:
            f = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
            # The name that PyMC gives to predictive draws, unless it is taken.
            name = f"{response.name}_draws" if response.name in quantities else response.name
            quantities[name] = response.draw(rng, values, f)
        return quantities


def _store(results, name, values, n_draws, n_points):
    """The array of a quantity, made when its type and shape are first seen."""
    if name not in results:
        results[name] = np.empty((n_draws, n_points, *values.shape[2:]), dtype=values.dtype)
    return results[name]


def as_dataset(
    results: Mapping[str, np.ndarray], coords: Mapping[str, np.ndarray], points: np.ndarray
) -> xr.Dataset:
    """Results of `Integration.run` with the dimensions of `coords`, then point and category."""
    shape = tuple(len(values) for values in coords.values())
    dims = (*coords, "point", "category")
    variables = {}
    for name, values in results.items():
        values = values.reshape(shape + values.shape[1:])
        variables[name] = (dims[: values.ndim], values)
    return xr.Dataset(
        variables,
        coords={**coords, "point": points},
        attrs={"inference_library": "pymc_pseudomarginal", "inference_library_version": VERSION},
    )
