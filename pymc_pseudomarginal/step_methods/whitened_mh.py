"""`WhitenedMH`: theta given the standard normal coordinates of f (ancillary augmentation)."""

from __future__ import annotations

from pymc_pseudomarginal.step_methods.given_latent_step import GivenLatentMH
from pymc_pseudomarginal.transitions.whitened import whitened


class WhitenedMH(GivenLatentMH):
    """Metropolis-Hastings for theta given nu with f = m + L nu: ancillary augmentation (AA).

    Theta moves while nu stays, so that f follows the prior at the new theta; then f is moved by
    elliptical slice sampling. Exact, and slow where the data say much about f. One of the
    alternatives with which Filippone & Girolami (2014) compare the pseudo-marginal approach.

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
    ``pm_cubic_operations`` (per proposal one factorisation of K), ``pm_failed`` (1 where
    the proposal could not be evaluated and was rejected), ``pm_slice_evaluations``.

    References
    ----------
    Filippone & Girolami (2014), section 3.2; Yu & Meng (2011), To center or not to center,
    Journal of Computational and Graphical Statistics 20.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmpm.WhitenedMH())
    """

    name = "whitened_mh"
    parameterisation = staticmethod(whitened)
