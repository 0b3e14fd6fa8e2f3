"""The vectorised exponential against NumPy's, and where it is put."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors

from pymc_pseudomarginal.model.exponential import (
    VectorisedExp,
    vectorised_exp,
    with_vectorised_exp,
)


@pytest.fixture(scope="module", params=["NUMBA", "FAST_COMPILE"])
def exponential(request):
    """As Numba compiles it, and as NumPy does it."""
    x = pt.dmatrix("x")
    return pytensor.function([x], vectorised_exp(x), mode=request.param)


@pytest.mark.parametrize("span", [1.0, 30.0, 700.0])
def test_it_is_accurate_to_the_last_digit(exponential, span):
    x = np.random.default_rng(0).uniform(-span, span, (200, 200))
    np.testing.assert_array_max_ulp(exponential(x), np.exp(x), maxulp=2)


def test_its_ends_are_those_of_numpy(exponential):
    x = np.array([[0.0, -1e-300, -708.0, -740.0, -745.1, -746.5, -1e300, -np.inf, np.nan]])
    np.testing.assert_allclose(exponential(x), np.exp(x), rtol=1e-15)
    high = np.array([[709.0, 709.7, 709.9, 1e300, np.inf]])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(exponential(high), np.exp(high), rtol=1e-15)


def names(graph):
    return [type(node.owner.op) for node in ancestors([graph]) if node.owner]


def test_matrices_of_a_covariance_are_computed_with_it():
    X = np.random.default_rng(1).standard_normal((6, 2))
    log_ls = pt.dvector("log_ls")
    graphs = {
        name: cov(2, ls=pt.exp(log_ls))(X)
        for name, cov in (("ExpQuad", pm.gp.cov.ExpQuad), ("Matern52", pm.gp.cov.Matern52))
    }
    for K in graphs.values():
        (faster,) = with_vectorised_exp([K])
        assert names(faster).count(VectorisedExp) == 1  # and not that of the length-scales
        values = [pytensor.function([log_ls], graph)([0.1, -0.4]) for graph in (K, faster)]
        np.testing.assert_allclose(*values, rtol=1e-14)


def test_a_graph_without_one_stays():
    K = pt.dmatrix("K")
    assert with_vectorised_exp([K]) == [K]


def test_it_takes_the_place_of_what_nobody_needs_any_more():
    x = pt.dmatrix("x")
    value = np.array([[0.5, -2.0], [1.0, 3.0]])
    given, temporary, both = (
        pytensor.function([x], graph)
        for graph in (vectorised_exp(x), vectorised_exp(2.0 * x), vectorised_exp(2.0 * x) + 2.0 * x)
    )
    before = value.copy()
    np.testing.assert_allclose(given(value), np.exp(before))
    np.testing.assert_allclose(temporary(value), np.exp(2.0 * before))
    np.testing.assert_allclose(both(value), np.exp(2.0 * before) + 2.0 * before)
    np.testing.assert_array_equal(value, before)  # an argument is not overwritten
    used = [node.op for node in temporary.maker.fgraph.toposort()]
    assert VectorisedExp(inplace=True) in used
