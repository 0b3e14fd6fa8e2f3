"""Draws in inference data as points of PyMC's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor
import xarray as xr

from pymc_pseudomarginal.model.graph import INTERPRETED


class RecordedPoints:
    """Points on PyMC's unconstrained scale, of draws that are recorded on the natural one.

    Parameters
    ----------
    posterior : xarray.Dataset
    model : pymc.Model
    names : sequence of str
        The free variables that are taken from the draws; others keep their initial values.

    Raises
    ------
    ValueError
        If one of them is not recorded, not finite, or of another shape than in the model.
    """

    def __init__(self, posterior: xr.Dataset, model: pm.Model, names: Sequence[str]):
        absent = [name for name in names if name not in posterior]
        if absent:
            raise ValueError(
                f"The posterior does not contain {', '.join(map(repr, absent))}, which the model "
                f"has; it contains {', '.join(map(repr, posterior.data_vars))}. Sample without "
                "var_names=, or name these there too."
            )
        self._names, self._model = list(names), model
        self._draws = [posterior[name].transpose("chain", "draw", ...).to_numpy() for name in names]
        self._n_draws = posterior.sizes["draw"]
        self._start = model.initial_point(0)
        self._to_values = _value_function(model, names)
        for name, values in zip(names, self._draws, strict=True):
            if not np.isfinite(values).all():
                raise ValueError(f"The posterior draws of {name!r} contain NaN or infinite values.")
            _check_shape(name, values.shape[2:], model[name].type.shape)

    def __call__(self, draw: int) -> dict[str, np.ndarray]:
        """The point of a draw, numbered chain after chain."""
        chain, at = divmod(int(draw), self._n_draws)
        variables = [self._model[name] for name in self._names]
        natural = [
            np.asarray(values[chain, at], dtype=rv.dtype)
            for rv, values in zip(variables, self._draws, strict=True)
        ]
        point = dict(self._start)
        for rv, value in zip(variables, self._to_values(*natural), strict=True):
            name = self._model.rvs_to_values[rv].name
            _check_shape(rv.name, np.shape(value), point[name].shape)
            point[name] = value
        return point


def _value_function(model, names):
    """Values on the unconstrained scale from those on the natural one."""
    variables = [model[name] for name in names]
    outputs = []
    for rv in variables:
        transform = model.rvs_to_transforms[rv]
        outputs.append(rv if transform is None else transform.forward(rv, *rv.owner.inputs))
    return pytensor.function(variables, outputs, mode=INTERPRETED, on_unused_input="ignore")


def _check_shape(name, found, expected):
    """Lengths that a model leaves open are None."""
    fits = len(found) == len(expected) and all(
        length in (None, size) for size, length in zip(found, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            f"{name!r} has the shape {found} in the posterior and {expected} in the model: they do "
            "not belong together, or the data of the model were changed."
        )
