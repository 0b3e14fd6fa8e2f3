"""Figure 6: capacity scores of four classifiers against the size of the training set.

The Pima and Thyroid data sets. The paper draws capacity accuracy and capacity AUC over 40 random
training sets of each size; so does this module, with fewer of them at the smaller scales.
"""

from __future__ import annotations

from examples.paper.capacity import claims, draw, report
from examples.paper.folds import scales, tasks

__all__ = ["SCALES", "TITLE", "claims", "draw", "report", "tasks"]

TITLE = "Figure 6: capacity scores on the Pima and Thyroid data"
SCALES = scales(["pima", "thyroid"])
