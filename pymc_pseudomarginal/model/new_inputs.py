"""A Gaussian process of a model at new inputs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.math import cartesian
from pymc.pytensorf import compile as compile_graph

from pymc_pseudomarginal.model.graph import INTERPRETED
from pymc_pseudomarginal.model.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.numerics import NewPoints, NotPositiveDefinite


class NewInputs:
    """Theta and new inputs -> prior moments of the latent there, with f.

    Parameters
    ----------
    model : LatentGaussianModel
    gp : pymc.gp.Latent or pymc.gp.LatentKron
        The process whose ``prior`` made the latent of the model.

    Raises
    ------
    ValueError
        If it is the process of another latent.
    """

    def __init__(self, model: LatentGaussianModel, gp: pm.gp.Latent | pm.gp.LatentKron):
        self.model = model
        self.gp = gp
        self.X = pt.as_tensor(self._inputs_of(gp))
        self.n_columns = self.X.eval(mode=INTERPRETED).shape[1]

    @cached_property
    def _moments(self):
        new = pt.matrix("X_new", shape=(None, self.n_columns))
        graphs = self.model.model.replace_rvs_by_values(
            [
                pt.broadcast_to(self.gp.mean_func(new), (new.shape[0],)),
                self.gp.cov_func(new, self.X),
                self.gp.cov_func(new, diag=True),
            ]
        )
        function = compile_graph([*self.model.hyper_values, new], graphs, on_unused_input="ignore")
        function.trust_input = True
        return function

    def _inputs_of(self, gp):
        latent = self.model.latent
        found = getattr(gp, "f", None)
        if found is None:
            raise ValueError(
                f"gp has no prior yet, so that it cannot be the process of the latent "
                f"{latent.name!r}. Give the one with which you called "
                f"gp.prior({latent.name!r}, ...); for a sum of processes that is the sum."
            )
        if found is not latent.f:
            raise ValueError(
                f"gp is not the process of this model: its prior {found.name!r} is another "
                f"variable than the latent {latent.name!r}. Give the gp and the model= that "
                "belong together."
            )
        return cartesian(*gp.Xs) if isinstance(gp, pm.gp.LatentKron) else gp.X

    def at(self, theta: np.ndarray, X: np.ndarray) -> NewPoints:
        """Moments at the rows of X, shape (m, d).

        Raises
        ------
        NotPositiveDefinite
            If they are not finite at theta.
        """
        mean, cross, variance = self._moments(*self.model.hyper_values_at(theta), X)
        if not np.isfinite(mean.sum() + cross.sum() + variance.sum()):
            raise NotPositiveDefinite("The mean or the covariance at the new inputs is not finite.")
        return NewPoints(mean, cross, variance)
