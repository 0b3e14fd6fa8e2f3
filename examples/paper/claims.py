"""What the paper claims, as statistics with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from examples.benchmarks.tables import table

DECISIVE = 2.0
"""Standard errors from which a difference counts."""


@dataclass(frozen=True)
class Claim:
    """A statement that holds if a quantity is positive.

    Parameters
    ----------
    text : str
        The statement.
    quantity : str
        What was estimated, e.g. "log ratio of ESS per draw".
    estimate, error : float
        With its standard error.
    """

    text: str
    quantity: str
    estimate: float
    error: float

    @property
    def z(self) -> float:
        """The estimate in standard errors."""
        return self.estimate / self.error if self.error > 0 else float("nan")

    @property
    def verdict(self) -> str:
        """Whether the quantity is positive, as far as its error allows to say."""
        if self.z > DECISIVE:
            return "holds"
        return "does not hold" if self.z < -DECISIVE else "undecided"


def as_markdown(claims: Sequence[Claim]) -> str:
    """The table of claims."""
    rows = [
        [claim.text, claim.quantity, f"{claim.estimate:.3g} ± {claim.error:.2g}", claim.verdict]
        for claim in claims
    ]
    return table(["claim", "measured as", "estimate ± standard error", "verdict"], rows)
