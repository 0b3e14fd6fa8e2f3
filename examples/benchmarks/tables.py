"""Markdown tables and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

UNKNOWN = "–"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def number(value: float | None) -> str:
    """Three digits or so."""
    if value is None:
        return UNKNOWN
    for limit, digits in ((100.0, 0), (10.0, 1), (0.1, 2)):
        if abs(value) >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.2g}"


def spread(quartiles: dict[str, float] | None) -> str:
    """The median with the quartiles in brackets, which a single measurement does not have."""
    if quartiles is None:
        return UNKNOWN
    if quartiles["lower"] == quartiles["upper"]:
        return number(quartiles["median"])
    lower, upper = number(quartiles["lower"]), number(quartiles["upper"])
    return f"{number(quartiles['median'])} ({lower} to {upper})"
