"""How much to spend on an estimate of p(y|theta): which approximation, how many samples.

An estimate with less noise is accepted more often and costs more. What noise does is simulated
with importance weights at a few thetas of the tuned chain, and the effort is taken for which
inefficiency times cost is smallest. Costs follow from the size of the problem alone and are
not timed: a choice that depends on a clock would make a seed give other draws in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import genpareto

SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers of importance samples among which to choose. Not one: its f would be the only one."""
FITTED = "fitted"
"""The approximation whose sites are those of EP as a function of theta, fitted while tuning."""
TEMPERATURES = (4, 16, 64)
"""Of annealing, in the order in which they are tried."""

# Cost in Cholesky factorisations of an n×n matrix, as level + overhead / n² and, for a sample,
# as slope / n: fitted to times for n = 50 to 2000. Small problems cost Python's time.
_SETUP = {"laplace": (2.8, 1.75e5), "ep": (5.4, 2.6e5), FITTED: (2.7, 1.73e5)}
_SAMPLE = 42.0
_ANNEALED_MOVE = 900.0
# Above this shape of its tail the weights' variance can hardly be estimated, nor the mean
# (Vehtari et al. 2024, Pareto smoothed importance sampling).
_HEAVY = 0.7
# Noise of the log estimate below which no tail matters: with the data of the benchmarks, estimates
# of k went up to 1.0 where it was less than that, and no run without acceptance exceeded 52 draws.
_NO_NOISE = 0.25
# Inefficiency up to which a better approximation can hardly gain its own price.
_QUIET = 1.2
# Inefficiency of noise with an sd of 1 in a log estimate that is retained (Pitt et al. 2012).
_NOISY = 5.0
# What cannot be relied on must promise so many times more.
_MISTRUST = 4.0
# A chain that is tuned to Laplace's marginal has its proposals a little beside the posterior: at
# n = 200 it had a fifth fewer effective draws per second than with EP, for like values.
_BIAS = 1.2
# States and proposals for each by which the inefficiency is simulated, and the longest stay.
_STATES = 64
_TRIALS = 24
_LONGEST = 1000


@dataclass(frozen=True)
class Effort:
    """What an estimate is made with.

    Attributes
    ----------
    approximation : {"laplace", "ep", "fitted"}
    n_importance : int
        N.
    annealing : int
        Temperatures; none for plain importance sampling.
    """

    approximation: str
    n_importance: int
    annealing: int = 0

    @property
    def name(self) -> str:
        """Of the approximation, in words."""
        return "fitted sites of ep" if self.approximation == FITTED else self.approximation


def while_tuned(approximation: str) -> str:
    """The approximation that serves where sites are not fitted yet: the one that finds them."""
    return "ep" if approximation == FITTED else approximation


@dataclass(frozen=True)
class Prospect:
    """What to expect of an effort.

    Attributes
    ----------
    effort : Effort
    log_estimate_sd : float
        Noise of the log estimate, on average over the thetas.
    inefficiency : float
        How many times as many draws are needed as without noise, by independent proposals.
    pareto_k : float
        Shape of the tail of the weights.
    value : float
        Inverse of inefficiency times cost.
    """

    effort: Effort
    log_estimate_sd: float
    inefficiency: float
    pareto_k: float
    value: float

    @property
    def heavy(self) -> bool:
        """Whether the weights have a heavy tail, and vary so much that it matters."""
        return self.pareto_k > _HEAVY and self.log_estimate_sd > _NO_NOISE

    @property
    def reliable(self) -> bool:
        """Whether the estimates are neither heavy-tailed nor very noisy."""
        return not self.heavy and self.inefficiency <= _NOISY

    @property
    def quiet(self) -> bool:
        """Whether no better approximation is worth looking for."""
        return not self.heavy and self.inefficiency <= _QUIET


