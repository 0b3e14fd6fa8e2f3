"""Why f must not be carried over to a new theta: a bias that can be measured.

A pseudo-marginal sampler updates theta with f integrated out. It is tempting to keep the
old f meanwhile, and to move it afterwards by elliptical slice sampling given the *new*
theta. Each of the two moves looks right on its own, but together they do not leave the
joint posterior of (theta, f) invariant: where theta was accepted, the old f belongs to the
old theta. The remedy costs nothing: take f from the importance samples of the accepted
theta, chosen by weight, which is what `pmpm.PseudoMarginalMH` does.

The model is so small that the truth is known from quadrature:

    s ~ Gamma(1.2, rate 0.2),    f | s ~ N(0, s),    five labels y = 1, each with p = Phi(f).

The table compares theta = log s, f and how the two hang together with the truth. The naive
interleaving gets theta right on its own (the estimate in its accept step is unbiased), is a
little off for f, and far off for f²/s, as it pairs values of f with variances they did not
come from. Under it f²/s has no finite variance, so that its mean, which depends on the
proposal, settles slowly; the last column is bounded and shows the same without that caveat.

Run it with ``python examples/interleaving_bias.py``; it takes one to two minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import arviz as az
import numpy as np
from scipy.special import log_ndtr

from pymc_pseudomarginal.numerics import DensePrior, expectation_propagation
from pymc_pseudomarginal.numerics.likelihoods import Likelihood, ProbitLikelihood
from pymc_pseudomarginal.numerics.likelihoods.base import TiltedMoments
from pymc_pseudomarginal.transitions.elliptical_slice import elliptical_slice
from pymc_pseudomarginal.transitions.proposals import RandomWalk
from pymc_pseudomarginal.transitions.pseudo_marginal import (
    Conditional,
    State,
    pseudo_marginal_mh,
)

N_LABELS = 5
SHAPE, RATE = 1.2, 0.2  # of the Gamma prior of s
PROPOSAL_SD = 1.5  # of the random walk in log s
QUANTITIES = ("E[f]", "E[f²]", "E[f²/s]", "E[log s]", "P(f² > 9s) in %")


class RepeatedLabels:
    """p(y|f) = Phi(f)^repeats: the same latent value, labelled 1 several times.

    A likelihood of one's own needs just these four methods (the protocol `Likelihood`): the
    derivatives are for Laplace's approximation, the tilted moments for EP.

    Parameters
    ----------
    repeats : int
    """

    def __init__(self, repeats: int = N_LABELS):
        self.repeats = repeats
        self._single = ProbitLikelihood(np.ones(1))
        self._nodes, weights = np.polynomial.hermite_e.hermegauss(64)
        self._weights = weights / weights.sum()

    def log_density(self, f):
        """Log p(y|f), for f of shape (..., 1); shape (...)."""
        return self.repeats * self._single.log_density(f)

    def derivatives(self, f):
        """Gradient of log p(y|f) and its negative curvature W, each of shape (1,)."""
        gradient, W = self._single.derivatives(f)
        return self.repeats * gradient, self.repeats * W

    def third_derivative(self, f):
        """d³ log p(y|f) / df³, shape (1,)."""
        return self.repeats * self._single.third_derivative(f)

    def tilted_moments(self, mean, variance):
        """Moments of p(y|f) N(f|mean, variance) by Gauss-Hermite quadrature."""
        f = mean[:, None] + np.sqrt(variance)[:, None] * self._nodes
        mass = self._weights * np.exp(self.repeats * log_ndtr(f))
        total = mass.sum(axis=1)
        tilted_mean = (mass * f).sum(axis=1) / total
        tilted_variance = (mass * (f - tilted_mean[:, None]) ** 2).sum(axis=1) / total
        return TiltedMoments(np.log(total), tilted_mean, tilted_variance)


@dataclass(frozen=True)
class Sampler:
    """One way to alternate between theta and f.

    Attributes
    ----------
    name : str
    n_importance : int
        N, the number of importance samples.
    refresh : bool
        Whether to draw the companions of the current f anew in every iteration.
    keep_old_f : bool
        The mistake: carry f over to the new theta.
    """

    name: str
    n_importance: int
    refresh: bool = True
    keep_old_f: bool = False


SAMPLERS = (
    Sampler("exact scheme, N = 1", 1),
    Sampler("exact scheme, N = 4", 4),
    Sampler("exact scheme, N = 16", 16),
    Sampler("refresh=False (Algorithm 1, f by weight), N = 4", 4, refresh=False),
    Sampler("naive interleaving, N = 4", 4, refresh=False, keep_old_f=True),
)


def log_prior(log_s: np.ndarray) -> np.ndarray:
    """Log density of log s, up to a constant: the Gamma prior times the Jacobian s."""
    return SHAPE * log_s - RATE * np.exp(log_s)


def evaluate(theta: np.ndarray, likelihood: Likelihood) -> Conditional:
    """What the transitions need to know at theta = log s, shape (1,)."""
    prior = DensePrior(np.zeros(1), np.exp(theta)[:, None])
    # EP, as the posterior of f is too skewed for Laplace: its weights vary wildly here, and
    # a retained overestimate would hold the chain for thousands of iterations.
    approximation = expectation_propagation(prior, likelihood)
    return Conditional(theta, float(log_prior(theta[0])), likelihood, approximation)


def run_chain(
    rng: np.random.Generator, sampler: Sampler, draws: int, *, burn_in: int = 200
) -> np.ndarray:
    """Draws of (f, log s), shape (draws, 2)."""
    likelihood = RepeatedLabels()
    propose = RandomWalk(np.array([[PROPOSAL_SD]]))
    start = evaluate(np.log([SHAPE / RATE]), likelihood)
    state = State(start, start.approximation.mean)

    chain = np.empty((draws + burn_in, 2))
    for row in chain:
        old_f = state.f
        state, _ = pseudo_marginal_mh(
            rng,
            state,
            lambda theta: evaluate(theta, likelihood),
            propose,
            sampler.n_importance,
            refresh=sampler.refresh,
        )
        # Everything hangs on this line: `state.f` was picked by weight at the theta arrived at.
        f = old_f if sampler.keep_old_f else state.f
        f, _ = elliptical_slice(rng, f, state.conditional.prior, likelihood)
        state = State(state.conditional, f, state.retained)
        row[:] = f[0], state.conditional.theta[0]
    return chain[burn_in:]


def quantities(f: np.ndarray, log_s: np.ndarray) -> np.ndarray:
    """What the expectations are of, in the order of QUANTITIES, along a new first axis."""
    ratio = f**2 * np.exp(-log_s)
    return np.stack(np.broadcast_arrays(f, f**2, ratio, log_s, 100.0 * (ratio > 9.0)))


def exact_expectations() -> np.ndarray:
    """The posterior means of `quantities` by two-dimensional quadrature, shape (5,).

    In log s and z = f / sqrt(s) the posterior is smooth and vanishes at the borders of the
    grid, where the trapezoidal rule converges faster than any power of the spacing.
    """
    log_s = np.linspace(-25.0, 6.0, 1201)[:, None]
    z = np.linspace(-9.01, 9.01, 902)  # f² > 9s jumps at ±3, half-way between two nodes
    f = np.exp(0.5 * log_s) * z
    log_posterior = log_prior(log_s) - 0.5 * z**2 + N_LABELS * log_ndtr(f)
    weights = np.exp(log_posterior - log_posterior.max())
    return (quantities(f, log_s) * weights).sum(axis=(1, 2)) / weights.sum()


def sample_expectations(
    rng: np.random.Generator, sampler: Sampler, *, chains: int, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of the expectations and their Monte Carlo standard errors, shape (5,) each."""
    samples = np.stack([run_chain(stream, sampler, draws) for stream in rng.spawn(chains)])
    values = quantities(samples[..., 0], samples[..., 1])
    effective_sizes = np.array([float(az.ess(value, method="mean")) for value in values])
    return values.mean(axis=(1, 2)), values.std(axis=(1, 2)) / np.sqrt(effective_sizes)


