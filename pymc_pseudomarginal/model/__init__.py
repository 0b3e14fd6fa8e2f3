"""Reading a `pymc.Model`: what is theta, what is f, what hangs on f."""

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.model.reader import read_model

__all__ = ["LatentGaussianModel", "UnsupportedModelError", "read_model"]
