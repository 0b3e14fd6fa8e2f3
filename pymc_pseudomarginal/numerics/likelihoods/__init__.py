"""Factorising likelihoods p(y|f) = prod_i p(y_i|f_i)."""

from pymc_pseudomarginal.numerics.likelihoods.base import Likelihood, TiltedMoments
from pymc_pseudomarginal.numerics.likelihoods.gaussian import GaussianLikelihood
from pymc_pseudomarginal.numerics.likelihoods.linear_predictor import LinearPredictorLikelihood
from pymc_pseudomarginal.numerics.likelihoods.ordered_probit import OrderedProbitLikelihood
from pymc_pseudomarginal.numerics.likelihoods.probit import ProbitLikelihood
from pymc_pseudomarginal.numerics.likelihoods.quadrature import tilted_moments_by_quadrature

__all__ = [
    "GaussianLikelihood",
    "Likelihood",
    "LinearPredictorLikelihood",
    "OrderedProbitLikelihood",
    "ProbitLikelihood",
    "TiltedMoments",
    "tilted_moments_by_quadrature",
]
