"""`ApproximateMarginalMH`: theta by the Laplace or EP marginal likelihood. Not exact."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import pymc as pm
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.arguments import check_approximation
from pymc_pseudomarginal.step_methods.base import LatentGaussianState
from pymc_pseudomarginal.step_methods.marginal_step import MarginalStep
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation
from pymc_pseudomarginal.transitions.approximate_marginal import approximate_marginal_mh
from pymc_pseudomarginal.transitions.warm_start import WarmStart


@dataclass_state
class ApproximateMarginalState(LatentGaussianState):
    """All that the next draw depends on besides the point itself."""

    tune: bool
    adaptation: RandomWalkAdaptation | None
    warm_start: WarmStart | None
    approximation: str = field(metadata={"frozen": True})
    target_accept: float = field(metadata={"frozen": True})


class ApproximateMarginalMH(MarginalStep):
    """Metropolis-Hastings on an approximate marginal likelihood. NOT exact: for comparison.

    Theta follows p(theta) Z_q(theta), with Z_q the Laplace or EP approximation of p(y|theta),
    and f is drawn from the Gaussian approximation q: the MCMC LA and MCMC EP of Filippone &
    Girolami (2014). How far that is from the posterior cannot be told from its draws;
    `PseudoMarginalMH` has no such error.

    Parameters
    ----------
    vars : list of variables or names, optional
        The hyper-parameters to move; None takes all free variables but the latent.
    approximation : {"ep", "laplace"}
    target_accept : float
        Acceptance to which the random walk is tuned.
    model : pymc.Model, optional
        Taken from the context if not given.

    Notes
    -----
    Sample statistics, one value per draw: ``pm_accepted``, ``pm_acceptance``,
    ``pm_log_approximation`` (log Z_q at the theta arrived at), ``pm_iterations`` (Newton
    iterations or EP sweeps there), ``pm_cubic_operations``, ``pm_failed``.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian processes,
    section 5.2.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.ApproximateMarginalMH(approximation="ep"))
    """

    name = "approximate_marginal_mh"
    stats_dtypes_shapes = {
        "pm_accepted": (bool, []),
        "pm_acceptance": (np.float64, []),
        "pm_log_approximation": (np.float64, []),
        "pm_iterations": (np.int64, []),
        "pm_cubic_operations": (np.int64, []),
        "pm_failed": (np.int64, []),
    }
    _state_class = ApproximateMarginalState

    def __init__(
        self,
        vars=None,
        *,
        approximation: str = "ep",
        target_accept: float = 0.25,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        super().__init__(
            vars,
            model,
            rng,
            approximation=check_approximation(approximation),
            latent_moves=0,
            target_accept=target_accept,
        )

    def _step(self, point):
        theta = self.latent_model.theta(point)
        current = self._conditional_at(theta)
        self._start_adaptation(theta)
        conditional, f, info = approximate_marginal_mh(
            self.rng, current, self._evaluate, self._propose
        )
        self._keep(conditional)
        self._adapt(conditional.theta, info.acceptance)
        return self._updates(conditional.theta, f, conditional.prior), {
            "pm_accepted": info.accepted,
            "pm_acceptance": info.acceptance,
            "pm_log_approximation": conditional.approximation.log_marginal,
            "pm_iterations": conditional.approximation.iterations,
            "pm_cubic_operations": info.cubic_operations,
            "pm_failed": int(info.failure is not None),
        }

    def _idle_statistics(self):
        return {
            "pm_accepted": False,
            "pm_acceptance": 0.0,
            "pm_log_approximation": -np.inf,
            "pm_iterations": 0,
            "pm_cubic_operations": 0,
            "pm_failed": 1,
        }

    def __repr__(self):
        """The variables, the settings, and that it is not exact."""
        described = self._describe(
            approximation=self.approximation, target_accept=self.target_accept
        )
        return f"{described}  # not exact: targets p(theta) Z_{self.approximation}(theta)"
