"""Compare the samplers of the paper on simulated labels: efficiency and cubic operations.

The model is the isotropic GP probit model of Filippone & Girolami (2014) with n = 50 labels in two
dimensions, drawn with the length-scale and variance of the paper. For each sampler: the effective
sample size of the worse hyper-parameter per 1000 draws, acceptance, factorisations and products of
n×n matrices per draw, and the effective draws that 1000 of these buy.

Run it with ``python examples/compare_samplers.py``. About five minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm

import pymc_pseudomarginal as pmpm

# As in the paper: a random walk and independent importance samples.
PM = partial(pmpm.PseudoMarginalMH, annealing=0, normals="independent", proposal="random-walk")
SAMPLERS = {
    "PM LA, N = 1": lambda: PM(approximation="laplace", n_importance=1),
    "PM LA, N = 64": lambda: PM(approximation="laplace", n_importance=64),
    "PM EP, N = 1": lambda: PM(approximation="ep", n_importance=1),
    "PM EP, N = 64": lambda: PM(approximation="ep", n_importance=64),
    "AA": lambda: pmpm.WhitenedMH(),
    "SURR": lambda: pmpm.SurrogateMH(),
    "SA": lambda: pmpm.CentredMH(),
    "MCMC EP (not exact)": lambda: pmpm.ApproximateMarginalMH(approximation="ep"),
}


def simulated_model(n: int, seed: int, lengthscale: float = 0.35, variance: float = 2.08):
    """The model of n labels drawn with these hyper-parameters."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    K = variance * np.exp(-0.5 * squares / lengthscale**2) + 1e-6 * np.eye(n)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    y = (f + rng.standard_normal(n) > 0).astype(int)
    with pm.Model() as model:
        ls = pm.Gamma("ls", 1.0, 1 / np.sqrt(2))
        sigma = pm.Gamma("sigma", 1.2, 0.2)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(2, ls=ls))
        f = gp.prior("f", X=pm.Data("X", X))
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=pm.Data("labels", y))
    return model


def measure(name: str, make, options: argparse.Namespace) -> dict:
    """Sample the model in context and summarise."""
    idata = pm.sample(
        options.draws,
        tune=options.tune,
        chains=options.chains,
        cores=min(options.chains, os.cpu_count() or 1),
        step=make(),
        random_seed=options.seed,
        progressbar=False,
        compute_convergence_checks=False,
    )
    chains = [np.log(idata["posterior"][v].to_numpy()) for v in ("ls", "sigma")]
    statistics = idata["sample_stats"]
    return {
        "name": name,
        "ess": 1000 * min(float(az.ess(x)) for x in chains) / chains[0].size,
        "rhat": max(float(az.rhat(x)) for x in chains),
        "accepted": float(statistics["pm_accepted"].mean()),
        "operations": float(statistics["pm_cubic_operations"].mean()),
    }


def as_markdown(rows: list[dict]) -> str:
    """The table."""
    lines = [
        "| sampler | ESS per 1000 draws | R-hat | acceptance | cubic operations per draw "
        "| ESS per 1000 operations |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        per_operation = row["ess"] / row["operations"]
        lines.append(
            f"| {row['name']} | {row['ess']:.1f} | {row['rhat']:.3f} | {row['accepted']:.2f} "
            f"| {row['operations']:.1f} | {per_operation:.1f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all samplers and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--n", type=int, default=50, help="number of labels")
    parser.add_argument("--draws", type=int, default=5000, help="draws per chain")
    parser.add_argument("--tune", type=int, default=2000, help="tuning draws per chain")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write the table to this file")
    options = parser.parse_args(arguments)
    with simulated_model(options.n, options.seed):
        rows = [measure(name, make, options) for name, make in SAMPLERS.items()]
    table = as_markdown(rows)
    print(f"n = {options.n}, {options.chains} chains of {options.draws} draws\n\n{table}")
    if options.output:
        options.output.write_text(table + "\n")


if __name__ == "__main__":
    main()
