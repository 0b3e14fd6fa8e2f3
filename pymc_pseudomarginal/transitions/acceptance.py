"""The Metropolis-Hastings acceptance probability."""

from __future__ import annotations

import numpy as np


def acceptance_probability(
    log_proposed: float, log_current: float, log_proposal_ratio: float
) -> float:
    """min(1, ratio), for log target densities and log q(theta|theta') - log q(theta'|theta)."""
    log_ratio = log_proposed - log_current + log_proposal_ratio
    # Not a number only where both levels are minus infinity: then nothing speaks for a move.
    return 0.0 if np.isnan(log_ratio) else float(np.exp(min(0.0, log_ratio)))
