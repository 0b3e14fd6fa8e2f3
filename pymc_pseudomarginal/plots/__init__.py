"""Plots of chains, estimates and predictions. They need matplotlib, which is optional."""

from pymc_pseudomarginal.plots.autocorrelation import plot_autocorrelation
from pymc_pseudomarginal.plots.capacity import plot_capacity
from pymc_pseudomarginal.plots.estimator_spread import plot_estimator_spread
from pymc_pseudomarginal.plots.latent import plot_latent
from pymc_pseudomarginal.plots.probability import plot_probability
from pymc_pseudomarginal.plots.running_rhat import plot_running_rhat

__all__ = [
    "plot_autocorrelation",
    "plot_capacity",
    "plot_estimator_spread",
    "plot_latent",
    "plot_probability",
    "plot_running_rhat",
]
