"""Factorising likelihoods p(y|f) = prod_i p(y_i|f_i)."""

from pymc_pseudomarginal.numerics.likelihoods.base import Likelihood
from pymc_pseudomarginal.numerics.likelihoods.gaussian import GaussianLikelihood
from pymc_pseudomarginal.numerics.likelihoods.probit import ProbitLikelihood

__all__ = ["GaussianLikelihood", "Likelihood", "ProbitLikelihood"]