def compare(
    samplers: Sequence[Sampler] = SAMPLERS, *, chains: int = 4, draws: int = 8_000, seed: int = 1
) -> tuple[np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """The truth, shape (5,), and (estimates, standard errors) by the sampler's name."""
    streams = np.random.default_rng(seed).spawn(len(samplers))
    results = {
        sampler.name: sample_expectations(stream, sampler, chains=chains, draws=draws)
        for stream, sampler in zip(streams, samplers, strict=True)
    }
    return exact_expectations(), results


def markdown_table(truth: np.ndarray, results: dict[str, tuple[np.ndarray, np.ndarray]]) -> str:
    """The comparison as a markdown table, one row for the truth and one per sampler."""
    rows = [
        ["sampler", *QUANTITIES],
        ["---"] * (1 + len(QUANTITIES)),
        ["truth (quadrature)", *(f"{value:.3f}" for value in truth)],
    ]
    for name, (estimates, errors) in results.items():
        z_scores = (estimates - truth) / errors
        cells = zip(estimates, errors, z_scores, strict=True)
        rows.append([name, *(f"{e:.3f} ± {se:.3f} (z = {z:+.1f})" for e, se, z in cells)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8_000, help="draws per chain (%(default)s)")
    parser.add_argument("--chains", type=int, default=4, help="chains per sampler (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (%(default)s)")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    options = parser.parse_args(arguments)

    truth, results = compare(chains=options.chains, draws=options.draws, seed=options.seed)
    table = markdown_table(truth, results)
    print(table)
    if options.output is not None:
        options.output.write_text(table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
