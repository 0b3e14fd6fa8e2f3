"""Reading a PyMC model as a latent Gaussian model."""

from pymc_pseudomarginal.reading.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.reading.reader import read_model

__all__ = ["LatentGaussianModel", "read_model"]
