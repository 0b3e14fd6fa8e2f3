"""Posterior draws taken out of inference data, and predictions put into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from pymc_pseudomarginal.model import LatentGaussianModel


@dataclass(frozen=True)
class Draws:
    """Posterior draws, chain after chain, S in all.

    Attributes
    ----------
    theta : array, shape (U, d)
        The distinct values of theta.
    which : array of int, shape (S,)
        The row of `theta` that belongs to each draw.
    f : array, shape (S, n), or None
        The latent.
    coords : dict
        Of the chains and draws.
    """

    theta: np.ndarray
    which: np.ndarray
    f: np.ndarray | None
    coords: Mapping[str, np.ndarray]

    def by_theta(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(theta, numbers of the draws that have it), one distinct theta after the other."""
        counts = np.bincount(self.which, minlength=len(self.theta))
        rows = np.split(np.argsort(self.which, kind="stable"), np.cumsum(counts)[:-1])
        return zip(self.theta, rows, strict=True)


def posterior_draws(idata: object, model: LatentGaussianModel, *, latent: bool) -> Draws:
    """The draws of theta, and of f if `latent`, that inference data hold.

    Raises
    ------
    TypeError, ValueError
        If there is no posterior, or a variable of the model is not in it.
    """
    posterior = _posterior(idata)
    expected = model.natural_shapes
    if latent:
        expected[model.latent.name] = (model.size,)
    absent = [name for name in expected if name not in posterior]
    if absent:
        raise ValueError(
            f"The posterior does not contain {', '.join(map(repr, absent))}, which the model has "
            f"and predictions need; it contains {', '.join(map(repr, posterior.data_vars))}. "
            "Sample without var_names=, or name these there too."
        )
    arrays = {}
    for name, shape in expected.items():
        values = posterior[name].transpose("chain", "draw", ...).to_numpy()
        if values.shape[2:] != shape:
            raise ValueError(
                f"{name!r} has the shape {values.shape[2:]} in the posterior and {shape} in the "
                "model: they do not belong together, or the data of the model were changed."
            )
        if not np.isfinite(values).all():
            raise ValueError(f"The posterior draws of {name!r} contain NaN or infinite values.")
        arrays[name] = values.reshape(-1, *shape)
    f = arrays.pop(model.latent.name) if latent else None
    coords = {name: posterior[name].to_numpy() for name in ("chain", "draw")}
    n_draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    theta, which = _distinct(arrays, n_draws, model)
    return Draws(theta, which, f, coords)


def _posterior(idata) -> xr.Dataset:
    try:
        group = idata["posterior"]
    except (KeyError, IndexError, TypeError, AttributeError):
        raise TypeError(
            "idata must be inference data with a posterior group, as pm.sample returns them; "
            f"found {type(idata).__name__}."
        ) from None
    return group if isinstance(group, xr.Dataset) else group.to_dataset()


def _distinct(arrays, n_draws, model):
    """Unconstrained theta at the distinct draws, and which of them each draw has."""
    rows = [values.reshape(n_draws, -1) for values in arrays.values()]
    natural = np.concatenate([*rows, np.empty((n_draws, 0))], axis=1)
    if natural.shape[1] == 0:
        return np.empty((1, 0)), np.zeros(n_draws, dtype=int)
    _, first, which = np.unique(natural, axis=0, return_index=True, return_inverse=True)
    theta = [
        model.unconstrained({name: values[i] for name, values in arrays.items()}) for i in first
    ]
    return np.stack(theta), which.ravel()


def add_predictions(idata: object, predictions: xr.Dataset) -> None:
    """Put predictions into inference data as the group of that name, in place of another."""
    if isinstance(idata, xr.DataTree):  # ArviZ 1
        idata["predictions"] = xr.DataTree(predictions)
        return
    if "predictions" in idata:
        del idata.predictions
    idata.add_groups({"predictions": predictions})
