"""The sites of EP as a function of theta, fitted to those at some thetas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.transitions.interpolation import Interpolation
from pymc_pseudomarginal.transitions.student_t import StudentT

# Share of the variance that may be unknown where sites are predicted.
_UNKNOWN = 0.05


@dataclass(frozen=True)
class FittedSites:
    """theta -> sites (W, nu), interpolated between thetas at which EP has found them.

    Attributes
    ----------
    base : StudentT
        In whose units thetas are compared.
    sites : Interpolation
        Of both, one after the other.
    """

    base: StudentT
    sites: Interpolation

    @classmethod
    def fitted(cls, base: StudentT, thetas: np.ndarray, sites: np.ndarray) -> FittedSites:
        """To sites of shape (m, 2, n) at thetas of shape (m, d)."""
        points = base.standardised(thetas)
        return cls(base, Interpolation.fitted(points, sites.reshape(len(sites), -1)))

    def __call__(self, theta: np.ndarray) -> np.ndarray | None:
        """The sites at theta, shape (2, n); None where too little is known of them."""
        sites, unknown = self.sites(self.base.standardised(theta[None]))
        return sites[0].reshape(2, -1) if unknown[0] < _UNKNOWN else None
