"""The approximate log marginal likelihood log Z_q(theta) of a model, with its gradient."""

from __future__ import annotations

import numpy as np

from pymc_pseudomarginal.model.force import PullBack, log_density
from pymc_pseudomarginal.model.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.numerics import (
    APPROXIMATIONS,
    Approximation,
    DensePrior,
    NoFiniteApproximation,
    NotPositiveDefinite,
    RootedPrior,
)
from pymc_pseudomarginal.numerics.likelihoods import Likelihood

# The formulas of the gradients hold at the mode or the fixed point only. What rounding keeps
# from coming so close may still be close enough.
_TOLERANCES = {"laplace": 1e-18, "ep": 1e-9}
_CLOSE_ENOUGH = {"laplace": 1e-10, "ep": 1e-6}
_MAX_ITERATIONS = 200
# Largest ratio W_i K_ii of a prior's variance to its site's at which rounding spoils log Z
# by less than 1e-3. Measured with Gaussian likelihoods: EP's error grows as its square.
_NARROWEST_SITE = {"laplace": 1e9, "ep": 2e6}
# Of central differences, relative to max(1, |theta_j|). log Z is smooth to about 1e-12, so
# that rounding and truncation both leave errors of about 1e-8.
_STEP = 1e-4
# A covariance whose smallest eigenvalue is below zero by less than this share of its largest
# variance is one that lost its last digits.
_ROUNDING = 1e-9
# A site counts as without data if its gradient, per standard deviation of f, is below this.
_NO_DATA = 1e-6


class MarginalGradient:
    """theta -> log Z_q(theta) and its gradient, for the data that the model holds now.

    q is run to convergence, where the formulas of `PullBack` hold.

    Parameters
    ----------
    model : LatentGaussianModel
    approximation : {"laplace", "ep"}

    Notes
    -----
    Where the likelihood is not log-concave a site may want a negative precision and gets
    none. The formulas for the cotangents then no longer hold, and the whole gradient is
    taken by central differences.

    References
    ----------
    Rasmussen & Williams (2006), sections 5.5.1 and 5.5.2.
    """

    def __init__(self, model: LatentGaussianModel, approximation: str):
        self.model = model
        self.approximation = approximation
        self._likelihood_at = model.bind_data()
        self._gradient = PullBack(model, approximation)

    def approximate(self, theta: np.ndarray) -> Approximation:
        """The converged Gaussian approximation at theta.

        Raises
        ------
        NumericalFailure
            If the covariance is not one, no finite approximation exists, the iterations do
            not converge, or rounding spoils log Z.
        """
        return self._approximate(self._prior(theta), self._likelihood(theta))

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The value log Z_q(theta) and its gradient, shape (d,).

        Raises
        ------
        NumericalFailure
            As `approximate`, at theta or next to it.
        """
        likelihood = self._likelihood(theta)
        q = self._approximate(self._prior(theta), likelihood)
        with np.errstate(all="ignore"):  # a gradient that overflows is seen as such
            if _has_clamped_sites(q, likelihood):
                return q.log_marginal, self._differences(theta, q)
            return q.log_marginal, self._gradient(theta, q, likelihood, self._likelihood_at)

    def _differences(self, theta: np.ndarray, q: Approximation) -> np.ndarray:
        """The gradient by central differences, shape (d,), each started from q at theta."""

        def log_marginal(at):
            return self._approximate(self._prior(at), self._likelihood(at), q.anchor).log_marginal

        result = np.zeros(theta.size)
        for j in range(theta.size):
            step = np.zeros(theta.size)
            step[j] = _STEP * max(1.0, abs(theta[j]))
            difference = log_marginal(theta + step) - log_marginal(theta - step)
            result[j] = difference / (2.0 * step[j])
        return result

    def _approximate(self, prior, likelihood, start=None) -> Approximation:
        run, name = APPROXIMATIONS[self.approximation], self.approximation
        tight = {"tolerance": _TOLERANCES[name], "max_iterations": _MAX_ITERATIONS}
        q = run(prior, likelihood, start=start, **tight)
        if name == "laplace":
            # B belongs to the iterate before the last step, and the line search may have
            # ended early by rounding of Psi: once more, from the mode itself.
            q = run(prior, likelihood, start=q.anchor, **tight)
        if not q.converged:
            close = {"tolerance": _CLOSE_ENOUGH[name], "max_iterations": 1}
            if not run(prior, likelihood, start=q.anchor, **close).converged:
                raise NoFiniteApproximation(f"The approximation {name!r} does not converge.")
        if np.max(q.precision * prior.variances) > _NARROWEST_SITE[name]:
            raise NoFiniteApproximation("The likelihood is too narrow for a reliable log Z.")
        return q

    def _likelihood(self, theta: np.ndarray) -> Likelihood:
        with np.errstate(all="ignore"):
            return self._likelihood_at(theta)

    def _prior(self, theta: np.ndarray) -> DensePrior:
        """p(f|theta), checked to be a Gaussian: B may be positive definite where K is not."""
        try:
            with np.errstate(all="ignore"):
                prior = self.model.prior(theta)
        except np.linalg.LinAlgError as error:  # of a Cholesky factor in the user's graph
            raise NotPositiveDefinite(f"The covariance cannot be computed: {error}") from error
        if not isinstance(prior, RootedPrior):
            slack = _ROUNDING * prior.variances.max() * np.eye(prior.size)
            DensePrior(prior.mean, prior.covariance + slack).factorise()
        return prior


def _has_clamped_sites(q: Approximation, likelihood: Likelihood) -> bool:
    """Whether a site has data but, for want of log-concavity, no precision."""
    zero = q.precision == 0.0
    if not zero.any():
        return False
    gradient, _ = likelihood.derivatives(q.mean)
    return bool(np.any(np.abs(gradient[zero]) * np.sqrt(q.prior.variances[zero]) > _NO_DATA))


class MarginalObjective:
    """theta -> the approximate log density of all data, with its gradient of shape (d,).

    log Z_q and, as part of the likelihood, the observed variables and potentials that
    involve theta but not f.

    Parameters
    ----------
    model : LatentGaussianModel
    approximation : {"laplace", "ep"}
    with_prior : bool
        Whether to add the log prior density of theta on the natural scale, without a
        Jacobian.
    """

    def __init__(self, model: LatentGaussianModel, approximation: str, *, with_prior: bool):
        self.marginal = MarginalGradient(model, approximation)
        self._beside_f = log_density(model, model.factors_beside_latent, jacobian=False)
        priors = model.hyperparameters if with_prior else ()
        self._prior = log_density(model, priors, jacobian=False)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient.

        Raises
        ------
        NumericalFailure
            Where either is not finite.
        """
        parts = [part(theta) for part in (self.marginal, self._beside_f, self._prior)]
        value = float(sum(part[0] for part in parts))
        gradient = sum(part[1] for part in parts)
        if not np.isfinite(value + gradient.sum()):
            raise NoFiniteApproximation("The objective or its gradient is not finite.")
        return value, gradient

    def log_prior(self, theta: np.ndarray) -> float:
        """The share of the prior in the value; zero if it has none."""
        return self._prior(theta)[0]
