"""What a pseudo-marginal step tells about a draw."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.transitions.effort import FITTED, Effort
from pymc_pseudomarginal.transitions.elliptical_slice import SliceInfo
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional, Info

STATISTICS = {
    "pm_accepted": (bool, []),
    "pm_acceptance": (np.float64, []),
    "pm_log_estimate": (np.float64, []),
    "pm_log_approximation": (np.float64, []),
    "pm_log_weight_sd": (np.float64, []),
    "pm_iterations": (np.int64, []),
    "pm_cubic_operations": (np.int64, []),
    "pm_failed": (np.int64, []),
    "pm_slice_evaluations": (np.int64, []),
    "pm_n_importance": (np.int64, []),
    "pm_ep": (bool, []),
    "pm_fitted_sites": (bool, []),
    "pm_annealing": (np.int64, []),
}
"""Their types and shapes, as PyMC asks for them; `PseudoMarginalMH` explains them."""


def statistics(conditional: Conditional, info: Info, moves: SliceInfo) -> dict:
    """The statistics of a transition."""
    return {
        "pm_accepted": info.accepted,
        "pm_acceptance": info.acceptance,
        "pm_log_estimate": info.log_estimate,
        "pm_log_approximation": conditional.approximation.log_marginal,
        "pm_log_weight_sd": info.log_weight_sd,
        "pm_iterations": info.iterations,
        "pm_cubic_operations": info.cubic_operations,
        "pm_failed": int(info.failure is not None),
        "pm_slice_evaluations": moves.evaluations,
    }


def chosen(effort: Effort) -> dict:
    """What the estimates of a draw are made with."""
    return {
        "pm_n_importance": effort.n_importance,
        "pm_ep": effort.approximation != "laplace",
        "pm_fitted_sites": effort.approximation == FITTED,
        "pm_annealing": effort.annealing,
    }


def idle_statistics() -> dict:
    """The statistics of a draw in which numerics failed and nothing moved."""
    counts = ("iterations", "cubic_operations", "slice_evaluations")
    levels = ("log_estimate", "log_approximation")
    return (
        {"pm_accepted": False, "pm_acceptance": 0.0, "pm_log_weight_sd": 0.0, "pm_failed": 1}
        | {f"pm_{name}": 0 for name in counts}
        | {f"pm_{name}": -np.inf for name in levels}
    )
