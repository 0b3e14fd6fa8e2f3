"""Readings that were broken on purpose: the checks must see them."""

import dataclasses

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import shelf_constructions  # noqa: F401
import shelf_look_alikes  # noqa: F401
import shelf_structures  # noqa: F401
from model_shelf import SHELF, N, X, read_case
from own_densities import identity_errors
from scipy.sparse import csr_array, eye_array

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.reading import affinity, patterns, read_model, reader
from pymc_pseudomarginal.reading.latent_gaussian_model import LatentGaussianModel
from pymc_pseudomarginal.reading.structure import take_apart
from pymc_pseudomarginal.reading.terms import find_coupled
from pymc_pseudomarginal.reading.value_space import to_value_space


class Broken(LatentGaussianModel):
    """A reading whose parts are changed before they are used."""

    def __init__(self, read, change):
        super().__init__(read.structure, interpreted=True)
        self.change = change

    def at(self, theta):
        return self.change(super().at(theta))

    def interpreted(self):
        return self


def without_normaliser(at):
    Q = at.prior.precision.toarray()
    constant = at.prior.constant - 0.5 * np.linalg.slogdet(Q)[1]
    return dataclasses.replace(at, prior=dataclasses.replace(at.prior, constant=constant))


def with_rows_exchanged(at):
    matrix = csr_array(at.predictor.matrix).toarray()
    matrix[[0, 1]] = matrix[[1, 0]]
    return dataclasses.replace(at, predictor=dataclasses.replace(at.predictor, matrix=matrix))


def with_another_offset(at):
    offset = at.predictor.offset + 0.01
    return dataclasses.replace(at, predictor=dataclasses.replace(at.predictor, offset=offset))


CHANGES = [without_normaliser, with_rows_exchanged, with_another_offset]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", ["three_levels", "walk_with_drift"])
def test_identity_sees_a_broken_part(name, change):
    read = read_case(name)
    assert identity_errors(read).max() < 1e-10
    assert identity_errors(Broken(read, change)).max() > 1e-4


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_reader_refuses_what_it_broke(monkeypatch, change):
    space = to_value_space(SHELF["three_levels"].model())
    read = LatentGaussianModel(take_apart(space))
    reader._check_identity(read, space)
    with pytest.raises(UnsupportedModelError, match="not the sum of the parts"):
        reader._check_identity(Broken(read, change), space)


# What theta switches on far away, and what three thetas would have said of it.
FROZEN = ["hinge_at_an_unknown_place", "penalty_that_is_off_at_the_start"]


@pytest.mark.parametrize("name", FROZEN)
def test_identity_sees_slopes_that_were_frozen(monkeypatch, name):
    monkeypatch.setattr(patterns, "slope_moves", lambda *_: False)
    read = LatentGaussianModel(take_apart(to_value_space(SHELF[name].model()))).interpreted()
    assert identity_errors(read, scales=(3.0,), tries=8).max() > 1e-4


def test_numbers_alone_are_fooled_by_a_bend_far_away(monkeypatch):
    case = SHELF["softplus_far_from_its_bend"]
    assert read_model(case.model()).structure.terms.counts.max() == 2

    def every_degree_is_one(nodes, variables, values):
        found = {v: np.ones(()) for v in variables}
        for node in nodes:
            if any(i in found for i in node.inputs):
                found.update(dict.fromkeys(node.outputs, np.ones(())))
        return found

    monkeypatch.setattr(affinity, "degrees", every_degree_is_one)
    terms = take_apart(to_value_space(case.model())).terms
    assert terms.counts.max() == 1


def test_coupling_is_seen_where_the_curvature_is_zero():
    with pm.Model() as model:
        eta = X @ pm.Normal("b", shape=2)
        pm.Potential("y", -pt.maximum(eta[1:], eta[:-1]))
    structure = take_apart(to_value_space(model))
    terms, trials = structure.terms, structure.space.trials
    assert (terms.counts == 2).all()
    assert find_coupled(terms, trials) is None
    # The Hessian of these terms is zero: it does not tell which predictors meet in one.
    at = LatentGaussianModel(structure, interpreted=True).at(np.zeros(0))
    curvature = at.likelihood.derivatives(np.random.default_rng(0).normal(size=N)).curvature
    assert not curvature.data.any()
    # Were every term taken to have the first of its predictors alone, it would be noticed.
    alone = csr_array(eye_array(*terms.groups.shape, dtype=bool))
    wrong = dataclasses.replace(terms, groups=alone)
    assert find_coupled(wrong, trials).name == "y"
