"""The numbers of the paper's Tables 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

Row = TypeVar("Row")
Key = tuple[int, int, str, str]
"""n, d, kernel ("isotropic" or "ard") and scheme."""


class Efficiency(NamedTuple):
    """A row of Table 1: means over the chains and their standard deviations.

    Attributes
    ----------
    ess, ess_sd : float
        Effective draws among 10 000 of the hyper-parameter that has the fewest.
    rhats : tuple of float
        R-hat after 1000, 2000, 5000 and 10 000 iterations.
    acceptance, acceptance_sd : float
        In percent.
    """

    ess: float
    ess_sd: float
    rhats: tuple[float, ...]
    acceptance: float
    acceptance_sd: float


class Operations(NamedTuple):
    """A row of Table 2: cubic operations per iteration, and their standard deviation."""

    operations: float
    operations_sd: float


class Repeated(NamedTuple):
    """A row of Table 3, where each Gibbs update is repeated 20 times.

    Attributes
    ----------
    ess, ess_sd : float
        As in Table 1.
    ess_per_operation, ess_per_operation_sd : float
        The same, divided by the cubic operations of one proposal.
    rhats : tuple of float
        As in Table 1.
    """

    ess: float
    ess_sd: float
    ess_per_operation: float
    ess_per_operation_sd: float
    rhats: tuple[float, ...]


def _rows(text: str, row: Callable[..., Row]) -> dict[Key, Row]:
    found = {}
    for line in text.strip().splitlines():
        cell, scheme, numbers = line.split("|")
        n, d, kernel = cell.split()
        found[int(n), int(d), kernel, scheme.strip()] = row(*map(float, numbers.split()))
    return found


TABLE_1: dict[Key, Efficiency] = _rows(
    """
 50  2 isotropic | PM LA (1)  | 749  73 1.00 1.00 1.00 1.00 23.9  0.4
 50  2 isotropic | PM LA (16) | 778  61 1.00 1.00 1.00 1.00 25.1  0.4
 50  2 isotropic | PM LA (64) | 752  76 1.00 1.00 1.00 1.00 24.8  0.5
 50  2 isotropic | PM EP (1)  | 747 100 1.00 1.00 1.00 1.00 24.4  0.5
 50  2 isotropic | PM EP (16) | 736 163 1.00 1.00 1.00 1.00 25.0  0.6
 50  2 isotropic | PM EP (64) | 793  54 1.00 1.00 1.00 1.00 24.9  0.5
 50  2 isotropic | AA         | 287  58 1.00 1.00 1.00 1.00 22.7  0.9
 50  2 isotropic | SURR       | 154  11 1.01 1.00 1.00 1.00 22.4  1.0
 50 10 isotropic | PM LA (1)  | 237 147 1.25 1.26 1.19 1.08 18.2  4.6
 50 10 isotropic | PM LA (16) | 238 194 1.01 1.02 1.03 1.02 16.9  6.0
 50 10 isotropic | PM LA (64) | 348 126 1.01 1.01 1.01 1.01 21.8  2.3
 50 10 isotropic | PM EP (1)  | 282  47 1.02 1.01 1.01 1.00 19.2  1.4
 50 10 isotropic | PM EP (16) | 507  36 1.00 1.00 1.00 1.00 24.7  1.0
 50 10 isotropic | PM EP (64) | 583  51 1.00 1.00 1.00 1.00 26.1  0.6
 50 10 isotropic | AA         |  71  23 1.02 1.01 1.02 1.01 22.8  2.5
 50 10 isotropic | SURR       |  52  15 1.04 1.02 1.02 1.02 21.8  2.9
