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


def run_of(stats=None, **variables):
    """Inference data by hand: `variables` as a posterior, with statistics of a step."""
    shape = next(iter(variables.values())).shape[:2]
    accepted = np.arange(np.prod(shape)).reshape(shape) % 3 == 0
    stats = {
        "pm_accepted": accepted,
        "pm_failed": np.zeros(shape, dtype=int),
        "pm_log_weight_sd": np.ones(shape),
    } | (stats or {})
    coords = {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}

    def group(arrays):
        data = {
            name: (("chain", "draw", *(f"{name}_{i}" for i in range(x.ndim - 2))), x)
            for name, x in arrays.items()
        }
        return xr.Dataset(data, coords=coords)

    return inference_data(posterior=group(variables), sample_stats=group(stats))
