"""`fit_marginal`: hyper-parameters that maximise the Laplace or EP log marginal likelihood."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pymc as pm
import xarray as xr
from rich.progress import track

from pymc_pseudomarginal.arguments import check_approximation, check_at_least
from pymc_pseudomarginal.model import LatentGaussianModel, read_model
from pymc_pseudomarginal.model.graph import INTERPRETED
from pymc_pseudomarginal.model.marginal_gradient import MarginalObjective
from pymc_pseudomarginal.numerics import NoFiniteApproximation
from pymc_pseudomarginal.numerics.maximise import (
    Climb,
    climb,
    curvature_covariance,
    unbounded_elements,
)

_OBJECTIVES = {"ml": "maximum likelihood", "map": "maximum a posteriori"}
# The search box: the range of that many draws from the prior, and so much on either side.
_BOX_DRAWS, _BOX_MARGIN = 100, 10.0
# Around the initial point, in place of draws, where the prior (pm.Flat) has none.
_SPREAD = 3.0
# Objectives that differ by less, in nats, belong to the same optimum.
_SAME = 1e-2
# Of differences, relative to max(1, |theta_j|).
_STEP = 1e-5


@dataclass(frozen=True, repr=False)
class MarginalFit:
    """Point estimates of the hyper-parameters, the latent integrated out approximately.

    Attributes
    ----------
    estimates : xarray.Dataset
        Every hyper-parameter on its natural scale, with the dims and coords of the model and
        a leading dimension ``statistic``: "estimate" and "standard_error".
    log_marginal : float
        Approximate log p(data|theta): log Z_q and what is observed of theta directly.
    log_objective : float
        What was maximised: `log_marginal`, for "map" plus the log prior density.
    theta : array, shape (d,)
        The estimate on the unconstrained scale.
    covariance : array, shape (d, d)
        Inverse of the negative Hessian of the objective in theta. NaN for the elements of
        `unbounded` hyper-parameters, and everywhere if the Hessian is not negative definite or
        is flat along some direction.
    unbounded : tuple of str
        Hyper-parameters that the objective does not keep away from the edge of the search
        box; their estimates say where the search ended, not what the data tell.
    starts : xarray.Dataset
        Of every start: ``initial`` and ``theta``, where it began and arrived on the
        unconstrained scale, ``log_objective`` there (NaN if it failed), ``converged``, and
        ``evaluations``.
    approximation, objective : str
        As given.
    """

    estimates: xr.Dataset
    log_marginal: float
    log_objective: float
    theta: np.ndarray
    covariance: np.ndarray
    unbounded: tuple[str, ...]
    starts: xr.Dataset
    approximation: str
    objective: str

    @property
    def point(self) -> dict[str, np.ndarray]:
        """The estimates by name on their natural scale, as `predict_approximately` takes them."""
        return self._statistic("estimate")

    @property
    def standard_errors(self) -> dict[str, np.ndarray]:
        """Standard errors of `point`, by the delta method; the same names and shapes."""
        return self._statistic("standard_error")

    def _statistic(self, which):
        chosen = self.estimates.sel(statistic=which)
        return {str(name): array.values.copy() for name, array in chosen.data_vars.items()}

    def __repr__(self):
        """A table of the estimates, and how the starts agreed."""
        rows = [("", "estimate", "standard error")]
        errors = self.standard_errors
        for name, estimate in self.point.items():
            for index in np.ndindex(estimate.shape):
                at = f"[{', '.join(map(str, index))}]" if index else ""
                rows.append((name + at, f"{estimate[index]:.4g}", f"{errors[name][index]:.2g}"))
        width = max(len(row[0]) for row in rows)
        reached = self.starts["log_objective"]
        agreed = int((reached > self.log_objective - _SAME).sum())
        lines = [
            f"MarginalFit ({self.approximation}, {_OBJECTIVES[self.objective]})",
            *(f"  {name:<{width}}{estimate:>12}{error:>16}" for name, estimate, error in rows),
            f"log marginal likelihood {self.log_marginal:.4f}",
            f"{agreed} of {reached.size} starts arrived here, {int(reached.isnull().sum())} failed",
        ]
        if self.unbounded:
            lines.append(f"not bounded by the objective: {', '.join(self.unbounded)}")
        return "\n".join(lines)


def fit_marginal(
    *,
    approximation: str = "ep",
    objective: str = "ml",
    n_starts: int = 5,
    random_seed: int | np.random.Generator | None = None,
    model: pm.Model | None = None,
    progressbar: bool = True,
) -> MarginalFit:
    """Maximise the approximate marginal likelihood p(y|theta) over the hyper-parameters.

    Type-II maximum likelihood, the "EP ML" that Filippone & Girolami compare with. It takes
    seconds where MCMC takes minutes, and tells nothing of how uncertain theta is beyond
    its standard errors.

    Parameters
    ----------
    approximation : {"ep", "laplace"}
        How the latent is integrated out.
    objective : {"ml", "map"}
        "ml" leaves the priors of the hyper-parameters out; "map" adds their log density on
        the natural scale, as `pymc.find_MAP` does.
    n_starts : int
        Number of runs of the optimiser: one from PyMC's initial point, the others from
        draws of the priors.
    random_seed : int or Generator, optional
        Of these draws.
    model : pymc.Model, optional
        Taken from the context if not given.
    progressbar : bool

    Returns
    -------
    MarginalFit

    Raises
    ------
    NumericalFailure
        If the objective is not finite at any of the starts.

    Warns
    -----
    UserWarning
        If the objective does not bound a hyper-parameter, as labels that can be separated
        leave the variance of f unbounded; if the optimiser did not converge; if the curvature
        gives no standard errors.

    Notes
    -----
    Runs L-BFGS-B on the unconstrained scale, in a box that reaches 10 beyond the range of
    100 draws from the priors. Observed variables and potentials that involve theta but not
    f are part of the likelihood. A theta at which the approximation fails counts as very bad.
    The standard errors treat `unbounded` hyper-parameters as known.

    References
    ----------
    Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, chapter 5;
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian processes,
    section 5.2.

    Examples
    --------
    >>> fit = pmpm.fit_marginal(model=model)
    >>> pmpm.predict_approximately(fit.point, gp, Xnew, model=model)
    """
    check_approximation(approximation)
    if objective not in _OBJECTIVES:
        raise ValueError(f"Unknown objective {objective!r}; expected 'ml' or 'map'.")
    n_starts = check_at_least("n_starts", n_starts, 1)
    read = read_model(model)
    if not read.hyperparameters:
        raise ValueError("The model has no hyper-parameters to fit.")
    function = MarginalObjective(read, approximation, with_prior=objective == "map")
    starts, box = _search_region(read, n_starts, np.random.default_rng(random_seed))
    steps = track(starts, "Starts of the optimiser", disable=not progressbar)
    runs = [climb(function, start, box) for start in steps]
    best = max(runs, key=lambda run: run.value)
    if best.value == -np.inf:
        raise NoFiniteApproximation(f"None of {len(runs)} starts has a finite objective.")
    at_edge = unbounded_elements(function, best, box)
    covariance = curvature_covariance(function, best.theta, ~at_edge, box)
    unbounded = tuple(
        rv.name
        for rv, value in zip(read.hyperparameters, read.hyper_values, strict=True)
        if at_edge[read.slices[value.name]].any()
    )
    for problem in _problems(best, unbounded, covariance[~at_edge][:, ~at_edge]):
        warnings.warn(problem, stacklevel=2)
    return MarginalFit(
        estimates=_estimates(read, best.theta, covariance),
        log_marginal=best.value - function.log_prior(best.theta),
        log_objective=best.value,
        theta=best.theta,
        covariance=covariance,
        unbounded=unbounded,
        starts=_starts_dataset(read, runs),
        approximation=approximation,
        objective=objective,
    )


def _search_region(read, n_starts, rng) -> tuple[np.ndarray, np.ndarray]:
    """Starts, the initial point first, shape (S, d), and the box, shape (2, d)."""
    initial = read.theta(read.initial_point)
    count = max(_BOX_DRAWS, 2 * n_starts)
    seed = int(rng.integers(2**31))
    rvs = list(read.hyperparameters)
    try:
        drawn = pm.draw(rvs, draws=count, mode=INTERPRETED, random_seed=seed)
    except NotImplementedError:
        draws = initial + _SPREAD * rng.standard_normal((count, initial.size))
    else:
        rows = zip(*drawn, strict=True)
        with np.errstate(all="ignore"):  # a draw that rounding put on the edge of the support
            draws = np.array(
                [
                    read.unconstrained({rv.name: x for rv, x in zip(rvs, row, strict=True)})
                    for row in rows
                ]
            )
    points = np.vstack([initial, draws[np.isfinite(draws).all(axis=1)]])
    box = np.stack([points.min(axis=0) - _BOX_MARGIN, points.max(axis=0) + _BOX_MARGIN])
    return points[:n_starts], box


def _problems(best: Climb, unbounded: tuple[str, ...], covariance: np.ndarray) -> list[str]:
    """What the user should know before trusting the estimates."""
    problems = []
    if not best.converged:
        problems.append("The optimiser did not converge from the best of the starts.")
    if unbounded:
        problems.append(
            f"The objective does not bound {', '.join(unbounded)}: it is as high at the edge of "
            "the search box. The estimate there only says where the search ended. Use a prior "
            "that keeps it away, with objective='map', or sample the posterior."
        )
    if np.isnan(covariance).any():
        problems.append(
            "The Hessian of the objective is not negative definite at the estimates, or flat "
            "along some direction: the standard errors are NaN."
        )
    return problems


def _estimates(read: LatentGaussianModel, theta: np.ndarray, covariance: np.ndarray) -> xr.Dataset:
    """Estimates and standard errors, the latter by the delta method."""
    # Elements of theta without a variance matter only to what depends on them.
    unknown = np.isnan(np.diagonal(covariance))
    known = np.nan_to_num(covariance)
    jacobians, model = _natural_jacobians(read, theta), read.model
    variables, coords = {}, {"statistic": ["estimate", "standard_error"]}
    for name, estimate in read.natural(theta).items():
        jacobian = jacobians[name]
        error = np.sqrt(np.einsum("...i,ij,...j->...", jacobian, known, jacobian))
        error = np.where((jacobian[..., unknown] != 0.0).any(axis=-1), np.nan, error)
        given = model.named_vars_to_dims.get(name) or [None] * estimate.ndim
        dims = [dim or f"{name}_dim_{i}" for i, dim in enumerate(given)]
        variables[name] = (("statistic", *dims), np.stack([estimate, error]))
        coords |= {dim: list(model.coords[dim]) for dim in dims if model.coords.get(dim)}
    return xr.Dataset(variables, coords)


def _natural_jacobians(read: LatentGaussianModel, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Derivatives of every hyper-parameter in theta, its shape with d added at the end."""
    columns = []
    for j in range(theta.size):
        step = np.zeros(theta.size)
        step[j] = _STEP * max(1.0, abs(theta[j]))
        above, below = read.natural(theta + step), read.natural(theta - step)
        columns.append({name: (above[name] - below[name]) / (2.0 * step[j]) for name in above})
    return {name: np.stack([column[name] for column in columns], axis=-1) for name in columns[0]}


def _starts_dataset(read: LatentGaussianModel, runs: list[Climb]) -> xr.Dataset:
    """What is told of the starts."""
    labels = [
        f"{name}[{', '.join(map(str, index))}]" if index else name
        for name, shape in read.shapes.items()
        for index in np.ndindex(shape)
    ]
    values = np.array([run.value for run in runs])
    return xr.Dataset(
        {
            "log_objective": ("start", np.where(np.isfinite(values), values, np.nan)),
            "converged": ("start", [run.converged for run in runs]),
            "evaluations": ("start", [run.evaluations for run in runs]),
            "initial": (("start", "element"), np.array([run.initial for run in runs])),
            "theta": (("start", "element"), np.array([run.theta for run in runs])),
        },
        coords={"start": np.arange(len(runs)), "element": labels},
    )