200  2 isotropic | PM LA (1)  | 717  31 1.00 1.00 1.00 1.00 31.7  0.5
200  2 isotropic | PM LA (16) | 739  46 1.00 1.00 1.00 1.00 32.6  0.5
200  2 isotropic | PM LA (64) | 730  26 1.00 1.00 1.00 1.00 32.6  0.6
200  2 isotropic | PM EP (1)  | 736  47 1.00 1.00 1.00 1.00 32.8  0.5
200  2 isotropic | PM EP (16) | 736  48 1.00 1.00 1.00 1.00 32.7  0.4
200  2 isotropic | PM EP (64) | 721  43 1.00 1.00 1.00 1.00 32.6  0.7
200  2 isotropic | AA         | 112  49 1.01 1.01 1.01 1.01 21.6  1.0
200  2 isotropic | SURR       |  54   8 1.01 1.02 1.01 1.01 21.5  1.5
200 10 isotropic | PM LA (1)  | 115  53 1.03 1.03 1.02 1.04 27.1 11.3
200 10 isotropic | PM LA (16) | 117  42 1.05 1.04 1.03 1.03 26.8  9.0
200 10 isotropic | PM LA (64) | 145  62 1.01 1.01 1.01 1.02 28.7  8.0
200 10 isotropic | PM EP (1)  |  75  35 1.03 1.03 1.03 1.02 18.2  3.7
200 10 isotropic | PM EP (16) | 137  38 1.01 1.01 1.01 1.01 27.6  4.2
200 10 isotropic | PM EP (64) | 130  64 1.09 1.09 1.09 1.12 25.5 10.0
200 10 isotropic | AA         |  26   6 1.05 1.04 1.03 1.03 23.7  1.9
200 10 isotropic | SURR       |  18   7 1.27 1.28 1.24 1.16 21.5  8.6
 50  2 ard       | PM LA (1)  | 131  41 1.04 1.05 1.04 1.02 13.0  3.3
 50  2 ard       | PM LA (16) | 206  21 1.05 1.04 1.03 1.01 16.7  1.2
 50  2 ard       | PM LA (64) | 212  38 1.03 1.03 1.02 1.01 16.6  1.9
 50  2 ard       | PM EP (1)  | 208  22 1.01 1.00 1.01 1.00 16.1  1.0
 50  2 ard       | PM EP (16) | 246  23 1.00 1.00 1.00 1.00 19.2  0.7
 50  2 ard       | PM EP (64) | 252  24 1.00 1.00 1.00 1.00 19.9  0.8
 50  2 ard       | AA         |  20   9 1.12 1.12 1.05 1.03 20.3  2.6
 50  2 ard       | SURR       |  21   6 1.11 1.08 1.07 1.05 21.6  3.3
 50 10 ard       | PM LA (1)  |  19  12 1.08 1.09 1.13 1.17  7.1  4.4
 50 10 ard       | PM LA (16) |  62  30 1.04 1.04 1.06 1.11 17.6  4.9
 50 10 ard       | PM LA (64) |  78  23 1.03 1.03 1.01 1.01 20.2  2.8
 50 10 ard       | PM EP (1)  |  63  18 1.03 1.03 1.02 1.01 15.6  1.2
 50 10 ard       | PM EP (16) | 107  12 1.01 1.01 1.01 1.01 24.2  0.5
 50 10 ard       | PM EP (64) | 108  28 1.02 1.01 1.01 1.01 26.3  0.7
 50 10 ard       | AA         |  74   6 1.03 1.03 1.02 1.02 22.4  2.7
 50 10 ard       | SURR       |  45   5 1.03 1.03 1.02 1.01 21.7  1.7
200  2 ard       | PM LA (1)  | 318  29 1.00 1.00 1.00 1.00 38.3  0.8
200  2 ard       | PM LA (16) | 364  20 1.00 1.00 1.00 1.00 43.1  0.5
200  2 ard       | PM LA (64) | 355  42 1.00 1.00 1.00 1.00 43.6  0.7
200  2 ard       | PM EP (1)  | 349  26 1.00 1.00 1.00 1.00 42.0  0.4
200  2 ard       | PM EP (16) | 365  21 1.00 1.00 1.00 1.00 43.5  0.5
200  2 ard       | PM EP (64) | 354  37 1.00 1.00 1.00 1.00 43.9  0.6
200  2 ard       | AA         |  41   8 1.07 1.07 1.06 1.04 23.0  2.3
200  2 ard       | SURR       |  61   9 1.02 1.02 1.01 1.01 22.0  1.9
200 10 ard       | PM LA (1)  |  27  10 1.39 1.33 1.19 1.11 12.3  2.9
200 10 ard       | PM LA (16) |  53  18 1.08 1.06 1.03 1.02 18.0  1.9
200 10 ard       | PM LA (64) |  37  31 1.14 1.15 1.17 1.17 13.2  8.6
200 10 ard       | PM EP (1)  |  26  14 1.12 1.09 1.13 1.08 10.3  3.1
200 10 ard       | PM EP (16) |  52  13 1.20 1.15 1.08 1.04 17.1  2.1
200 10 ard       | PM EP (64) |  45  21 1.03 1.03 1.03 1.09 17.4  3.4
200 10 ard       | AA         |  22   7 1.10 1.08 1.05 1.03 21.6  5.5
200 10 ard       | SURR       |  10   3 1.07 1.08 1.06 1.05 20.3  3.9
""",
    lambda ess, ess_sd, a, b, c, d, *acceptance: Efficiency(ess, ess_sd, (a, b, c, d), *acceptance),
)

TABLE_2: dict[Key, Operations] = _rows(
    """
 50  2 isotropic | PM LA |  8.2 0.2
 50  2 isotropic | PM EP | 16.3 0.0
 50  2 isotropic | AA    |  1.0 0.0
 50  2 isotropic | SURR  |  3.0 0.0
 50 10 isotropic | PM LA |  7.8 0.3
 50 10 isotropic | PM EP | 13.0 0.1
 50 10 isotropic | AA    |  1.0 0.0
 50 10 isotropic | SURR  |  3.0 0.0
