"""Predictions at new inputs from posterior draws or from a Gaussian approximation."""

from pymc_pseudomarginal.prediction.approximate import predict_approximately
from pymc_pseudomarginal.prediction.predict import predict

__all__ = ["predict", "predict_approximately"]
