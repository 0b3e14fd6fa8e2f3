"""What the step methods share that estimate p(y|theta) by importance sampling."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pymc as pm

from pymc_pseudomarginal.arguments import check_at_least, check_auto_or_at_least, check_choice
from pymc_pseudomarginal.model import UnsupportedModelError
from pymc_pseudomarginal.numerics import (
    APPROXIMATIONS,
    FOR_IMPORTANCE,
    NumericalFailure,
)
from pymc_pseudomarginal.step_methods.compat import is_first_chain, message
from pymc_pseudomarginal.step_methods.exploring_step import FEW, ExploringStep
from pymc_pseudomarginal.transitions.effort import (
    FITTED,
    SIZES,
    Effort,
    Prospect,
    choose_effort,
)
from pymc_pseudomarginal.transitions.elliptical_slice import Bracket, SliceInfo, elliptical_slice
from pymc_pseudomarginal.transitions.point_sets import POINT_SETS, best_normals, weighted_sampler
from pymc_pseudomarginal.transitions.pseudo_marginal import Conditional, State
from pymc_pseudomarginal.transitions.tuning_record import TuningRecord

# While the chain is tuned, and where there was no tuning.
_PROVISIONAL = Effort("laplace", 16, 0)
# Thetas at which weights are looked at, weights at each, and so many with annealing.
_THETAS = 8
_WEIGHTS = 256
_PATHS = 32
# Tuning draws after which another approximation may take the place of Laplace's.
_EARLY = 200
# Draws without acceptance that are worth a warning, of a chain whose proposals are tuned.
_LONG_RUN = 200


class ImportanceStep(ExploringStep):
    """Base of the pseudo-marginal step methods; chooses at the end of tuning what is "auto".

    Attributes
    ----------
    effort : Effort
        What estimates are made with now.
    record : TuningRecord or None
        None before the first draw.
    run : int
        Draws since the last acceptance.
    bracket : Bracket
        Of the slices that move f.
    """

    _settings = FOR_IMPORTANCE
    _sizes: ClassVar[tuple[int, ...]] = SIZES
    """Numbers of samples from which "auto" takes one."""

    def __init__(
        self,
        vars,
        model: pm.Model | None,
        rng,
        *,
        approximation: str,
        n_importance: int | str,
        annealing: int | str,
        annealing_moves: int,
        normals: str,
        refresh: bool,
        latent_moves: int,
        target_accept: float,
    ):
        self.n_importance = check_auto_or_at_least("n_importance", n_importance, 1)
        self.annealing = check_auto_or_at_least("annealing", annealing, 0)
        self.annealing_moves = check_at_least("annealing_moves", annealing_moves, 1)
        self.normals = check_choice("normals", normals, ("auto", *POINT_SETS))
        self.refresh = bool(refresh)
        self._refuse_combinations()
        super().__init__(
            vars,
            model,
            rng,
            approximation=check_choice(
                "approximation", approximation, ("auto", *APPROXIMATIONS, FITTED)
            ),
            latent_moves=latent_moves,
            target_accept=target_accept,
        )

    def _refuse_combinations(self) -> None:
        """Raise where a way of drawing the set does not go with the other settings."""
        if self.normals in ("antithetic", "qmc") and self.annealing not in ("auto", 0):
            raise ValueError(
                f"Annealed paths start from independent draws; found normals={self.normals!r} "
                f'with annealing={self.annealing}. Use normals="auto", or annealing=0.'
            )
        odd = self.n_importance != "auto" and self.n_importance > 1 and self.n_importance % 2
        if self.normals == "antithetic" and odd:
            raise ValueError(
                "Antithetic draws come in pairs, so that n_importance must be even or 1; found "
                f"{self.n_importance}."
            )

    def start_chain(self):
        """Forget the previous chain and tune anew."""
        self.effort = self._provisional()
        self.record: TuningRecord | None = None
        self.bracket = Bracket()
        self.run = 0
        self._said: list = []
        super().start_chain()

    def _provisional(self) -> Effort:
        given = (self.approximation, self.n_importance, self.annealing)
        defaults = (_PROVISIONAL.approximation, _PROVISIONAL.n_importance, _PROVISIONAL.annealing)
        return Effort(*(d if g == "auto" else g for g, d in zip(given, defaults, strict=True)))

    @property
    def _approximation_used(self):
        return self.effort.approximation

    @property
    def _sampler(self):
        automatic = self.normals == "auto"
        normals = best_normals(self.effort.n_importance) if automatic else self.normals
        return weighted_sampler(self.effort.annealing, self.annealing_moves, normals)

    def _keep(self, conditional: Conditional) -> None:
        super()._keep(conditional)
        if self.tune:
            record = self.record or TuningRecord.empty(len(conditional.theta))
            self.record = record.updated(conditional.theta)
            if self.record.seen == _EARLY and self.approximation == "auto":
                self._look_early()

    def _look_early(self) -> None:
        """Change the approximation while the chain can still be tuned to the new one."""
        with np.errstate(all="ignore"):
            prospect = self._best_prospect(self.record.settled())
            if prospect is not None and prospect.effort.approximation != self._approximation_used:
                self._change_approximation(prospect.effort.approximation, self.record)

    def _move_latent(self, state: State) -> tuple[np.ndarray, SliceInfo]:
        """Of a state, by elliptical slices."""
        there = state.conditional
        f, info = elliptical_slice(
            self.rng,
            state.f,
            there.prior,
            there.likelihood,
            moves=self.latent_moves,
            width=self.bracket.width,
        )
        if self.tune:
            self.bracket = self.bracket.updated(info.angle)
        return f, info

    def stop_tuning(self):
        """Freeze the proposal and where Newton or EP starts, and choose what is "auto"."""
        if self.tune:
            self.bracket = self.bracket.learnt()
        tuned = self.tune and self.record is not None
        super().stop_tuning()
        if tuned:
            with self._one_blas_thread(), np.errstate(all="ignore"):
                self._settle(self.record.settled())
            self.record = None

    def _settle(self, record: TuningRecord) -> None:
        """Make the choices that are left to the end of tuning, and say what they are."""
        prospect = None
        if FITTED in self._candidates() and record.thetas.shape[1] <= FEW:
            self._fit_sites(record)
        if "auto" in (self.approximation, self.n_importance, self.annealing):
            prospect = self._best_prospect(record)
        if prospect is not None:
            self._take(prospect, record)
        proposal = self._settle_proposal(record)
        self._end_exploration()
        if prospect is not None:
            self._say(prospect, proposal)

    def _settle_proposal(self, record: TuningRecord) -> str:
        """Choose how theta is proposed; in words."""
        raise NotImplementedError

    def _best_prospect(self, record: TuningRecord) -> Prospect | None:
        """None where no weights could be computed."""
        return choose_effort(
            self.rng,
            partial(self._log_weights, record.spread_out(_THETAS)),
            self.latent_model.size,
            approximations=self._candidates(),
            sizes=self._sizes if self.n_importance == "auto" else (self.n_importance,),
            temperatures=self._temperatures(),
            retained=not self.refresh,
            evaluations=self._approximations_per_draw(),
        )

    def _candidates(self) -> list[str]:
        """The approximations to choose from, the cheapest first."""
        if self.approximation != "auto":
            return [self._approximation_used]
        return [FITTED, "laplace" if self._approximation_used == "laplace" else "ep"]

    def _approximations_per_draw(self) -> float:
        return 1.0

    def _temperatures(self):
        """Those to choose from; None for what `choose_effort` tries by itself."""
        if self.annealing != "auto":
            return (self.annealing,)
        return None if self.normals in ("auto", "independent") else (0,)

    def _log_weights(self, thetas, name, temperatures) -> np.ndarray | None:
        """At several thetas, shape (thetas, M, m): m = 2 for pairs, else 1."""
        odd = self.n_importance != "auto" and self.n_importance % 2
        alone = temperatures or odd or self.normals == "independent"
        normals = "independent" if alone else "antithetic"
        sampler = weighted_sampler(temperatures, self.annealing_moves, normals)
        count = _PATHS if temperatures else _WEIGHTS
        found = []
        for theta in thetas:
            try:
                there = self._conditional(theta, name, self._start(name))
                fresh = sampler(self.rng, there.approximation, there.likelihood, count)
                # The second half of an antithetic set are the images of the first.
                found.append(fresh.log_weights.reshape(1 if alone else 2, -1).T)
            except NumericalFailure:
                continue
            except UnsupportedModelError:
                if self.approximation == "auto":  # and EP cannot take this likelihood apart
                    return None
                raise
        return np.array(found) if found else None

    def _take(self, prospect: Prospect, record: TuningRecord) -> None:
        if prospect.effort.approximation != self._approximation_used:
            self._change_approximation(prospect.effort.approximation, record)
        self.effort = prospect.effort
        self._forget()

    def _change_approximation(self, name: str, record: TuningRecord) -> None:
        self.warm_start = self._learn_to_start(name, record)
        self.effort = replace(self.effort, approximation=name)
        self._forget()

    def _say(self, prospect: Prospect, proposal: str) -> None:
        effort = prospect.effort
        annealed = f" annealed over {effort.annealing} temperatures" if effort.annealing else ""
        chosen = (
            f"{type(self).__name__}: {effort.name}, {effort.n_importance} importance "
            f"samples{annealed} (sd of the log estimate {prospect.log_estimate_sd:.2f}, "
            f"Pareto k {prospect.pareto_k:.2f}), {proposal}"
        )
        if not prospect.reliable:
            self._said.append(
                message(
                    f"{chosen}. The weights are too far apart for reliable estimates: expect long "
                    "runs without acceptance. Look at pymc_pseudomarginal.certify(idata).",
                    "warn",
                )
            )
        elif is_first_chain():
            self._said.append(message(f"{chosen}.", "info"))

    def _tell(self, accepted: bool) -> object | None:
        """What PyMC should log with this draw."""
        self.run = 0 if accepted or self.tune else self.run + 1
        if self.run == _LONG_RUN:
            self._said.append(
                message(
                    f"{type(self).__name__}: {_LONG_RUN} draws without acceptance. An estimate "
                    "far above the truth may hold the chain; more importance samples or a better "
                    "approximation help. Look at pymc_pseudomarginal.certify(idata).",
                    "warn",
                )
            )
        return self._said.pop(0) if self._said else None
