"""What tuning ends in: arrays and numbers, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from pymc_pseudomarginal.kernels.grid_density import GridDensity
from pymc_pseudomarginal.kernels.proposals import (
    AUTOREGRESSION,
    INDEPENDENCE,
    WALK,
    CoveringDensity,
    ThetaProposals,
)
from pymc_pseudomarginal.kernels.student_t import StudentMixture
from pymc_pseudomarginal.kernels.triangular import TriangularDensity

_FITTED = {"grid": GridDensity, "mixture": StudentMixture, "triangular": TriangularDensity}
_TARGET = "target."


@dataclass(frozen=True)
class Measured:
    """Acceptances that were measured on fresh draws; NaN where something was not tried.

    Attributes
    ----------
    joint : float
        Of theta and u proposed together.
    fixed : float
        Of theta ~ g at fixed noise.
    autoregression, walk : float
        Of the other proposals of theta at fixed noise.
    noise : float
        Of trajectories of u.
    modes : int
        Modes of the approximate marginal posterior that were found.
    evaluations : int
        Number of thetas at which q was computed while tuning.
    """

    joint: float
    fixed: float
    autoregression: float
    walk: float
    noise: float
    modes: int
    evaluations: int


@dataclass(frozen=True, repr=False, eq=False)
class Tuned:
    """All that a chain needs besides the target, its generator and its state.

    Attributes
    ----------
    proposals : ThetaProposals
    joint_share : float
        Probability that a draw proposes theta and u together.
    moves : int
        Moves of theta at fixed noise in any other draw.
    kicks : int
        Of a trajectory of u.
    angle : float
        Mean angle of a trajectory of u.
    settle : int
        Draws that a chain is to make before the first one is kept.
    measured : Measured
        Why.
    frozen : dict of arrays
        What the target learnt: `target.thawed(frozen)`.
    """

    proposals: ThetaProposals
    joint_share: float
    moves: int
    kicks: int
    angle: float
    settle: int
    measured: Measured
    frozen: Mapping[str, np.ndarray]

    @cached_property
    def dim_theta(self) -> int:
        """Number of hyper-parameters."""
        return len(self.proposals.walk_factor)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as named arrays, for `numpy.savez`."""
        proposals, density = self.proposals, self.proposals.density
        kind = next(name for name, cls in _FITTED.items() if isinstance(density.fitted, cls))
        arrays = {name: np.asarray(getattr(self, name)) for name in _NUMBERS}
        arrays |= {f"measured.{f.name}": getattr(self.measured, f.name) for f in fields(Measured)}
        arrays |= {f"proposals.{name}": getattr(proposals, name) for name in _OF_PROPOSALS}
        arrays |= {
            f"{kind}.{f.name}": getattr(density.fitted, f.name) for f in fields(density.fitted)
        }
        arrays |= {f"wide.{f.name}": getattr(density.wide, f.name) for f in fields(density.wide)}
        arrays["wide_share"] = np.asarray(density.share)
        arrays |= {_TARGET + name: array for name, array in self.frozen.items()}
        return {name: np.asarray(array) for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Tuned:
        """The same again, from what `to_arrays` gave or `numpy.load` of it."""
        kind = next(kind for kind in _FITTED if any(name.startswith(f"{kind}.") for name in arrays))
        density = CoveringDensity(
            _built(_FITTED[kind], kind, arrays),
            _built(StudentMixture, "wide", arrays),
            float(arrays["wide_share"]),
        )
        proposals = ThetaProposals(
            density,
            np.asarray(arrays["proposals.walk_factor"]),
            float(arrays["proposals.rho"]),
            np.asarray(arrays["proposals.shares"]),
        )
        numbers = {name: arrays[name].item() for name in _NUMBERS}
        measured = Measured(
            **{f.name: arrays[f"measured.{f.name}"].item() for f in fields(Measured)}
        )
        frozen = {
            name.removeprefix(_TARGET): np.asarray(arrays[name])
            for name in arrays
            if name.startswith(_TARGET)
        }
        return cls(proposals=proposals, measured=measured, frozen=frozen, **numbers)

    def __repr__(self) -> str:
        m = self.measured
        return (
            f"Tuned({self.dim_theta} hyper-parameters; {self._draws()}; {m.evaluations} "
            f"evaluations, {m.modes} mode{'s' * (m.modes != 1)})\n"
            f"  acceptance on fresh draws: theta and noise together {_shown(m.joint)}, theta at "
            f"fixed noise {_shown(m.fixed)}, autoregression {_shown(m.autoregression)}, "
            f"walk {_shown(m.walk)}, noise {_shown(m.noise)}"
        )

    def _draws(self) -> str:
        sweep = f"{self.kicks} kick{'s' * (self.kicks != 1)} to the noise"
        if self.moves:
            names = {
                INDEPENDENCE: "fitted density",
                AUTOREGRESSION: f"autoregression {self.proposals.rho:.2f}",
                WALK: "walk",
            }
            shares = self.proposals.shares
            kinds = ", ".join(f"{shares[i]:.0%} {name}" for i, name in names.items() if shares[i])
            sweep = f"{self.moves} of theta at fixed noise ({kinds}) and {sweep}"
        if not self.joint_share:
            return f"a draw is {sweep}"
        return f"a draw is, {self.joint_share:.0%}, theta and noise together, else {sweep}"


_NUMBERS = ("joint_share", "moves", "kicks", "angle", "settle")
_OF_PROPOSALS = ("walk_factor", "rho", "shares")


def _built(cls, prefix, arrays):
    return cls(**{f.name: np.asarray(arrays[f"{prefix}.{f.name}"]) for f in fields(cls)})


def _shown(acceptance: float) -> str:
    return "not tried" if np.isnan(acceptance) else f"{acceptance:.2f}"
