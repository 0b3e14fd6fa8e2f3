"""Checks of the arguments that users give."""

from __future__ import annotations

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


def check_approximation(value: str) -> str:
    """`value`, if it names an approximation."""
    if value not in APPROXIMATIONS:
        known = " or ".join(repr(name) for name in APPROXIMATIONS)
        raise ValueError(f"Unknown approximation {value!r}; expected {known}.")
    return value
