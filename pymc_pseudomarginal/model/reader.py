"""`read_model`: from a `pymc.Model` to a `LatentGaussianModel`, or a refusal by name."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import depends_on, inputs_with_nan
from pymc_pseudomarginal.model.latent import find_latent
from pymc_pseudomarginal.model.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.model.likelihood import find_likelihood
from pymc_pseudomarginal.numerics import NumericalFailure


def read_model(model: pm.Model | None = None) -> LatentGaussianModel:
    """Read a PyMC model as a latent Gaussian model.

    Parameters
    ----------
    model : pymc.Model, optional
        Taken from the context if not given. It is not modified.

    Returns
    -------
    LatentGaussianModel
        Prints what was understood: theta, f, its prior, the likelihood.

    Raises
    ------
    UnsupportedModelError
        If the model cannot be sampled exactly as written. The message names the
        variable, what was expected and what to do instead.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_pseudomarginal as pmpm
    >>> X, y = np.linspace(0, 1, 6)[:, None], np.array([0, 0, 1, 0, 1, 1])
    >>> with pm.Model() as model:
    ...     ls = pm.Gamma("ls", 2, 4)
    ...     gp = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, ls=ls))
    ...     f = gp.prior("f", X=X)
    ...     _ = pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)
    >>> pmpm.read_model(model)
    LatentGaussianModel
      theta       ls ~ Gamma [log]
      f           f (6,), stored whitened as f_rotated_
      prior       f ~ Normal(m, K; ls), K dense
      likelihood  y ~ Bernoulli(Phi(f)), in its stable form
    """
    model = pm.modelcontext(model)
    _refuse_discrete(model)
    latent = find_latent(model)
    hyperparameters = tuple(rv for rv in model.free_RVs if rv is not latent.free_rv)
    for rv in hyperparameters:
        if depends_on(rv, latent.free_rv):
            raise UnsupportedModelError(
                f"The free variable {rv.name!r} depends on the latent {latent.name!r}. Only "
                "observed variables may hang on it: integrate it out or observe it."
            )
    observation = find_likelihood(model, latent)
    result = LatentGaussianModel(model, hyperparameters, latent, observation)
    _check_start(result)
    return result


def _refuse_discrete(model: pm.Model) -> None:
    imputed = {
        f"{rv.name}_unobserved": rv.name for rv in (*model.observed_RVs, *model.deterministics)
    }
    for rv in model.free_RVs:
        if rv.name in imputed:
            raise UnsupportedModelError(
                f"{imputed[rv.name]!r} has missing values (NaN or masked), for which PyMC made "
                f"the free variable {rv.name!r}. Drop those observations and the rows of X that "
                "belong to them."
            )
        if rv.dtype.startswith(("int", "uint", "bool")):
            raise UnsupportedModelError(
                f"The free variable {rv.name!r} is discrete; hyper-parameters must be continuous. "
                "Marginalise it or fix it to a value."
            )


def _check_start(model: LatentGaussianModel) -> None:
    """Evaluate everything once at the initial point, so that bad data show up now."""
    name = model.latent.name
    bad = [*inputs_with_nan(model.latent.covariance), *inputs_with_nan(model.latent.mean)]
    if bad:
        raise UnsupportedModelError(
            f"The prior of {name!r} is built from data with NaN or infinite values: "
            f"{', '.join(dict.fromkeys(bad))}. Drop or impute them first."
        )
    likelihood = model.likelihood()
    theta = model.theta(model.initial_point)
    at = {n: np.round(v, 4).tolist() for n, v in model.hyper_point(theta).items()}
    if not np.isfinite(model.log_prior(theta)):
        raise UnsupportedModelError(
            f"The log prior of the hyper-parameters is not finite at the initial point {at}. "
            "Give initial values inside their support (initval=...)."
        )
    try:
        prior = model.prior(theta)
        if prior.covariance.shape != (model.size, model.size):
            raise UnsupportedModelError(
                f"The covariance of {name!r} has shape {prior.covariance.shape}; expected "
                f"({model.size}, {model.size})."
            )
        _check_symmetry(name, prior.covariance)
        _ = prior.cholesky
        f = model.f(model.initial_point, prior)
    except NumericalFailure as failure:
        raise UnsupportedModelError(
            f"The covariance of the latent {name!r} cannot be factorised at the initial point "
            f"{at}: {failure} Add jitter to its diagonal (pm.gp.cov.WhiteNoise, or jitter= in "
            "gp.prior), or give other initial values."
        ) from failure
    if not np.isfinite(likelihood.log_density(f)):
        raise UnsupportedModelError(f"log p(y|{name}) is not finite at the initial point {at}.")


def _check_symmetry(name: str, covariance: np.ndarray) -> None:
    asymmetry = float(np.max(np.abs(covariance - covariance.T), initial=0.0))
    if asymmetry > 1e-8 * float(np.max(np.abs(covariance), initial=0.0)):
        raise UnsupportedModelError(
            f"The covariance of {name!r} is not symmetric: entries differ from their mirror "
            f"images by up to {asymmetry:.3g}."
        )
