"""Figure 4 of the paper: how fast AA, SURR and PM LA (1) mix on the Abalone data.

The panels are those of Figure 3, for n = 2835: the trace of log tau of one chain, its
autocorrelation, and R-hat of all chains as they grow. The quick scale takes a random subset of the
rows.
"""

from __future__ import annotations

from examples.paper.real_chains import claims, draw, report, tasks

__all__ = ["SCALES", "TITLE", "claims", "draw", "report", "tasks"]

TITLE = "Figure 4: mixing on the Abalone data"

_DATA = {"data": ["abalone"], "rows": None, "latent_moves": 10}
SCALES = {
    "quick": {**_DATA, "rows": 700, "chains": 2, "burn_in": 200, "draws": 400, "thin": 2},
    "medium": {**_DATA, "chains": 3, "burn_in": 80, "draws": 180, "thin": 2},
    "paper": {**_DATA, "chains": 10, "burn_in": 2000, "draws": 10000, "thin": 10},
}
