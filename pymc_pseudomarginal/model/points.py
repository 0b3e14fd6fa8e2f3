"""Points at which a model is tried out when it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pymc as pm
from pytensor.tensor.variable import TensorVariable

_JITTER = 0.1


def trial_points(
    model: pm.Model, variables: Iterable[TensorVariable]
) -> Iterator[list[np.ndarray]]:
    """Values of value variables near the model's initial point.

    That point itself comes last: there a coefficient may be zero and hide what it couples.
    """
    start = model.initial_point()
    rng = np.random.default_rng(0)
    for jitter in (_JITTER, -_JITTER, 0.0):
        yield [_near(start[v.name], jitter, rng) for v in variables]


def _near(value: np.ndarray, jitter: float, rng: np.random.Generator) -> np.ndarray:
    if value.dtype.kind != "f":
        return value
    return np.asarray(value + jitter * rng.uniform(0.2, 1.0, value.shape))
