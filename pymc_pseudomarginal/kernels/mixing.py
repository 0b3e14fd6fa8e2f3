"""Sums of exponentials without overflow."""

from __future__ import annotations

import numpy as np


def log_sum_exp(logs: np.ndarray) -> np.ndarray:
    """Log of the sum of exponentials over the last axis; minus infinity where all are."""
    top = logs.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]
