"""A + s I without the identity is the same matrix."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Eye

from pymc_pseudomarginal.model.diagonal import without_identity
from pymc_pseudomarginal.model.graph import INTERPRETED

A = pt.matrix("A", shape=(3, 3))
s = pt.scalar("s")


def makes_an_identity(graph):
    return any(v.owner is not None and isinstance(v.owner.op, Eye) for v in ancestors([graph]))


def value(graph):
    function = pytensor.function([A, s], graph, mode=INTERPRETED, on_unused_input="ignore")
    return function(np.arange(9.0).reshape(3, 3), 0.25)


@pytest.mark.parametrize(
    "graph",
    [A + s * pt.eye(3), pt.eye(3) * s + A, A + pt.eye(3), A + 1e-6 * pt.eye(A.shape[0])],
    ids=["scaled", "in the other order", "plain", "constant scale"],
)
def test_a_scaled_identity_becomes_a_sum_on_the_diagonal(graph):
    found = without_identity(graph)
    assert not makes_an_identity(found)
    np.testing.assert_array_equal(value(found), value(graph))


@pytest.mark.parametrize(
    "graph",
    [A, A * pt.eye(3), A + s * pt.eye(3, k=1), A + pt.arange(3.0) * pt.eye(3), A + A],
    ids=["none", "a product", "off the diagonal", "a vector of scales", "another sum"],
)
def test_anything_else_is_left_as_it_is(graph):
    assert without_identity(graph) is graph
