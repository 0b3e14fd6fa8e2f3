"""`SurrogateMH`: theta given a noisy copy of f and the coordinates of f given that copy."""

from __future__ import annotations

from pymc_pseudomarginal.step_methods.given_latent_step import GivenLatentMH
from pymc_pseudomarginal.transitions.surrogate import SurrogateSetting, surrogate


class SurrogateMH(GivenLatentMH):
    """Metropolis-Hastings for theta given surrogate data g ~ N(f, S): SURR.

    Theta moves while g and the standard normal coordinates of f given g stay; then f is moved
    by elliptical slice sampling. The noise S says of each f_i what its datum does. Exact. One
    of the alternatives with which Filippone & Girolami (2014) compare the pseudo-marginal
    approach. The likelihood must come apart into terms of one f_i each, as for EP.

    Parameters
    ----------
    vars : list of variables or names, optional
        The hyper-parameters to move; None takes all free variables but the latent,
        which is always moved along.
    latent_moves : int
        Elliptical-slice moves of f per draw.
    target_accept : float
        Acceptance to which the random walk is tuned.
    model : pymc.Model, optional
        Taken from the context if not given.

    Notes
    -----
    Sample statistics, one value per draw: ``pm_accepted``, ``pm_acceptance``,
    ``pm_cubic_operations`` (per proposal two factorisations and a product), ``pm_failed`` (1 where
    the proposal could not be evaluated and was rejected), ``pm_slice_evaluations``.

    References
    ----------
    Murray & Adams (2010), Slice sampling covariance hyperparameters of latent Gaussian
    models, NeurIPS; Filippone & Girolami (2014), section 3.2.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.SurrogateMH())
    """

    name = "surrogate_mh"
    parameterisation = staticmethod(surrogate)
    setting_type = SurrogateSetting
