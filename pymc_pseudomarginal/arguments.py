"""Checks of the arguments that users give."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real

from pymc_pseudomarginal.numerics import APPROXIMATIONS


def check_at_least(name: str, value: int, smallest: int) -> int:
    """`value` as an int, if it is a whole number of at least `smallest`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < smallest:
        raise ValueError(f"{name} must be a whole number of at least {smallest}; found {value!r}.")
    return int(value)


def check_probability(name: str, value: float) -> float:
    """`value` as a float, if it lies strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1; found {value!r}.")
    return float(value)


def check_correlation(value: float) -> float:
    """`value` as a float, if it lies in [0, 1)."""
    if not isinstance(value, Real) or not 0.0 <= value < 1.0:
        raise ValueError(f"correlation must be at least 0 and below 1; found {value!r}.")
    return float(value)


def check_choice(name: str, value: str, choices: Iterable[str]) -> str:
    """`value`, if it is one of the `choices`."""
    if value not in choices:
        known = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"Unknown {name} {value!r}; expected {known}.")
    return value


def check_auto_or_at_least(name: str, value: int | str, smallest: int) -> int | str:
    """`value`, if it is "auto" or a whole number of at least `smallest`."""
    if isinstance(value, str) and value == "auto":
        return value
    try:
        return check_at_least(name, value, smallest)
    except ValueError:
        raise ValueError(
            f'{name} must be "auto" or a whole number of at least {smallest}; found {value!r}.'
        ) from None


def check_approximation(value: str) -> str:
    """`value`, if it names an approximation."""
    return check_choice("approximation", value, tuple(APPROXIMATIONS))