def choose_effort(
    rng: np.random.Generator,
    weights: Callable[[str, int], np.ndarray | None],
    n: int,
    *,
    approximations: Sequence[str],
    sizes: Sequence[int] = SIZES,
    temperatures: Sequence[int] | None = None,
    retained: bool = False,
    evaluations: float = 1.0,
) -> Prospect | None:
    """The effort with the smallest product of inefficiency and cost.

    The approximations are tried in the order given until one is good enough, then the
    temperatures with the best of them.

    Parameters
    ----------
    rng : numpy.random.Generator
    weights : callable
        (approximation, temperatures) -> log weights at a few thetas, shape (thetas, M, m):
        M independent groups of m samples that are drawn together (m = 2 for antithetic pairs).
        None where there are none.
    n : int
        Number of latent values.
    approximations : sequence of {"laplace", "ep", "fitted"}
    sizes : sequence of int
        N to choose from.
    temperatures : sequence of int, optional
        Of annealing, 0 for none. By default none, and `TEMPERATURES` where that is not reliable.
    retained : bool
        Whether an estimate is retained until the next acceptance, so that noise costs more.
    evaluations : float
        Approximations that a draw is made of, one of which is followed by samples.

    Returns
    -------
    Prospect or None
        None where there are no weights at all.

    References
    ----------
    Pitt, Silva, Giordani & Kohn (2012), On some properties of Markov chain Monte Carlo
    simulation methods based on the particle filter, Journal of Econometrics 171.
    """

    def better(best, name, temperature):
        log_weights = weights(name, temperature)
        if log_weights is None:
            return best
        level, overhead = _SETUP[name]
        setup = evaluations * (level + overhead / n**2)
        each = (_SAMPLE + _ANNEALED_MOVE * temperature) / n
        costs = {size: setup + size * each for size in sizes}
        found = _best_size(rng, log_weights, name, temperature, costs, retained)
        return found if best is None else max(best, found, key=_merit)

    first, *others = temperatures or (0, *TEMPERATURES)
    best = None
    for name in approximations:
        best = better(best, name, first)
        if best is not None and best.quiet:
            return best
    for temperature in others:
        if best is None or best.reliable:
            break
        best = better(best, best.effort.approximation, temperature)
    return best


def _merit(prospect):
    """Its value, less where it looks better than it is."""
    value = prospect.value if prospect.reliable else prospect.value / _MISTRUST
    return value / _BIAS if prospect.effort.approximation == "laplace" else value


def _best_size(rng, log_weights, approximation, temperatures, costs, retained):
    """The best N of those that have a cost."""
    relative = _relative_means(log_weights)
    tail = pareto_shape(relative.ravel())
    group = log_weights.shape[2]
    best = None
    for size, cost in costs.items():
        groups = max(1, size // group)
        found = [_simulated(rng, means, groups, retained) for means in relative]
        noise, inefficiency = np.mean(found, axis=0)
        value = 1.0 / (inefficiency * cost)
        if best is None or value > best.value:
            effort = Effort(approximation, int(size), int(temperatures))
            best = Prospect(effort, float(noise), float(inefficiency), tail, float(value))
    return best


def _relative_means(log_weights):
    """Mean weights of the groups relative to those at their theta, shape (thetas, M)."""
    log_means = np.logaddexp.reduce(log_weights, axis=2) - np.log(log_weights.shape[2])
    total = np.logaddexp.reduce(log_means, axis=1, keepdims=True)
    return np.exp(log_means - total + np.log(log_means.shape[1]))


def _simulated(rng, weights, groups, retained):
    """Sd of the log estimate and inefficiency of means of so many of the weights, shape (M,).

    The posterior puts the chain where its estimate is too large, in proportion: one member of
    the current set is drawn by its weight. It stays until a proposal is accepted, and the
    others too if the set is retained. A state that is left with probability a counts (2 - a)/a.
    """
    shape = (_STATES, 1 if retained else _TRIALS, groups - 1)
    own = rng.choice(weights, (_STATES, 1), p=weights / weights.sum())
    kept = (own + rng.choice(weights, shape).sum(axis=2)) / groups
    new = rng.choice(weights, (_STATES, _TRIALS, groups)).mean(axis=2)
    accepted = np.minimum(1.0, new / kept).mean(axis=1)
    return np.log(new).std(), np.mean((2.0 - accepted) / np.maximum(accepted, 1.0 / _LONGEST))


def pareto_shape(values: np.ndarray) -> float:
    """Shape k of the generalised Pareto distribution of the largest values, shape (m,).

    The mean of the values has a finite variance only for k < 1/2. Values that hardly differ
    have no tail: minus infinity.
    """
    ordered = np.sort(values)
    count = int(min(0.2 * len(values), 3.0 * np.sqrt(len(values))))
    exceedances = ordered[-count:] - ordered[-count - 1]
    # By rounding alone, or too few to fit.
    if count < 5 or not exceedances[-1] > 1e-10 * ordered[-1]:
        return -np.inf
    shape, _, _ = genpareto.fit(exceedances[exceedances > 0.0], 0.1, floc=0.0)
    return float(shape)
