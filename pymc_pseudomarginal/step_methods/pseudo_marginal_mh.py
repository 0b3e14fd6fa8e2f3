"""`PseudoMarginalMH`: theta with f integrated out, and f, exactly."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import pymc as pm
from pymc.stats.convergence import SamplerWarning
from pymc.step_methods.state import dataclass_state

from pymc_pseudomarginal.arguments import check_correlation
from pymc_pseudomarginal.numerics import ImportanceSet
from pymc_pseudomarginal.step_methods.base import LatentGaussianState
from pymc_pseudomarginal.step_methods.fitted_proposals import FittedProposals
from pymc_pseudomarginal.step_methods.pseudo_marginal_statistics import (
    STATISTICS,
    chosen,
    idle_statistics,
    statistics,
)
from pymc_pseudomarginal.transitions.adaptation import RandomWalkAdaptation
from pymc_pseudomarginal.transitions.effort import Effort
from pymc_pseudomarginal.transitions.elliptical_slice import Bracket
from pymc_pseudomarginal.transitions.fitted_density import FittedDensity
from pymc_pseudomarginal.transitions.fitted_sites import FittedSites
from pymc_pseudomarginal.transitions.pseudo_marginal import State, pseudo_marginal_mh
from pymc_pseudomarginal.transitions.tuning_record import TuningRecord
from pymc_pseudomarginal.transitions.warm_start import WarmStart


@dataclass_state
class PseudoMarginalMHState(LatentGaussianState):
    """All that the next draw depends on besides the point itself."""

    tune: bool
    adaptation: RandomWalkAdaptation | None
    warm_start: WarmStart | None
    last_theta: np.ndarray | None
    retained: ImportanceSet | None
    effort: Effort
    record: TuningRecord | None
    bracket: Bracket
    run: int
    sites: FittedSites | None
    fitted: FittedDensity | None
    approximation: str = field(metadata={"frozen": True})
    n_importance: int | str = field(metadata={"frozen": True})
    annealing: int | str = field(metadata={"frozen": True})
    annealing_moves: int = field(metadata={"frozen": True})
    normals: str = field(metadata={"frozen": True})
    correlation: float = field(metadata={"frozen": True})
    refresh: bool = field(metadata={"frozen": True})
    delayed_acceptance: bool = field(metadata={"frozen": True})
    proposal: str = field(metadata={"frozen": True})
    latent_moves: int = field(metadata={"frozen": True})
    target_accept: float = field(metadata={"frozen": True})


class PseudoMarginalMH(FittedProposals):
    """Pseudo-marginal Metropolis-Hastings for latent Gaussian models, exact for theta and f.

    The hyper-parameters theta are moved with the latent f integrated out by importance
    sampling from a Gaussian approximation of p(f|y, theta); then f is drawn from the
    importance samples of the kept theta and moved by elliptical slice sampling. The
    estimate is noisy but unbiased, so that the draws have exactly the posterior of
    (theta, f), whatever the quality of the approximation; that decides the speed only.

    Parameters
    ----------
    vars : list of variables or names, optional
        The hyper-parameters to move; None takes all free variables but the latent,
        which is always moved along. Those left out belong to other steps, which
        `pm.sample` adds (NUTS) where none is given.
    approximation : {"auto", "fitted", "ep", "laplace"}
        The Gaussian approximation. EP costs up to twice as much per draw as Laplace and has
        weights of smaller spread. "fitted" is EP while the chain is tuned; then the sites of EP
        are interpolated between thetas at which it was run (with more than five
        hyper-parameters predicted by a linear regression), and EP itself runs only beyond
        these. "auto" takes it where it is the best for its price.
    n_importance : int or "auto"
        Number of importance samples N. Any N is exact; a larger one makes the estimate less
        noisy. "auto" takes the N with the best predicted ratio of acceptance and cost.
    annealing : int or "auto"
        Temperatures between q and the posterior for annealed importance sampling, where the
        weights of q alone are too far apart; 0 is plain importance sampling. "auto" anneals
        where nothing else is good enough.
    annealing_moves : int
        Elliptical-slice moves at each temperature.
    normals : {"auto", "antithetic", "independent", "qmc"}
        How the standard normals behind a set are drawn: in pairs z and -z, independently, or
        from a randomly shifted Sobol sequence. All are unbiased. "auto" draws pairs unless N
        is odd or annealing asks for independent draws.
    correlation : float
        Of the standard normals at the current and the proposed theta, below 1. Near 1 it lets
        chains move where no approximation is good: the errors of both estimates then nearly
        cancel. It takes independent draws without annealing.
    refresh : bool
        Whether to draw the companions of the current f anew for every proposal.
        False gives Algorithm 1 of Filippone & Girolami (2014), which retains the
        estimate until the next acceptance and may stick at an overestimate.
    delayed_acceptance : bool
        Whether a proposal of the random walk must first pass by the deterministic approximation
        of the marginal, before the importance samples. Still exact; a proposal that does not
        pass costs neither the samples nor the factor of K, and one that passes may be
        rejected twice. With fitted sites the approximation is interpolated between values found
        at the end of tuning, so that not even K is computed; a draw is then several steps of the
        walk, and only where they lead is evaluated.
    proposal : {"auto", "random-walk", "fitted"}
        How theta is proposed after tuning: by a random walk, or by draws from a Student t
        density fitted to the tuning draws, mixed with the walk. The latter crosses the
        posterior of a few hyper-parameters in one step; "auto" takes it for up to five where it
        pays.
    latent_moves : int
        Elliptical-slice moves of f per draw.
    target_accept : float
        Acceptance to which the random walk is tuned, on the approximate marginal.
    model : pymc.Model, optional
        Taken from the context if not given.

    Notes
    -----
    During `tune` the chain moves on the deterministic approximation of the marginal,
    so that it cannot stick, and adapts the covariance and scale of its random walk. At the
    end all that is "auto" is chosen from weights and densities at thetas of the tuned chain.
    Then proposals and choices are frozen, and so is the prediction from which Newton or EP
    starts: q must depend on theta alone for the draws to be exact. As any such q is exact,
    they stop as soon as it is good enough for importance sampling.

    Sample statistics, one value per draw: ``pm_accepted``, ``pm_acceptance``
    (probability), ``pm_log_estimate`` and ``pm_log_approximation`` (of log p(y|theta)
    at the theta arrived at), ``pm_log_weight_sd`` (spread of the proposal's log
    weights; for N = 1 the distance of the only one from the approximation),
    ``pm_iterations`` (Newton iterations or EP sweeps), ``pm_cubic_operations``
    (factorisations of n×n matrices), ``pm_failed`` (1 where the proposal had no
    finite estimate and was rejected), ``pm_slice_evaluations``, and what was chosen:
    ``pm_n_importance``, ``pm_ep`` (whether EP and not Laplace), ``pm_fitted_sites`` (whether
    its sites are predicted; ``pm_log_approximation`` is then the log weight of q's mean),
    ``pm_annealing``, ``pm_fitted`` (whether proposals are fitted). A proposal that is rejected
    by the approximation alone (while tuning, or by `delayed_acceptance`) has no samples:
    ``pm_log_weight_sd`` is then 0, and ``pm_log_estimate`` is log w(f) of the current f.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian
    processes, IEEE Transactions on Pattern Analysis and Machine Intelligence 36(11);
    Filippone (2013), Bayesian inference for Gaussian process classifiers with annealing and
    exact-approximate MCMC, arXiv:1311.7320, for the annealing; Deligiannidis, Doucet & Pitt
    (2018), The correlated pseudomarginal method, Journal of the Royal Statistical Society B 80.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.PseudoMarginalMH())
    """

    name = "pseudo_marginal_mh"
    stats_dtypes_shapes = STATISTICS | {
        "pm_fitted": (bool, []),
        "warning": (SamplerWarning, None),
    }
    progress = FittedProposals.progress | {"spread": ("sd log w", "pm_log_weight_sd")}
    absent_where_zero = frozenset({"spread"})
    _state_class = PseudoMarginalMHState

    def __init__(
        self,
        vars=None,
        *,
        approximation: str = "auto",
        n_importance: int | str = "auto",
        annealing: int | str = "auto",
        annealing_moves: int = 1,
        normals: str = "auto",
        correlation: float = 0.0,
        refresh: bool = True,
        delayed_acceptance: bool = False,
        proposal: str = "auto",
        latent_moves: int = 1,
        target_accept: float = 0.25,
        model: pm.Model | None = None,
        rng=None,
        blocked: bool = True,
    ):
        self.correlation = check_correlation(correlation)
        if self.correlation:
            normals, annealing = self._for_correlation(normals, annealing, refresh)
        super().__init__(
            vars,
            model,
            rng,
            approximation=approximation,
            n_importance=n_importance,
            annealing=annealing,
            annealing_moves=annealing_moves,
            normals=normals,
            refresh=refresh,
            latent_moves=latent_moves,
            target_accept=target_accept,
            proposal=proposal,
            delayed_acceptance=delayed_acceptance,
        )

    def _for_correlation(self, normals, annealing, refresh):
        """`normals` and `annealing`, if correlated sets can be drawn."""
        found = {"normals": normals, "annealing": annealing, "refresh": refresh}
        if normals in ("auto", "independent") and annealing in ("auto", 0) and refresh:
            return "independent", 0
        raise ValueError(
            "Correlated sets need independent normals, no annealing and refreshing; found "
            f"correlation={self.correlation} with {found}. Leave these at their defaults."
        )

    def _refuse_to_share(self, left):
        if not self.refresh:
            raise ValueError(
                f"refresh=False retains an estimate that another step would make stale by moving "
                f"{', '.join(left)}. Include it in vars, or use refresh=True."
            )

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        self.last_theta: np.ndarray | None = None
        self.retained: ImportanceSet | None = None
        super().start_chain()

    def stop_tuning(self):
        """Freeze the proposal and where Newton or EP starts, and choose what is "auto"."""
        # Retained under another q, a set has weights of another density.
        self.retained = None
        super().stop_tuning()

    def _step(self, point):
        model = self.latent_model
        theta = model.theta(point)
        conditional = self._conditional_at(theta)
        self._start_adaptation(theta)
        if self.retained is not None and not np.array_equal(theta, self.last_theta):
            self.retained = None  # a set of another theta, from before the chain was moved
        state = State(conditional, model.f(point, conditional.prior), self.retained)
        state, info = self._transition(state, self._propose)
        conditional = state.conditional
        f, moves = self._move_latent(state)
        self._keep(conditional)
        self.retained, self.last_theta = state.retained, conditional.theta
        self._adapt(conditional.theta, info.acceptance)
        updates = self._updates(conditional.theta, f, conditional.prior)
        told = self._chosen() | {"warning": self._tell(info.accepted)}
        return updates, statistics(conditional, info, moves) | told

    def _transition(self, state, propose):
        return pseudo_marginal_mh(
            self.rng,
            state,
            self._evaluate,
            propose,
            self.effort.n_importance,
            refresh=self.refresh,
            approximate=self.tune,
            delayed=self._delays,
            correlation=self.correlation,
        )

    def _chosen(self):
        return chosen(self.effort) | {
            "pm_fitted": self.fitted is not None and self.proposal != "random-walk"
        }

    def _idle_statistics(self):
        return idle_statistics() | self._chosen() | {"warning": None}

    def __repr__(self):
        """The variables and the settings."""
        return self._describe(
            approximation=self.approximation,
            n_importance=self.n_importance,
            annealing=self.annealing,
            normals=self.normals,
            correlation=self.correlation,
            proposal=self.proposal,
            refresh=self.refresh,
            delayed_acceptance=self.delayed_acceptance,
            latent_moves=self.latent_moves,
            target_accept=self.target_accept,
        )
