"""Figure 3 of the paper: how fast AA, SURR and PM LA (1) mix on the Breast and Pima data.

For each data set the figure shows the trace of log tau of one chain, its autocorrelation, and R-hat
of all chains as they grow. Here the same is drawn from chains that start from the prior, with the
paper's priors and an isotropic covariance; what both figures of real data share is in
`examples.paper.real_chains`.
"""

from __future__ import annotations

from examples.paper.real_chains import claims, draw, report, tasks

__all__ = ["SCALES", "TITLE", "claims", "draw", "report", "tasks"]

TITLE = "Figure 3: mixing on the Breast and Pima data"

_DATA = {"data": ["breast", "pima"], "rows": None, "latent_moves": 10}
SCALES = {
    "quick": {**_DATA, "chains": 2, "burn_in": 200, "draws": 400, "thin": 2},
    "medium": {**_DATA, "chains": 4, "burn_in": 400, "draws": 1200, "thin": 2},
    "paper": {**_DATA, "chains": 10, "burn_in": 2000, "draws": 10000, "thin": 10},
}
