"""Figure 7: capacity scores of four classifiers against the size of the training set.

As figure 6, for the Ionosphere, Glass and USPS data sets. USPS does not come with the package: its
path is taken from the environment variable `PAPER_USPS`, and its folds are left out without it.
"""

from __future__ import annotations

from examples.paper.capacity import claims, draw, report
from examples.paper.folds import scales, tasks

__all__ = ["SCALES", "TITLE", "claims", "draw", "report", "tasks"]

TITLE = "Figure 7: capacity scores on the Ionosphere, Glass and USPS data"
SCALES = scales(["ionosphere", "glass", "usps"])
