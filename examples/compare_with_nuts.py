"""Compare PseudoMarginalMH with PyMC's NUTS on the same GP probit model.

Both sample the unmodified model `gp.Latent(...).prior(...)` with the same number of
chains and cores. What counts is the effective sample size of the worst hyper-parameter
per second of sampling, tuning included, compilation apart.

Run it with ``python examples/compare_with_nuts.py``; ``--nuts nutpie`` takes nutpie, which
must be installed, in place of PyMC's own NUTS. A few minutes on two cores.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm

import pymc_pseudomarginal as pmpm

HYPERPARAMETERS = ("ls", "sigma")


def simulated_model(n: int, seed: int) -> pm.Model:
    """A GP probit model of n simulated labels in two dimensions."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    squares = ((X[:, None] - X[None]) ** 2).sum(-1)
    K = 5.0 * np.exp(-0.5 * squares / 0.3**2) + 1e-6 * np.eye(n)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    y = (f + rng.standard_normal(n) > 0).astype(int)
    with pm.Model() as model:
        ls = pm.Gamma("ls", 3.0, 6.0)
        sigma = pm.Gamma("sigma", 3.0, 0.6)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(2, ls=ls))
        f = gp.prior("f", X=X)
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)
    return model


def measure(name: str, draws: int, **kwargs) -> dict:
    """Sample the model in context; ESS and R-hat of the worst hyper-parameter, and seconds."""
    idata = pm.sample(
        draws, chains=2, cores=2, progressbar=False, compute_convergence_checks=False, **kwargs
    )
    posterior = idata["posterior"]
    chains = [posterior[name].values for name in HYPERPARAMETERS]
    return {
        "sampler": name,
        "draws": 2 * draws,
        "seconds": posterior.attrs["sampling_time"],
        "ess": min(float(az.ess(x)) for x in chains),
        "rhat": max(float(az.rhat(x)) for x in chains),
    }


def as_markdown(rows: list[dict]) -> str:
    """The table, with ESS per second relative to the first row."""
    lines = [
        "| sampler | draws | seconds | worst ESS | worst R-hat | ESS per second | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    reference = rows[0]["ess"] / rows[0]["seconds"]
    for row in rows:
        rate = row["ess"] / row["seconds"]
        lines.append(
            f"| {row['sampler']} | {row['draws']} | {row['seconds']:.1f} | {row['ess']:.0f} "
            f"| {row['rhat']:.3f} | {rate:.2f} | {rate / reference:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run both samplers and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100, help="number of data points")
    parser.add_argument("--draws", type=int, default=4000, help="draws of the pseudo-marginal step")
    parser.add_argument("--nuts-draws", type=int, default=500, help="draws of NUTS")
    parser.add_argument("--nuts", default="pymc", choices=["pymc", "nutpie"])
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write the table to this file")
    options = parser.parse_args()
    common = {"tune": options.tune, "random_seed": options.seed}
    with simulated_model(options.n, options.seed):
        rows = [
            measure(
                f"NUTS ({options.nuts})", options.nuts_draws, nuts_sampler=options.nuts, **common
            )
        ]
        for approximation in ("laplace", "ep"):
            step = pmpm.PseudoMarginalMH(approximation=approximation)
            rows.append(
                measure(f"PseudoMarginalMH, {approximation}", options.draws, step=step, **common)
            )
    table = as_markdown(rows)
    print(f"n = {options.n}, PyMC {pm.__version__}, 2 chains on 2 cores\n\n{table}")
    if options.output:
        options.output.write_text(table + "\n")


if __name__ == "__main__":
    main()
