"""Annealed importance sampling: an unbiased estimate of p(y|theta) where q is poor.

With w(f) = p(y|f) p(f) / q(f), the distributions pi_t ∝ q w^beta_t, beta_t = t/T, lead
from q (t = 0) to the posterior (t = T). A path starts with f_0 ~ q and visits each of
them by a move K_t that is reversible with respect to pi_t, f_t ~ K_t(f_{t-1}, ·). Its
weight is the product of the ratios q w^beta_t / q w^beta_{t-1} at f_{t-1}, that is

    log W = (1/T) sum_{t=1..T} log w(f_{t-1}),

and E[W] = p(y). Since each K_t is reversible,

    q(f_0) prod_t K_t(f_{t-1}, f_t) W = p(y, f_T) prod_t K_t(f_t, f_{t-1}) :

weighted by W, the end of a path has the posterior, and given its end the path is the
same moves run backwards. The second is what a pseudo-marginal transition needs of the
current f, which joins a set of paths as the end of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pymc_pseudomarginal.numerics import Approximation, ImportanceSet, importance_set
from pymc_pseudomarginal.numerics.importance import draw, log_weights
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice


class WeightedSampler(Protocol):
    """How latent vectors and weights, unbiased for p(y), come of an approximation."""

    def __call__(
        self,
        rng: np.random.Generator,
        approximation: Approximation,
        likelihood: Likelihood,
        n_draws: int,
        include: np.ndarray | None = None,
    ) -> ImportanceSet:
        """A set of `n_draws` fresh members, with `include` before them if it is given.

        The weights of fresh members have the mean p(y). If `include`, of shape (n,),
        is a draw from the posterior, so is the member that the set then picks.
        """


@dataclass(frozen=True)
class PlainImportance:
    """Importance sampling: draws from q with the weights w(f)."""

    def __call__(
        self,
        rng: np.random.Generator,
        approximation: Approximation,
        likelihood: Likelihood,
        n_draws: int,
        include: np.ndarray | None = None,
    ) -> ImportanceSet:
        """The draws, shape (n_draws, n), with `include` before them if it is given."""
        u = rng.standard_normal((2, n_draws, approximation.prior.size))
        return importance_set(approximation, likelihood, u, include=include)


@dataclass(frozen=True)
class Annealing:
    """Annealed importance sampling from q to the posterior by elliptical-slice moves.

    The standard deviation of log W falls roughly as T^-1/2, so that where the weights of
    q are far apart T moves do more than T draws. A path costs T moves, each of which
    evaluates w a few times and needs no factorisation.

    Attributes
    ----------
    temperatures : int
        T, at least 1. T = 1 has the weights of importance sampling, with one last move
        of each sample by a kernel that leaves the posterior invariant.
    moves : int
        Elliptical-slice moves at each temperature, at least 1. Several of one kernel in
        sequence are reversible as one is.

    References
    ----------
    Neal (2001), Annealed importance sampling, Statistics and Computing 11; Filippone
    (2013), Bayesian inference for Gaussian process classifiers with annealing and
    exact-approximate MCMC, arXiv:1311.7320.
    """

    temperatures: int
    moves: int = 1

    def __post_init__(self):
        if self.temperatures < 1 or self.moves < 1:
            raise ValueError(
                "Annealing takes at least one temperature and one move at each; "
                f"found temperatures={self.temperatures}, moves={self.moves}."
            )

    def __call__(
        self,
        rng: np.random.Generator,
        approximation: Approximation,
        likelihood: Likelihood,
        n_draws: int,
        include: np.ndarray | None = None,
    ) -> ImportanceSet:
        """The ends f_T of `n_draws` independent paths, with their log W.

        Parameters
        ----------
        rng : numpy.random.Generator
        approximation : Approximation
            q, with its prior p(f).
        likelihood : Likelihood
        n_draws : int
        include : array, shape (n,), optional
            The end of one path more, which comes first: its weight is that of a path
            drawn backwards from it.

        Returns
        -------
        ImportanceSet
            Samples of shape (N, n) and log weights of shape (N,), N being `n_draws`, or
            one more with `include`. A path that starts where w = 0 has no weight and
            ends where it starts.

        Raises
        ------
        NoFiniteApproximation
            If w is infinite or not a number somewhere on a path.
        """
        start = PlainImportance()(rng, approximation, likelihood, n_draws, include)
        samples, weights = start.samples.copy(), start.log_weights.copy()
        for i, log_w in enumerate(start.log_weights):
            # No move starts from w = 0: there W = 0, whatever the rest of the path is.
            if np.isneginf(log_w):
                continue
            if i == 0 and include is not None:
                weights[i] = self._backward(rng, approximation, likelihood, include)
            else:
                samples[i], weights[i] = self._forward(
                    rng, approximation, likelihood, samples[i], log_w
                )
        return ImportanceSet(samples, weights)

    def _forward(self, rng, approximation, likelihood, f, log_w):
        """From f = f_0 with its log w to f_T: (f_T, log W)."""
        total = 0.0
        for t in range(1, self.temperatures + 1):
            total += log_w
            f, log_w = self._move(rng, approximation, likelihood, f, t)
        return f, total / self.temperatures

    def _backward(self, rng, approximation, likelihood, f):
        """From f = f_T to f_0 by the same moves in the reverse order: log W."""
        total = 0.0
        for t in range(self.temperatures, 0, -1):
            f, log_w = self._move(rng, approximation, likelihood, f, t)
            total += log_w
        return total / self.temperatures

    def _move(self, rng, approximation, likelihood, f, t):
        """K_t from f: (where it arrives, log w there)."""
        beta = t / self.temperatures
        tempered = _TemperedWeight(approximation, likelihood, beta)
        f, info = elliptical_slice(rng, f, _Gaussian(approximation), tempered, moves=self.moves)
        # The slice has evaluated w at the point it took.
        return f, info.log_likelihood / beta


@dataclass(frozen=True)
class _Gaussian:
    """q in the place that elliptical slice sampling has for the prior."""

    approximation: Approximation

    @property
    def mean(self):
        return self.approximation.mean

    @property
    def size(self):
        """Standard normals to a draw: two for every latent value."""
        return 2 * self.approximation.prior.size

    def colour(self, z):
        """A draw of N(0, Sigma), shape (n,), from z of shape (2 n,)."""
        return draw(self.approximation, z.reshape(2, 1, -1))[0] - self.mean


@dataclass(frozen=True)
class _TemperedWeight:
    """w^beta in the place that elliptical slice sampling has for the likelihood."""

    approximation: Approximation
    likelihood: Likelihood
    beta: float

    def log_density(self, f):
        """The value of beta log w(f), for f of shape (n,)."""
        return self.beta * log_weights(self.approximation, self.likelihood, f)
