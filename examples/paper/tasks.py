"""What a worker is asked to do, and the seed that goes with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

SEED = 2014
"""All seeds derive from it and from the names of experiment and task."""


@dataclass(frozen=True)
class Task:
    """One chain, fold or curve: a function of arguments that are stored with its result.

    Parameters
    ----------
    name : str
        Unique in its experiment, and the same in every run.
    function : callable
        Of a module, so that workers find it. Called as ``function(**arguments, **data,
        seed=seed)``; returns a dict of numbers, strings, arrays, and lists and dicts of them.
    arguments : dict
        As JSON knows them. Where they differ from those of a stored result, the task runs again.
    data : dict
        More arguments, too large to be remembered.
    """

    name: str
    function: Callable[..., dict]
    arguments: Mapping[str, object]
    data: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        """Of the function's name and the arguments."""
        asked = {"function": self.function.__qualname__, "arguments": compact(self.arguments)}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def seed_of(*names: str | int) -> int:
    """A seed for what has these names, independent of those of other names."""
    text = "/".join([str(SEED), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def compact(value: object) -> object:
    """The value as JSON knows it, with six digits; None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): compact(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return compact(value.tolist())
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value
