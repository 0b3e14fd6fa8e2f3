"""`read_model`: from a `pymc.Model` to a `LatentGaussianModel`, or a refusal by name."""

from __future__ import annotations

import numpy as np
import pymc as pm

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.model.graph import depends_on, inputs_with_nan
from pymc_pseudomarginal.model.latent import Latent, latent_candidates
from pymc_pseudomarginal.model.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.model.likelihood import find_likelihood
from pymc_pseudomarginal.model.unobserved import Unobserved, unobserved_below
from pymc_pseudomarginal.numerics import NumericalFailure

_EXPECTED = (
    "Expected one of: pm.gp.Latent(...).prior('f', X=X); pm.MvNormal('f', ...); "
    "f = mu + A @ z with z = pm.Normal('z', 0, 1, shape=n) and a square matrix A; "
    "independent effects pm.Normal('f', ..., shape=n); each of one dimension."
)


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
      likelihood  y | f ~ Bernoulli (probit)
    """
    result = understand(model)
    _check_start(result)
    return result


def understand(model: pm.Model | None = None) -> LatentGaussianModel:
    """`read_model` without evaluating the model at its initial point.

    For those who have posterior draws, which show that it can be evaluated.
    """
    model = pm.modelcontext(model)
    latent = _find_latent(model)
    unobserved = unobserved_below(model, latent)
    hyperparameters = tuple(
        rv for rv in model.free_RVs if rv is not latent.free_rv and rv not in unobserved
    )
    for rv in hyperparameters:
        if rv.dtype.startswith(("int", "uint", "bool")):
            raise UnsupportedModelError(
                f"The free variable {rv.name!r} is discrete; hyper-parameters must be continuous. "
                "Marginalise it or fix it to a value."
            )
        if depends_on(rv, latent.free_rv):
            raise UnsupportedModelError(
                f"The free variable {rv.name!r} depends on the latent {latent.name!r}. Only "
                "observed variables may hang on it: integrate it out or observe it."
            )
    observation = find_likelihood(model, latent, hyperparameters)
    return LatentGaussianModel(
        model, hyperparameters, latent, observation, Unobserved(unobserved, observation)
    )


def _find_latent(model: pm.Model) -> Latent:
    """The one latent Gaussian of the model.

    Correlated vectors come before independent ones, and among several the one over
    whose elements the likelihood factorises: coefficients of a linear predictor do not.
    """
    candidates = latent_candidates(model)
    latents = [c for c in candidates if c.structured] or candidates
    if len(latents) > 1:
        latents = [c for c in latents if _factorises(model, c)] or latents
    if not latents:
        free = ", ".join(rv.name for rv in model.free_RVs) or "none"
        raise UnsupportedModelError(
            f"No latent Gaussian variable was found among the free variables ({free}). {_EXPECTED}"
        )
    if len(latents) > 1:
        names = " and ".join(repr(latent.name) for latent in latents)
        raise UnsupportedModelError(
            f"The model has {len(latents)} latent Gaussian variables, {names}; exactly one is "
            "supported. Where they are added up, add the Gaussian processes instead "
            "(gp = gp1 + gp2), so that their sum has one prior."
        )
    (latent,) = latents
    transform = model.rvs_to_transforms[latent.free_rv]
    if transform is not None:
        raise UnsupportedModelError(
            f"The latent {latent.name!r} has the transform {transform.name!r}, with which it is no "
            "longer Gaussian. Remove the transform."
        )
    return latent


def _factorises(model: pm.Model, latent: Latent) -> bool:
    others = [rv for rv in model.free_RVs if rv is not latent.free_rv]
    try:
        find_likelihood(model, latent, others).bind()
    except UnsupportedModelError:
        return False
    return True


def _check_start(model: LatentGaussianModel) -> None:
    """Evaluate everything once at the initial point, so that bad data show up now."""
    name = model.latent.name
    bad = [problem for graph in model.latent.moments for problem in inputs_with_nan(graph)]
    if bad:
        raise UnsupportedModelError(
            f"The prior of {name!r} is built from data with NaN or infinite values: "
            f"{', '.join(dict.fromkeys(bad))}. Drop or impute them first."
        )
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
        prior.factorise()
        f = model.f(model.initial_point, prior)
    except NumericalFailure as failure:
        raise UnsupportedModelError(
            f"The covariance of the latent {name!r} cannot be factorised at the initial point "
            f"{at}: {failure} Add jitter to its diagonal (pm.gp.cov.WhiteNoise, or jitter= in "
            "gp.prior), or give other initial values."
        ) from failure
    if not np.isfinite(model.bind_data()(theta).log_density(f)):
        raise UnsupportedModelError(
            f"log p({model.observation.names}|{name}) is not finite at the initial point {at}: "
            "are all data inside the support of their distribution?"
        )


def _check_symmetry(name: str, covariance: np.ndarray) -> None:
    asymmetry = float(np.max(np.abs(covariance - covariance.T), initial=0.0))
    if asymmetry > 1e-8 * float(np.max(np.abs(covariance), initial=0.0)):
        raise UnsupportedModelError(
            f"The covariance of {name!r} is not symmetric: entries differ from their mirror "
            f"images by up to {asymmetry:.3g}."
        )
