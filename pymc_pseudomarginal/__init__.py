"""Exact Bayesian inference for latent Gaussian models in PyMC by pseudo-marginal MCMC."""

from importlib.metadata import version

from pymc_pseudomarginal import datasets, ops, plots
from pymc_pseudomarginal.certificate import Certificate, certify
from pymc_pseudomarginal.estimate import MarginalEstimate, estimate_log_marginal
from pymc_pseudomarginal.fit import MarginalFit, fit_marginal
from pymc_pseudomarginal.model import UnsupportedModelError
from pymc_pseudomarginal.prediction import predict, predict_approximately
from pymc_pseudomarginal.reading import LatentGaussianModel, read_model
from pymc_pseudomarginal.scores import CapacityScores, capacity_scores
from pymc_pseudomarginal.spread import estimator_spread
from pymc_pseudomarginal.step_methods import (
    ApproximateMarginalMH,
    CentredMH,
    EllipticalSlice,
    LatentHMC,
    PseudoMarginal,
    PseudoMarginalHMC,
    PseudoMarginalMH,
    PseudoMarginalStep,
    SurrogateMH,
    WhitenedMH,
)

__version__ = version("pymc_pseudomarginal")

__all__ = [
    "ApproximateMarginalMH",
    "CapacityScores",
    "CentredMH",
    "Certificate",
    "EllipticalSlice",
    "GPClassifier",
    "LatentGaussianModel",
    "LatentHMC",
    "MarginalEstimate",
    "MarginalFit",
    "PseudoMarginal",
    "PseudoMarginalHMC",
    "PseudoMarginalMH",
    "PseudoMarginalStep",
    "SurrogateMH",
    "UnsupportedModelError",
    "WhitenedMH",
    "capacity_scores",
    "certify",
    "datasets",
    "estimate_log_marginal",
    "estimator_spread",
    "fit_marginal",
    "ops",
    "plots",
    "predict",
    "predict_approximately",
    "read_model",
]


def __getattr__(name):
    if name == "GPClassifier":  # scikit-learn is an optional dependency
        from pymc_pseudomarginal.classifier import GPClassifier

        return GPClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
