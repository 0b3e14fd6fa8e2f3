"""Exact Bayesian inference for latent Gaussian models in PyMC by pseudo-marginal MCMC."""

from importlib.metadata import version

from pymc_pseudomarginal import datasets, ops
from pymc_pseudomarginal.estimate import MarginalEstimate, estimate_log_marginal
from pymc_pseudomarginal.model import LatentGaussianModel, UnsupportedModelError, read_model
from pymc_pseudomarginal.scores import CapacityScores, capacity_scores
from pymc_pseudomarginal.step_methods import EllipticalSlice, PseudoMarginalMH

__version__ = version("pymc_pseudomarginal")

__all__ = [
    "CapacityScores",
    "EllipticalSlice",
    "LatentGaussianModel",
    "MarginalEstimate",
    "PseudoMarginalMH",
    "UnsupportedModelError",
    "capacity_scores",
    "datasets",
    "estimate_log_marginal",
    "ops",
    "read_model",
]
