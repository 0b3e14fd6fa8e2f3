"""PyMC's own log densities, interpreted: what a model that was read is compared with."""

from functools import cache

import numpy as np
import pytensor
from pytensor.compile.mode import Mode

INTERPRETED = Mode(linker="py", optimizer="fast_compile")


def own_log_density(model, names=None):
    """Point -> log density of some variables and potentials of a model, of all by default."""
    wanted = [v for v in [*model.basic_RVs, *model.potentials] if names is None or v.name in names]
    graph = sum(g.sum() for g in model.logp(vars=wanted, sum=False)) if wanted else 0.0
    inputs = model.value_vars
    function = pytensor.function(
        inputs, pytensor.tensor.as_tensor(graph), mode=INTERPRETED, on_unused_input="ignore"
    )

    def density(point):
        with np.errstate(all="ignore"):
            return float(function(*[point[v.name] for v in inputs]))

    return density


def sampled_names(read):
    """The names of everything in the joint density of theta, x and the data."""
    model = read.model
    every = {v.name for v in [*model.basic_RVs, *model.potentials]}
    return every - read.split()["unobserved"]


@cache
def start_of(model):
    """The initial point of a model, which takes a while to find."""
    return model.initial_point(0)


def whole_point(read, theta, x):
    """A point of PyMC's with the values of theta and x; what is drawn afterwards as it starts."""
    return dict(start_of(read.model)) | read.to_point(theta, x)


def log_volume(read, theta):
    """log |dv/dz| of what PyMC stores, v, by what the reader puts in x, z = L^-1 (v - mu)."""
    space = read.structure.space
    total = 0.0
    for rv, z in space.variables.items():
        if z in space.stored and z in read.structure.members:
            name, place = space.model.rvs_to_values[rv].name, read.x.slices[z]
            units = np.eye(read.size)[place]
            moved = [np.ravel(read.to_point(theta, unit)[name]) for unit in units]
            still = np.ravel(read.to_point(theta, np.zeros(read.size))[name])
            total += np.linalg.slogdet(np.subtract(moved, still))[1]
    return total


def random_vectors(read, scale, rng):
    """Theta around its start and x around zero."""
    theta = read.start + scale * rng.standard_normal(read.dim_theta)
    return theta, scale * rng.standard_normal(read.size)


def identity_errors(read, scales=(0.3, 1.0, 3.0), tries=2, seed=0):
    """|log p(theta, x, y) - the sum of the parts|, relative, wherever the former is finite.

    A matrix that is not positive definite in rounding, far out, is no error of the reader.
    """
    own, rng = own_log_density(read.model, sampled_names(read)), np.random.default_rng(seed)
    errors = []
    for scale in np.repeat(scales, tries):
        theta, x = random_vectors(read, scale, rng)
        try:
            whole = own(whole_point(read, theta, x)) + log_volume(read, theta)
        except (np.linalg.LinAlgError, ValueError):
            continue
        if np.isfinite(whole):
            errors.append(abs(read.log_joint(theta, x) - whole) / (1.0 + abs(whole)))
    return np.array(errors)
