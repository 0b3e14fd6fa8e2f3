"""Compare `pmpm.predict` with `gp.conditional` and `pm.sample_posterior_predictive`.

Both predict the latent at the same new inputs from the same posterior draws of a GP probit model.
PyMC draws it jointly at all new inputs; `predict` gives its mean and variance at each. Times are
those of a second call, when everything has been compiled that can be kept, and cover all that a
user waits for: reading and compiling what cannot.

Run it with ``python examples/compare_predictions.py``. A minute or two.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import pymc as pm
from threadpoolctl import threadpool_limits

import pymc_pseudomarginal as pmpm


def simulated_model(n: int, rng: np.random.Generator) -> tuple[pm.Model, pm.gp.Latent]:
    """A GP probit model of n simulated labels in two dimensions."""
    X = rng.uniform(size=(n, 2))
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    K = 5.0 * np.exp(-0.5 * squares / 0.3**2) + 1e-6 * np.eye(n)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    y = (f + rng.standard_normal(n) > 0).astype(int)
    with pm.Model() as model:
        ls, sigma = pm.Gamma("ls", 3.0, 6.0), pm.Gamma("sigma", 3.0, 0.6)
        gp = pm.gp.Latent(cov_func=sigma * pm.gp.cov.ExpQuad(2, ls=ls))
        f = gp.prior("f", X=pm.Data("X", X))
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)
    return model, gp


def second_call(function: Callable) -> tuple[float, object]:
    """(seconds, result) of the second of two calls."""
    function()
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


@threadpool_limits.wrap(limits=1)
def main(arguments: Sequence[str] | None = None) -> None:
    """Time both and print a table, with how far the latents are apart."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--n", type=int, default=200, help="number of data points")
    parser.add_argument("--m", type=int, default=100, help="number of new inputs")
    parser.add_argument("--draws", type=int, default=1000, help="number of posterior draws")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    model, gp = simulated_model(options.n, rng)
    X_new = rng.uniform(size=(options.m, 2))
    quiet = {"progressbar": False, "random_seed": options.seed}
    with model:
        idata = pm.sample(
            options.draws // 2,
            tune=300,
            chains=2,
            step=pmpm.PseudoMarginalMH(),
            compute_convergence_checks=False,
            **quiet,
        )
        ours, predictions = second_call(lambda: pmpm.predict(idata, gp, X_new, **quiet))
        gp.conditional("f_new", X_new)
        theirs, drawn = second_call(
            lambda: pm.sample_posterior_predictive(
                idata, var_names=["f_new"], predictions=True, **quiet
            )
        )
    f = drawn["predictions"]["f_new"].to_numpy()
    z = (f - predictions["f_mean"]) / np.sqrt(predictions["f_var"])
    thetas = len(np.unique(idata["posterior"]["ls"]))
    print(
        f"n = {options.n}, {options.m} new inputs, {f.shape[0] * f.shape[1]} draws with {thetas} "
        f"different theta, PyMC {pm.__version__}, one BLAS thread\n\n"
        "| | seconds | ratio |\n|---|---|---|\n"
        f"| gp.conditional + sample_posterior_predictive | {theirs:.2f} | 1.0 |\n"
        f"| pmpm.predict | {ours:.2f} | {theirs / ours:.1f} |\n\n"
        f"(f drawn by PyMC - f_mean) / sd: mean {float(z.mean()):.3f}, sd {float(z.std()):.3f}"
    )


if __name__ == "__main__":
    main()
