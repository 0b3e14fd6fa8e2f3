"""PyTensor Ops of the marginal likelihood, usable in any graph."""

from pymc_pseudomarginal.ops.approximate_marginal import approximate_log_marginal
from pymc_pseudomarginal.ops.importance_marginal import importance_log_marginal

__all__ = ["approximate_log_marginal", "importance_log_marginal"]
