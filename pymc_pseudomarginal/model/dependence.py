"""On which element of f does each factor of the likelihood depend?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NO_LATENT = -1
"""Stands for the index of a latent value where there is none."""


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
    n_bits = max(1, int(size - 1).bit_length())
    bits = (np.arange(size) >> np.arange(n_bits)[:, None]) & 1
    halves = np.stack([bits, 1 - bits]).astype(bool)  # (2, n_bits, n)
    changed = False
    for scale in (0.5, 1.0, 2.0):  # an output may be flat somewhere, not everywhere
        base, other = scale * rng.standard_normal((2, size))
        rows = np.where(halves, other, base).reshape(-1, size)
        results = function(np.concatenate([base[None], rows]))
        difference = ~((results[1:] == results[0]) | np.isnan(results[1:]) & np.isnan(results[0]))
        changed = changed | difference.reshape(2, n_bits, -1)
    with_bit, without_bit = changed
    owners = (with_bit << np.arange(n_bits)[:, None]).sum(axis=0)
    depends = (with_bit | without_bit).any(axis=0)
    return np.where(depends, owners, NO_LATENT), (with_bit & without_bit).any(axis=0)
