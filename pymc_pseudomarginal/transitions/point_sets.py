"""Importance sets of dependent draws, whose mean weight varies less at the same cost.

Let (f_1..f_N) have any joint law Q in which each f_i has the density q. The mean weight is
unbiased for p(y), since each weight is, and the extended target

    pi(theta, f_1..f_N, k) ∝ p(theta) w(f_k) Q_theta(f_1..f_N)

has what a pseudo-marginal transition needs (``docs/theory.md`` has the case of independent
draws): given the set, k is proportional to the weights; summed over k, the set has the
density p(theta) p~(y|theta) Q_theta; and (theta, f_k) has the posterior. Given (theta, f)
with f = f_k,

- k is uniform on 1..N, as w(f_k) Q = w(f) q(f) Q(the others | f_k = f) and q is the same
  for all k;
- the others have the law Q(· | f_k = f): they depend on f. Companions drawn without regard
  to f belong to another target than fresh sets do, and the draws are not exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_pseudomarginal.numerics import Approximation, ImportanceSet, importance_set
from pymc_pseudomarginal.numerics.conditional_normals import normals_given
from pymc_pseudomarginal.numerics.importance import draw, log_weights
from pymc_pseudomarginal.numerics.likelihoods import Likelihood
from pymc_pseudomarginal.numerics.shifted_points import (
    shift_between,
    shifted_normals,
    sobol_points,
)
from pymc_pseudomarginal.transitions.annealing import (
    Annealing,
    PlainImportance,
    WeightedSampler,
)


@dataclass(frozen=True)
class Antithetic:
    """Draws from q in pairs, f and its mirror image 2 mu - f.

    Whatever is odd in f - mu cancels within a pair, and an image costs no linear algebra.
    The companions of a given f are its image and fresh pairs.

    References
    ----------
    Hammersley & Morton (1956), A new Monte Carlo technique: antithetic variates,
    Mathematical Proceedings of the Cambridge Philosophical Society 52.
    """

    def __call__(
        self,
        rng: np.random.Generator,
        approximation: Approximation,
        likelihood: Likelihood,
        n_draws: int,
        include: np.ndarray | None = None,
    ) -> ImportanceSet:
        """A set of N members in pairs; N is `n_draws`, or one more with `include`.

        Parameters
        ----------
        rng : numpy.random.Generator
        approximation : Approximation
            q, symmetric about its mean mu.
        likelihood : Likelihood
        n_draws : int
        include : array, shape (n,), optional
            A latent vector that comes first.

        Returns
        -------
        ImportanceSet
            Samples of shape (N, n), of which the second half are the images of the first
            half in the same order; a single one is alone.

        Raises
        ------
        ValueError
            If N is odd and not one.
        """
        size = _size(n_draws, include)
        if size > 1 and size % 2:
            raise ValueError(
                "An antithetic set has an even number of members, or a single one; "
                f"found {size}. Take {size - 1} or {size + 1}."
            )
        n_fresh = (size + 1) // 2 - (include is not None)
        # LAPACK refuses to solve for no right-hand side.
        members = [] if include is None else [include[None]]
        if n_fresh:
            u = rng.standard_normal((2, n_fresh, approximation.prior.size))
            members.append(draw(approximation, u))
        if size > 1:
            members += [2.0 * approximation.mean - half for half in members]
        samples = np.concatenate(members)
        return ImportanceSet(samples, log_weights(approximation, likelihood, samples))


@dataclass(frozen=True)
class QuasiMonteCarlo:
    """Draws from q made of a Sobol sequence with one random shift for the whole set.

    Balanced where N is a power of two; any N is exact. Given f, the standard normals that
    led to it are drawn, they are those of a point chosen at random, and so give the shift.

    An even N consists of antithetic pairs (see `numerics.shifted_points`), and besides the
    2 n standard normals are stratified each for itself. On probit models with 1 to 200
    latents and N up to 64 the pairs were all of the gain that could be measured.

    References
    ----------
    Cranley & Patterson (1976), Randomization of number theoretic methods for multiple
    integration, SIAM Journal on Numerical Analysis 13; Owen (2013), Monte Carlo theory,
    methods and examples, chapter 17.
    """

    def __call__(
        self,
        rng: np.random.Generator,
        approximation: Approximation,
        likelihood: Likelihood,
        n_draws: int,
        include: np.ndarray | None = None,
    ) -> ImportanceSet:
        """A set of N members; N is `n_draws`, or one more with `include`.

        Parameters
        ----------
        rng : numpy.random.Generator
        approximation : Approximation
            q, of at most 10600 latent values.
        likelihood : Likelihood
        n_draws : int
        include : array, shape (n,), optional
            A latent vector that comes first.

        Returns
        -------
        ImportanceSet
            Samples of shape (N, n).

        Raises
        ------
        ValueError
            If n is beyond what the Sobol sequence has dimensions for.
        """
        n = approximation.prior.size
        points = sobol_points(_size(n_draws, include), n)
        if include is None:
            u = shifted_normals(points, rng.random((2, n)))
        elif n_draws == 0:
            u = points[:, :0]
        else:
            k = int(rng.integers(points.shape[1]))
            behind = normals_given(approximation, include, rng.standard_normal((2, n)))
            shift = shift_between(points[:, k], behind, rng.random((2, n)) < 0.5)
            u = shifted_normals(np.delete(points, k, axis=1), shift)
        return importance_set(approximation, likelihood, u, include=include)


POINT_SETS: dict[str, WeightedSampler] = {
    "independent": PlainImportance(),
    "antithetic": Antithetic(),
    "qmc": QuasiMonteCarlo(),
}
"""How the draws of a set come together, by the names that users give."""


def best_normals(n_importance: int) -> str:
    """Pairs where they come out even: the same cost, and less spread."""
    return "independent" if n_importance % 2 else "antithetic"


def weighted_sampler(
    temperatures: int, moves: int = 1, normals: str = "independent"
) -> WeightedSampler:
    """Annealing with so many temperatures, or importance sampling with such draws for none."""
    return Annealing(temperatures, moves) if temperatures else POINT_SETS[normals]


def _size(n_draws, include):
    """N, the members of the set."""
    return n_draws + (include is not None)
