"""`estimator_spread`: how the unbiased estimate of p(y|theta) varies along one hyper-parameter."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import pymc as pm
import xarray as xr
from pymc.pytensorf import compile as compile_graph
from pytensor.tensor.variable import TensorVariable
from rich.progress import track

from pymc_pseudomarginal.arguments import check_approximation, check_at_least
from pymc_pseudomarginal.model import LatentGaussianModel, read_model
from pymc_pseudomarginal.numerics import (
    APPROXIMATIONS,
    Approximation,
    NumericalFailure,
    importance_set,
)
from pymc_pseudomarginal.numerics.likelihoods import Likelihood

# Standard normals held at a time: 16 MB of them.
_BLOCK = 2**21


def estimator_spread(
    name: str,
    values: Sequence[float],
    point: Mapping[str, object] | None = None,
    *,
    approximation: str = "laplace",
    n_importance: int | Sequence[int] = (1, 64),
    repeats: int = 500,
    random_seed: int | np.random.Generator | None = None,
    model: pm.Model | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Many unbiased estimates of log p(y|theta) along one hyper-parameter.

    Parameters
    ----------
    name : str
        A scalar hyper-parameter.
    values : sequence of float
        Its values, on the natural scale.
    point : mapping, optional
        Where the other hyper-parameters stay, by name on their natural scale. None takes
        PyMC's initial point.
    approximation : {"laplace", "ep"}
        The importance density.
    n_importance : int or sequence of int
        Numbers N of importance samples per estimate.
    repeats : int
        Number of independent estimates for every value and every N.
    random_seed : int or Generator, optional
    model : pymc.Model, optional
        Taken from the context if not given.
    progressbar : bool

    Returns
    -------
    xarray.Dataset
        ``log_estimate`` over (n_importance, repeat, `name`); ``log_approximation``, the
        deterministic Laplace or EP value, and ``log_prior``, the log density of the
        hyper-parameter on its natural scale given the others, over (`name`,).

    Warns
    -----
    UserWarning
        If the covariance cannot be factorised, or no finite approximation exists, at some
        of the values. The estimates and the approximation are NaN there.

    Notes
    -----
    Hyper-parameters whose priors involve `name` stay where they are, and ``log_prior`` does
    not include their densities.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian processes,
    figure 2.
    """
    approximate = APPROXIMATIONS[check_approximation(approximation)]
    sizes = _checked_sizes(n_importance)
    repeats = check_at_least("repeats", repeats, 1)
    values = _checked_values(values)
    read = read_model(model)
    rv = _scalar_hyperparameter(read, name)
    start = read.theta_from_natural(None if point is None else {name: values[0], **point})
    thetas, log_prior = _along(read, rv, values, start)
    bound, rng = read.bind_data(), np.random.default_rng(random_seed)
    log_estimate = np.full((len(sizes), repeats, len(values)), np.nan)
    log_approximation = np.full(len(values), np.nan)
    steps = track(thetas, f"Estimates along {name}", disable=not progressbar)
    for i, theta in enumerate(steps):
        # What overflows at extreme values shows as a failure.
        with suppress(NumericalFailure), np.errstate(all="ignore"):
            likelihood = bound(theta)
            q = approximate(read.prior(theta), likelihood)
            log_estimate[:, :, i] = [_estimates(q, likelihood, N, repeats, rng) for N in sizes]
            log_approximation[i] = q.log_marginal
    _warn_of_failures(name, values, np.isnan(log_approximation))
    return xr.Dataset(
        {
            "log_estimate": (("n_importance", "repeat", name), log_estimate),
            "log_approximation": (name, log_approximation),
            "log_prior": (name, log_prior),
        },
        coords={"n_importance": sizes, "repeat": np.arange(repeats), name: values},
        attrs={"approximation": approximation},
    )


def _checked_sizes(n_importance):
    """n_importance as a list of different whole numbers."""
    given = [n_importance] if np.ndim(n_importance) == 0 else list(n_importance)
    sizes = [check_at_least("n_importance", N, 1) for N in given]
    if not sizes or len(set(sizes)) < len(sizes):
        raise ValueError(f"n_importance must be different whole numbers; found {n_importance!r}.")
    return sizes


def _checked_values(values):
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(
            "values must be a vector of finite numbers, e.g. np.linspace(0.1, 2.0, 50); "
            f"found {values!r}."
        )
    return values


def _scalar_hyperparameter(read: LatentGaussianModel, name: str) -> TensorVariable:
    """The hyper-parameter of that name, if it is a scalar."""
    shapes = read.natural_shapes
    scalars = {rv.name: rv for rv in read.hyperparameters if shapes[rv.name] == ()}
    if name in scalars:
        return scalars[name]
    allowed = ", ".join(scalars) or "none in this model"
    if name in shapes:
        raise ValueError(
            f"{name} has the shape {shapes[name]}, but estimates are computed along one scalar. "
            f"Scalar hyper-parameters: {allowed}."
        )
    raise ValueError(f"{name!r} is no hyper-parameter. Scalar hyper-parameters: {allowed}.")


def _along(
    read: LatentGaussianModel, rv: TensorVariable, values: np.ndarray, start: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """(theta, log prior density) at every value of one hyper-parameter, the others at `start`."""
    log_density = compile_graph(
        read.hyper_values, read.model.logp(vars=[rv], jacobian=False), on_unused_input="ignore"
    )
    others = read.natural(start)
    with np.errstate(all="ignore"):  # outside the support, which is refused below
        # By way of the natural scale: transforms of the others may depend on this one.
        thetas = [read.unconstrained(others | {rv.name: value}) for value in values]
        log_prior = np.array([log_density(*read.hyper_values_at(t)) for t in thetas])
    outside = ~np.isfinite(log_prior) | ~np.array([np.isfinite(t).all() for t in thetas])
    if outside.any():
        found = ", ".join(f"{value:g}" for value in values[outside][:5])
        raise ValueError(
            f"{int(outside.sum())} of {len(values)} values of {rv.name} are outside its support, "
            f"or put another hyper-parameter outside its own: {found}. Leave them out."
        )
    return thetas, log_prior


def _estimates(
    q: Approximation, likelihood: Likelihood, N: int, repeats: int, rng: np.random.Generator
) -> np.ndarray:
    """Independent log estimates from N draws of q each, shape (repeats,)."""
    n = q.prior.size
    rows = max(1, _BLOCK // (2 * n))
    together = max(1, rows // N)  # repeats whose weights are held at a time
    results = []
    for first in range(0, repeats, together):
        count = min(together, repeats - first)
        blocks = [min(rows, count * N - row) for row in range(0, count * N, rows)]
        log_weights = np.concatenate(
            [
                importance_set(q, likelihood, rng.standard_normal((2, block, n))).log_weights
                for block in blocks
            ]
        )
        results.append(np.logaddexp.reduce(log_weights.reshape(count, N), axis=1) - np.log(N))
    return np.concatenate(results)


def _warn_of_failures(name, values, failed):
    if failed.any():
        found = ", ".join(f"{value:g}" for value in values[failed][:5])
        warnings.warn(
            f"The numerics failed at {int(failed.sum())} of {len(values)} values of {name} "
            f"({found}): the estimates are NaN there.",
            stacklevel=3,
        )
