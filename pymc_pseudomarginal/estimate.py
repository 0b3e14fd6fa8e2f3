"""`estimate_log_marginal`: the unbiased estimate at given hyper-parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_approximation, check_at_least, check_choice
from pymc_pseudomarginal.model import read_model
from pymc_pseudomarginal.numerics import APPROXIMATIONS
from pymc_pseudomarginal.transitions.point_sets import POINT_SETS, weighted_sampler


@dataclass(frozen=True, repr=False)
class MarginalEstimate:
    """An estimate of log p(y|theta).

    Attributes
    ----------
    log_estimate : float
        Log of the mean importance weight, whose exponential is unbiased for p(y|theta).
    log_approximation : float
        The deterministic Laplace or EP value.
    log_weights : array, shape (N,)
    """

    log_estimate: float
    log_approximation: float
    log_weights: np.ndarray

    @property
    def log_weight_sd(self) -> float:
        """Standard deviation of the log weights; zero for a single one."""
        return float(np.std(self.log_weights))

    def __repr__(self):
        """The three numbers."""
        return (
            f"MarginalEstimate(log_estimate={self.log_estimate:.4f}, "
            f"log_approximation={self.log_approximation:.4f}, "
            f"{len(self.log_weights)} log weights with sd {self.log_weight_sd:.3f})"
        )


def estimate_log_marginal(
    point: Mapping[str, object] | None = None,
    *,
    approximation: str = "laplace",
    n_importance: int = 16,
    annealing: int = 0,
    normals: str = "independent",
    random_seed: int | np.random.Generator | None = None,
    model: pm.Model | None = None,
) -> MarginalEstimate:
    """Importance-sampled estimate of log p(y|theta), the latent integrated out.

    Parameters
    ----------
    point : mapping, optional
        The hyper-parameters by name on their natural scale, e.g.
        ``{"ls": 0.3, "sigma": 2.0}``. None takes PyMC's initial point.
    approximation : {"laplace", "ep"}
        The importance density.
    n_importance : int
        Number of importance samples.
    annealing : int
        Temperatures of annealed importance sampling; 0 is plain importance sampling.
    normals : {"independent", "antithetic", "qmc"}
        How the standard normals behind the samples are drawn: independently, in pairs z and
        -z, or from a randomly shifted Sobol sequence. All give an unbiased estimate; the last
        two are for estimates without annealing.
    random_seed : int or Generator, optional
    model : pymc.Model, optional
        Taken from the context if not given.

    Returns
    -------
    MarginalEstimate

    Raises
    ------
    NumericalFailure
        If the covariance cannot be factorised, or no finite approximation exists, there.
    """
    approximate = APPROXIMATIONS[check_approximation(approximation)]
    n_importance = check_at_least("n_importance", n_importance, 1)
    annealing = check_at_least("annealing", annealing, 0)
    if annealing and normals != "independent":
        raise ValueError(
            f"Annealed paths start from independent draws; found normals={normals!r} with "
            f"annealing={annealing}. Leave out one of them."
        )
    sampler = weighted_sampler(annealing, normals=check_choice("normals", normals, POINT_SETS))
    read = read_model(model)
    theta = read.theta_from_natural(point)
    prior, likelihood = read.prior(theta), read.bind_data()(theta)
    q = approximate(prior, likelihood)
    rng = np.random.default_rng(random_seed)
    samples = sampler(rng, q, likelihood, n_importance)
    return MarginalEstimate(samples.log_estimate, q.log_marginal, samples.log_weights)
