"""On which element of f does each factor of the likelihood depend, and is it a sum over them?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NO_LATENT = -1
"""Stands for the index of a latent value where there is none."""

# Of f, for what couples its elements near zero only, or only beyond data of any size.
_SCALES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 1e2, 1e3, 1e4, 1e6, 1e8)
# Units of rounding to each term of a sum: a few for its function, a few for its addition.
_ROUNDINGS = 16


def find_owners(
    function: Callable[[np.ndarray], np.ndarray], size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """For every output of a function of f, the element of f on which it depends.

    Half of the elements of f are changed at a time, namely those whose index has (or
    has not) a certain bit: an output that depends on one element changes for one of
    the two halves, and the answers spell the index. An output that changes for both
    depends on several elements. So log2(n) evaluations tell, without derivatives.

    Parameters
    ----------
    function : callable
        f of shape (B, n) -> outputs of shape (B, M), each row by itself.
    size : int
        n.
    rng : numpy.random.Generator
        For the values of f that are tried.

    Returns
    -------
    owners : array of int, shape (M,)
        `NO_LATENT` where an output depends on no element.
    coupled : array of bool, shape (M,)
        Whether it depends on more than one.
    """
    halves = _halves(size)
    n_bits = halves.shape[1]
    changed = False
    for scale in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0):  # an output may be flat nearly everywhere
        base, other = scale * rng.standard_normal((2, size))
        rows = np.where(halves, other, base).reshape(-1, size)
        results = function(np.concatenate([base[None], rows]))
        difference = ~((results[1:] == results[0]) | np.isnan(results[1:]) & np.isnan(results[0]))
        changed = changed | difference.reshape(2, n_bits, -1)
    with_bit, without_bit = changed
    owners = (with_bit << np.arange(n_bits)[:, None]).sum(axis=0)
    depends = (with_bit | without_bit).any(axis=0)
    return np.where(depends, owners, NO_LATENT), (with_bit & without_bit).any(axis=0)


def is_separable(
    function: Callable[[np.ndarray], np.ndarray], size: int, rng: np.random.Generator
) -> bool:
    """Whether a function of f is a sum of functions of one element each.

    Two values of f are given, and of these two others are made by exchanging half of the
    elements. A sum over the elements gives both pairs the same total, however flat it is:
    this is a second difference over long steps, where a curvature would see nothing of
    what is piecewise linear. The halves are those of `find_owners`, of which some part any
    two elements. Minus infinity counts like any other value; where the function has no
    value, or is plus infinity, it says nothing.

    Parameters
    ----------
    function : callable
        f of shape (B, n) -> terms of shape (B, M), of which the sum counts.
    size : int
        n.
    rng : numpy.random.Generator
        For the values of f that are tried.
    """
    with_bit, without_bit = _halves(size)
    for scale in _SCALES:
        first, second = scale * rng.standard_normal((2, size))
        one, other = (np.where(half, second, first) for half in (with_bit, without_bit))
        with np.errstate(all="ignore"):
            terms = function(np.concatenate([first[None], second[None], one, other]))
            totals = terms.sum(axis=1)
            pair = totals[0] + totals[1]
            exchanged = totals[2:].reshape(2, -1).sum(axis=0)
            finite = np.isfinite(totals)
            # The elements of f are the same numbers in both pairs, so that only the additions
            # are rounded in another way: of so many terms, or of elements inside of one.
            magnitude = np.abs(terms[finite]).sum(axis=1).max(initial=0.0)
            units = _ROUNDINGS * (size + terms.shape[1]) * np.finfo(terms.dtype).eps
            known = ~np.isnan(pair + exchanged) & (pair < np.inf) & (exchanged < np.inf)
            same = (pair == exchanged) | (np.abs(pair - exchanged) <= units * magnitude)
        if (known & ~same).any():
            return False
    return True


def _halves(size: int) -> np.ndarray:
    """Whether the index of an element has a certain bit, and whether not, (2, bits, n)."""
    n_bits = max(1, int(size - 1).bit_length())
    bits = (np.arange(size) >> np.arange(n_bits)[:, None]) & 1
    return np.stack([bits, 1 - bits]).astype(bool)
