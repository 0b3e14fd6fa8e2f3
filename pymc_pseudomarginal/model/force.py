"""Gradients in theta that a Gaussian approximation at hand gives, without making another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from pymc.pytensorf import compile as compile_graph
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.exponential import with_vectorised_exp
from pymc_pseudomarginal.model.graph import depends_on
from pymc_pseudomarginal.model.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.numerics import Approximation, NumericalFailure
from pymc_pseudomarginal.numerics.gradients import DIFFERENTIALS
from pymc_pseudomarginal.numerics.likelihoods import Likelihood

# Of central differences, relative to max(1, |theta_j|). The sums that are differenced are good
# to about 1e-12, so that rounding and truncation both leave errors of about 1e-8.
_STEP = 1e-4


class PullBack:
    """The gradient of log Z_q(theta) from q at theta, by the formulas of a converged q.

    What theta does to the prior N(m, K) is exact: the cotangents d log Z/dm and d log Z/dK
    are pulled back through the graphs of m and K, which are compiled once. What it does to
    the likelihood (noise, cut-points, slopes) is found by central differences, at O(n) cost,
    of a sum over the sites with q held fixed. Only the elements of theta on which the
    likelihood depends are moved.

    Parameters
    ----------
    model : LatentGaussianModel
    approximation : {"laplace", "ep"}
    """

    def __init__(self, model: LatentGaussianModel, approximation: str):
        self.model = model
        self._differentiate = DIFFERENTIALS[approximation]
        self._pull_back = _compile_pull_back(model)
        self._in_likelihood = _elements_in_likelihood(model)

    def __call__(
        self,
        theta: np.ndarray,
        q: Approximation,
        likelihood: Likelihood,
        likelihood_at: Callable[[np.ndarray], Likelihood],
    ) -> np.ndarray:
        """The gradient, shape (d,).

        Parameters
        ----------
        theta : array, shape (d,)
        q : Approximation
            At theta.
        likelihood : Likelihood
            At theta.
        likelihood_at : callable
            theta -> Likelihood.
        """
        cotangents, of_likelihood = self._differentiate(q, likelihood)
        gradient = self._pull_back(*self.model.hyper_values_at(theta), *cotangents)
        for j in self._in_likelihood:
            step = np.zeros(theta.size)
            step[j] = _STEP * max(1.0, abs(theta[j]))
            above, below = (of_likelihood(likelihood_at(at)) for at in (theta + step, theta - step))
            gradient[j] += (above - below) / (2.0 * step[j])
        return gradient


class Force:
    """The gradient of log p(theta) Z_q(theta) on the unconstrained scale.

    With p(theta) goes the Jacobian of its transforms, and every factor of the model that does not
    involve f, as in `LatentGaussianModel.log_prior`.

    Parameters
    ----------
    model : LatentGaussianModel
    approximation : {"laplace", "ep"}

    Notes
    -----
    Where q is not fully converged, or a site's precision was kept from being negative, this is
    the gradient of a function a little beside log Z_q. As a force in a Hamiltonian proposal
    any function of theta is exact.
    """

    def __init__(self, model: LatentGaussianModel, approximation: str):
        factors = [*model.hyperparameters, *model.factors_beside_latent]
        self._log_prior = log_density(model, factors, jacobian=True)
        self._log_marginal = PullBack(model, approximation)

    def __call__(
        self,
        theta: np.ndarray,
        q: Approximation,
        likelihood: Likelihood,
        likelihood_at: Callable[[np.ndarray], Likelihood],
    ) -> np.ndarray:
        """The force at theta, shape (d,); the parameters are those of `PullBack`.

        Raises
        ------
        NumericalFailure
            If it is not finite.
        """
        with np.errstate(all="ignore"):
            gradient = self._log_prior(theta)[1]
            gradient = gradient + self._log_marginal(theta, q, likelihood, likelihood_at)
        if not np.isfinite(gradient).all():
            raise NumericalFailure("The gradient of the approximate log posterior is not finite.")
        return gradient


def log_density(
    model: LatentGaussianModel, factors: Sequence[TensorVariable], *, jacobian: bool
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Theta -> the sum of the factors' log densities, and its gradient of shape (d,).

    Parameters
    ----------
    model : LatentGaussianModel
    factors : sequence of TensorVariable
    jacobian : bool
        Whether the densities are those on the unconstrained scale.
    """
    if not factors:
        return lambda theta: (0.0, np.zeros(theta.size))
    value = model.model.logp(vars=list(factors), jacobian=jacobian)
    parts = pt.grad(value, model.hyper_values, disconnected_inputs="ignore")
    outputs = [value, pt.concatenate([part.ravel() for part in parts])]
    function = compile_graph(model.hyper_values, outputs, on_unused_input="ignore")
    function.trust_input = True

    def evaluate(theta):
        with np.errstate(all="ignore"):
            density, gradient = function(*model.hyper_values_at(theta))
        return float(density), gradient

    return evaluate


def _compile_pull_back(model: LatentGaussianModel):
    """(*theta, d log Z/dm, d log Z/dK) -> the gradient in theta by way of m and K, (d,)."""
    latent = model.latent
    covariance = latent.covariance if latent.root is None else latent.root @ latent.root.T
    mean = pt.broadcast_to(latent.mean, (covariance.shape[0],))
    mean, covariance = model.model.replace_rvs_by_values([mean, covariance])
    d_mean, d_covariance = pt.dvector("d_mean"), pt.dmatrix("d_covariance")
    product = (mean * d_mean).sum() + (covariance * d_covariance).sum()
    parts = pt.grad(product, model.hyper_values, disconnected_inputs="ignore")
    gradient = pt.concatenate([part.ravel() for part in parts])
    inputs = [*model.hyper_values, d_mean, d_covariance]
    (gradient,) = with_vectorised_exp([gradient])
    function = compile_graph(inputs, gradient, on_unused_input="ignore")
    function.trust_input = True
    return function


def _elements_in_likelihood(model: LatentGaussianModel) -> list[int]:
    """The positions in theta on which p(y|f, theta) depends."""
    terms = [term for factor in model.observation.factors for term in factor.elements]
    return [
        j
        for value in model.hyper_values
        if any(depends_on(term, value) for term in terms)
        for j in range(model.slices[value.name].start, model.slices[value.name].stop)
    ]
