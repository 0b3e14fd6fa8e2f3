"""PyMC step methods, one file each; `compat` holds what differs between PyMC 5.28 and 6."""

from pymc_pseudomarginal.step_methods.elliptical_slice import EllipticalSlice
from pymc_pseudomarginal.step_methods.pseudo_marginal_mh import PseudoMarginalMH

__all__ = ["EllipticalSlice", "PseudoMarginalMH"]
