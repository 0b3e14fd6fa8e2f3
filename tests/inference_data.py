"""Inference data made by hand, as the installed ArviZ has them."""

import arviz as az
import numpy as np
import xarray as xr


def inference_data(**groups):
    """Inference data from xarray Datasets by the names of their groups."""
    if int(az.__version__.split(".")[0]) >= 1:
        return xr.DataTree.from_dict(groups)
    return az.InferenceData(**groups)


def posterior(**variables):
    """Inference data with a posterior of arrays with axes (chain, draw, ...)."""
    data = {
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(values.ndim - 2))), values)
        for name, values in variables.items()
    }
    n_chains, n_draws = next(iter(variables.values())).shape[:2]
    coords = {"chain": np.arange(n_chains), "draw": np.arange(n_draws)}
    return inference_data(posterior=xr.Dataset(data, coords=coords))
