"""What was understood of a model, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import distribution_name
from pymc_pseudomarginal.reading.graphs import is_random
from pymc_pseudomarginal.reading.structure import Structure

if TYPE_CHECKING:
    from pymc_pseudomarginal.reading.latent_gaussian_model import LatentGaussianModel


def describe(read: LatentGaussianModel) -> str:
    """One line for x, theta, every likelihood and whatever stays outside."""
    structure, space = read.structure, read.structure.space
    lines = ["LatentGaussianModel"]
    lines += _block("integrated out", [_variable(read, v) for v in structure.members])
    lines += _block("sampled (theta)", [_variable(read, v) for v in structure.theta] or ["none"])
    lines += _block("observed", _observed(read))
    lines += _block("drawn afterwards", [str(rv.name) for rv in space.unobserved])
    reasons = structure.membership.left_out
    lines += _block(
        "Gaussian, yet in theta", [f"{space.names[v]}: {why}" for v, why in reasons.items()]
    )
    return "\n".join(lines)


def _block(title: str, entries: list[str]) -> list[str]:
    return [f"  {title if k == 0 else '':<24}{entry}" for k, entry in enumerate(entries)]


def _variable(read: LatentGaussianModel, variable: TensorVariable) -> str:
    space = read.structure.space
    (rv,) = [rv for rv, v in space.variables.items() if v is variable]
    shape = np.shape(space.start[str(variable.name)])
    transform = read.model.rvs_to_transforms[rv]
    scale = f" [{transform.name}]" if transform is not None else ""
    size = f" {shape}" if shape else ""
    return f"{rv.name}{size} ~ {distribution_name(rv) if is_random(rv) else '?'}{scale}"


def _observed(read: LatentGaussianModel) -> list[str]:
    structure = read.structure
    names = structure.space.names
    entries = []
    below = {f.name: f for f in structure.membership.factors}
    for factor in structure.space.factors:
        kind = "Potential" if factor.rv is None else distribution_name(factor.rv)
        if factor.name not in below:
            entries.append(f"{factor.name} ~ {kind}, of theta alone")
        else:
            entries.append(f"{factor.name} ~ {kind}, {_how(structure, factor.name)}")
    for factor in below.values():
        if factor.kind == "free":
            entries.append(f"{factor.name} of theta, {_how(structure, factor.name)}")
    return entries if entries else [", ".join(names.values())]


def _how(structure: Structure, name: str) -> str:
    """How something below x depends on it."""
    terms = structure.terms
    if terms is None or name not in terms.predictors:
        return "Gaussian: part of the prior of x"
    position = [f.name for f in terms.factors].index(name)
    start, end = (0, *terms.ends)[position], terms.ends[position]
    count = int(terms.counts[start:end].max(initial=0))
    number = "one linear predictor" if count <= 1 else f"{count} linear predictors"
    return f"{end - start} terms with {number} each"