200  2 isotropic | PM LA |  8.7 0.0
200  2 isotropic | PM EP | 15.5 0.0
200  2 isotropic | AA    |  1.0 0.0
200  2 isotropic | SURR  |  3.0 0.0
200 10 isotropic | PM LA |  7.6 0.2
200 10 isotropic | PM EP | 13.3 0.1
200 10 isotropic | AA    |  1.0 0.0
200 10 isotropic | SURR  |  3.0 0.0
 50  2 ard       | PM LA |  8.8 0.2
 50  2 ard       | PM EP | 17.7 0.1
 50  2 ard       | AA    |  1.0 0.0
 50  2 ard       | SURR  |  3.0 0.0
 50 10 ard       | PM LA |  8.3 0.2
 50 10 ard       | PM EP | 13.7 0.1
 50 10 ard       | AA    |  1.0 0.0
 50 10 ard       | SURR  |  3.0 0.0
200  2 ard       | PM LA |  9.3 0.0
200  2 ard       | PM EP | 17.3 0.0
200  2 ard       | AA    |  1.0 0.0
200  2 ard       | SURR  |  3.0 0.0
200 10 ard       | PM LA |  7.9 0.2
200 10 ard       | PM EP | 13.2 0.2
200 10 ard       | AA    |  1.0 0.0
200 10 ard       | SURR  |  3.0 0.0
""",
    Operations,
)

# What the paper calls PM here is PM EP (64).
TABLE_3: dict[Key, Repeated] = _rows(
    """
 50  2 isotropic | PM EP (64) | 9057 243  556  15 1.00 1.00 1.00 1.00
 50  2 isotropic | AA         | 1571 378 1571 378 1.00 1.00 1.00 1.00
 50  2 isotropic | SURR       |  702  98  234  33 1.00 1.00 1.00 1.00
 50 10 isotropic | PM EP (64) | 7478 333  575  26 1.00 1.00 1.00 1.00
 50 10 isotropic | AA         |  211  22  211  22 1.01 1.00 1.00 1.00
 50 10 isotropic | SURR       |  133  23   44   8 1.01 1.01 1.01 1.00
200  2 isotropic | PM EP (64) | 8850 301  571  19 1.00 1.00 1.00 1.00
200  2 isotropic | AA         |  327 142  327 142 1.01 1.00 1.01 1.00
200  2 isotropic | SURR       |  234  24   78   8 1.00 1.00 1.00 1.00
200 10 isotropic | PM EP (64) |  737 533   55  40 1.01 1.01 1.01 1.01
200 10 isotropic | AA         |   37   7   37   7 1.05 1.05 1.05 1.03
200 10 isotropic | SURR       |   25   6    8   2 1.05 1.05 1.01 1.00
 50  2 ard       | PM EP (64) | 4301 169  243  10 1.00 1.00 1.00 1.00
 50  2 ard       | AA         |   57  11   57  11 1.01 1.01 1.01 1.01
 50  2 ard       | SURR       |   64   9   21   3 1.02 1.02 1.02 1.01
 50 10 ard       | PM EP (64) | 2207 141  161  10 1.00 1.00 1.00 1.00
 50 10 ard       | AA         |  464  40  464  40 1.00 1.00 1.00 1.00
 50 10 ard       | SURR       |  207  18   69   6 1.01 1.01 1.01 1.00
200  2 ard       | PM EP (64) | 5844 166  338  10 1.00 1.00 1.00 1.00
200  2 ard       | AA         |  143  22  143  22 1.01 1.01 1.00 1.00
200  2 ard       | SURR       |  339  47  113  16 1.00 1.00 1.00 1.00
200 10 ard       | PM EP (64) |  363 250   28  19 1.03 1.03 1.01 1.01
200 10 ard       | AA         |   42   8   42   8 1.03 1.03 1.02 1.01
200 10 ard       | SURR       |   22   5    7   2 1.09 1.07 1.05 1.03
""",
    lambda ess, ess_sd, per, per_sd, *rhats: Repeated(ess, ess_sd, per, per_sd, rhats),
)
