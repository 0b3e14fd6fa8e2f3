"""`read_model`: from a PyMC model to a `LatentGaussianModel`, or a refusal by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pymc as pm
import pytensor

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.numerics.errors import NumericalFailure
from pymc_pseudomarginal.reading.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.reading.patterns import DenseDependence
from pymc_pseudomarginal.reading.quadratic import LogDensity
from pymc_pseudomarginal.reading.structure import Structure, take_apart
from pymc_pseudomarginal.reading.value_space import ValueSpace, to_value_space

_CHECKS = 3
_SCALES = (0.4, 1.5, 0.4, 0.4, *(0.1,) * 8)
_TOLERANCE = 1e-6
_SAME = 1e-14
_ROUNDING_FACTOR = 10.0


def read_model(model: pm.Model | None = None) -> LatentGaussianModel:
    """Read a PyMC model as a latent Gaussian model.

    Parameters
    ----------
    model : pymc.Model, optional
        Taken from the context if not given. It is not modified. Anything with a
        `backend.model`, such as a built bambi model, will do.

    Returns
    -------
    LatentGaussianModel
        Prints what was understood: what is integrated out (x), what is sampled (theta), and how
        the observed variables depend on x.

    Raises
    ------
    UnsupportedModelError
        If the model cannot be sampled exactly as written. The message names the variable,
        what was expected and what to do instead.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_pseudomarginal as pmpm
    >>> group, y = np.array([0, 0, 1, 1, 2, 2]), np.array([3, 5, 1, 0, 2, 4])
    >>> with pm.Model() as model:
    ...     mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
    ...     u = pm.Normal("u", 0, tau, shape=3)
    ...     _ = pm.Poisson("y", mu=pm.math.exp(mu + u[group]), observed=y)
    >>> pmpm.read_model(model)
    LatentGaussianModel
      integrated out          mu ~ Normal
                              u (3,) ~ Normal
      sampled (theta)         tau ~ HalfNormal [log]
      observed                y ~ Poisson, 6 terms with one linear predictor each
    """
    model = pm.modelcontext(getattr(getattr(model, "backend", None), "model", model))
    try:
        # Where every node was made helps nobody here, and costs a tenth of the time.
        with pytensor.config.change_flags(traceback__limit=0):
            space = to_value_space(model)
            read = LatentGaussianModel(take_apart(space))
            _check_identity(read, space)
    except DenseDependence as error:
        raise UnsupportedModelError(
            f"The model needs a dense matrix that is too large: {error}. Thin it out, or write the "
            "structure as a random walk, a field or a basis of fewer functions."
        ) from error
    return read


def _check_identity(read: LatentGaussianModel, space: ValueSpace) -> None:
    """Log p(theta, x, y) must be the sum of the parts, at points that nothing was fitted to."""
    interpreted = read.interpreted()
    rng = np.random.default_rng(77)
    joint = _joint(read.structure)
    compared = 0
    for scale in _SCALES:
        point = _moved(space.start, scale, rng)
        whole = joint(point)
        if not np.isfinite(whole):
            continue
        try:
            parts = interpreted.log_joint(read.theta.stack(point), read.x.stack(point))
        except NumericalFailure:
            continue
        error = abs(parts - whole)
        if not error <= _TOLERANCE * (1.0 + abs(whole)) + _rounding(joint, point, whole, error):
            raise UnsupportedModelError(
                "The model was not understood: its log density is not the sum of the parts that "
                f"were found ({whole:.10g} and {parts:.10g}). Please report the model as a bug."
            )
        compared += 1
        if compared == _CHECKS:
            return
    if not compared:
        raise UnsupportedModelError(
            "The log density of the model is not finite at its initial point, nor near it: are all "
            "data inside the support of their distribution, and finite? Else give initial values "
            "(initval=...) at which it can be evaluated."
        )


def _moved(start: Mapping[str, np.ndarray], scale: float, rng) -> dict[str, np.ndarray]:
    return {
        name: np.asarray(value + scale * rng.standard_normal(value.shape))
        for name, value in start.items()
    }


def _rounding(joint, point: Mapping[str, np.ndarray], whole: float, error: float) -> float:
    """What rounding may do to a log density: how much it moves between points that are the same.

    Nearly singular matrices lose digits in the model itself, and so in its parts.
    """
    if error <= _TOLERANCE:
        return 0.0
    rng = np.random.default_rng(78)
    others = [
        {name: v * (1.0 + _SAME * rng.standard_normal(v.shape)) for name, v in point.items()}
        for _ in range(4)
    ]
    return _ROUNDING_FACTOR * max(abs(joint(other) - whole) for other in others)


def _joint(structure: Structure):
    """The log density of the model, from its own graphs."""
    space = structure.space
    graphs = [*space.log_densities.values(), *space.log_densities_of(space.factors)]
    densities = [LogDensity(graph, space.inputs) for graph in graphs]
    return lambda point: sum(density(point) for density in densities)
