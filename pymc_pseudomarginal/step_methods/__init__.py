"""PyMC step methods, one file each; `compat` holds what differs between PyMC 5.28 and 6."""

from pymc_pseudomarginal.step_methods.approximate_marginal_mh import ApproximateMarginalMH
from pymc_pseudomarginal.step_methods.centred_mh import CentredMH
from pymc_pseudomarginal.step_methods.elliptical_slice import EllipticalSlice
from pymc_pseudomarginal.step_methods.latent_hmc import LatentHMC
from pymc_pseudomarginal.step_methods.pseudo_marginal import PseudoMarginal
from pymc_pseudomarginal.step_methods.pseudo_marginal_hmc import PseudoMarginalHMC
from pymc_pseudomarginal.step_methods.pseudo_marginal_mh import PseudoMarginalMH
from pymc_pseudomarginal.step_methods.pseudo_marginal_step import PseudoMarginalStep
from pymc_pseudomarginal.step_methods.surrogate_mh import SurrogateMH
from pymc_pseudomarginal.step_methods.whitened_mh import WhitenedMH

__all__ = [
    "ApproximateMarginalMH",
    "CentredMH",
    "EllipticalSlice",
    "LatentHMC",
    "PseudoMarginal",
    "PseudoMarginalHMC",
    "PseudoMarginalMH",
    "PseudoMarginalStep",
    "SurrogateMH",
    "WhitenedMH",
]
