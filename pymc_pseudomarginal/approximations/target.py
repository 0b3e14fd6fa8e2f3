"""q_theta as a function of theta alone: what the kernels sample with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pymc_pseudomarginal.approximations.conditional import Conditional
from pymc_pseudomarginal.approximations.laplace import laplace
from pymc_pseudomarginal.linalg.factor import Plan, plan
from pymc_pseudomarginal.linalg.latent import LatentAt, LatentGaussian
from pymc_pseudomarginal.linalg.products import times

# Newton's tolerance while exploring, where differences of log_weight(0) are taken, ...
_TIGHT = 1e-7
# ... and with a learnt start, where q need only be good: W a step before it does.
_LOOSE = 0.5
_RIDGE = 1e-3


class Known(Protocol):
    """The mean of q at some theta."""

    @property
    def theta(self) -> np.ndarray:
        """Where, shape (d,)."""

    @property
    def mean(self) -> np.ndarray:
        """The mean, shape (n,)."""


@dataclass(frozen=True)
class Start:
    """Where Newton's method starts: intercept + slope z, z = (theta - centre)/scale in a box.

    Beyond the thetas that it was learnt from, the start stays that of the border.

    Parameters
    ----------
    intercept : (n,) array
    slope : (n, d) array
    centre, scale : (d,) arrays
    lower, upper : (d,) arrays
        Bounds of z.
    """

    intercept: np.ndarray
    slope: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def at(self, theta: np.ndarray) -> np.ndarray:
        """The start at theta (d,), shape (n,)."""
        z = np.clip((theta - self.centre) / self.scale, self.lower, self.upper)
        return self.intercept + self.slope @ z

    @classmethod
    def zero(cls, size: int, dim_theta: int) -> "Start":
        """The start x = 0 at every theta."""
        flat = np.zeros(dim_theta)
        return cls(np.zeros(size), np.zeros((size, dim_theta)), flat, flat + 1.0, flat, flat)

    @classmethod
    def fitted(cls, thetas: np.ndarray, modes: np.ndarray) -> "Start":
        """Ridge regression of modes (k, n) on thetas (k, d)."""
        centre, scale = thetas.mean(axis=0), thetas.std(axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        Z = (thetas - centre) / scale
        intercept = modes.mean(axis=0)
        gram = Z.T @ Z + _RIDGE * max(len(Z), 1) * np.eye(Z.shape[1])
        # In C order, as it is after `frozen`: another order would round otherwise.
        slope = np.ascontiguousarray(np.linalg.solve(gram, Z.T @ (modes - intercept)).T)
        return cls(intercept, slope, centre, scale, Z.min(axis=0), Z.max(axis=0))


class LaplaceTarget:
    """Laplace's approximation and its weights at any theta.

    `at` is a function of theta alone: two calls with the same theta give the same bits,
    whatever was evaluated between them.

    Parameters
    ----------
    latent : LatentGaussian
    start : Start, optional
        Where Newton's method starts; x = 0 if it is not given.
    tolerance : float
        Newton's: see `laplace`.
    """

    def __init__(
        self, latent: LatentGaussian, start: Start | None = None, *, tolerance: float = _TIGHT
    ) -> None:
        self.latent = latent
        self.start = Start.zero(latent.size, latent.dim_theta) if start is None else start
        self.tolerance = tolerance
        # Made from patterns, which are the same at every theta: no memory of what was evaluated.
        self._plan: Plan | None = None

    @property
    def dim_theta(self) -> int:
        """d, the number of hyper-parameters."""
        return self.latent.dim_theta

    @property
    def size(self) -> int:
        """n, the number of elements of x."""
        return self.latent.size

    def at(self, theta: np.ndarray) -> Conditional:
        """q_theta and its weights.

        Raises
        ------
        NumericalFailure
        """
        at = self.latent.at(np.asarray(theta, dtype=float))
        if self._plan is None:
            self._plan = _plan_of(at)
        fit = laplace(at, self._plan, self.start.at(at.theta), tolerance=self.tolerance)
        return Conditional(at, fit.mean, fit.weights, fit.factor, fit.iterations)

    def learn_start(self, conditionals: Sequence[Known]) -> "LaplaceTarget":
        """A target whose Newton starts at a linear function of theta fitted to these modes.

        With it Newton also stops earlier, after one or two factorisations.
        """
        if not conditionals:
            return self
        thetas = np.stack([c.theta for c in conditionals])
        modes = np.stack([c.mean for c in conditionals])
        return self._with(Start.fitted(thetas, modes), _LOOSE)

    def frozen(self) -> dict[str, np.ndarray]:
        """All that was learnt, as arrays."""
        learnt = {f"start_{name}": value.copy() for name, value in vars(self.start).items()}
        return {**learnt, "newton_tolerance": np.array(self.tolerance)}

    def thawed(self, arrays: Mapping[str, np.ndarray]) -> "LaplaceTarget":
        """A target of the same latent, with what another one had `frozen`."""
        names = vars(self.start)
        start = Start(**{name: np.array(arrays[f"start_{name}"], order="C") for name in names})
        return self._with(start, float(arrays["newton_tolerance"]))

    def _with(self, start: Start, tolerance: float) -> "LaplaceTarget":
        other = LaplaceTarget(self.latent, start, tolerance=tolerance)
        other._plan = self._plan
        return other


def _plan_of(at: LatentAt) -> Plan:
    """The plan, from the patterns at one theta."""
    eta = times(at.predictor.matrix, np.zeros(at.prior.size)) + at.predictor.offset
    with np.errstate(all="ignore"):
        curvature = at.likelihood.derivatives(eta).curvature
    return plan(at.prior, at.predictor, curvature)
