"""Rules for single Ops: patterns, degrees, zeros and plainer forms, each against numbers."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from scipy.sparse import csr_array, eye_array

from pymc_pseudomarginal.model.graph import INTERPRETED
from pymc_pseudomarginal.reading.affinity import find_affine
from pymc_pseudomarginal.reading.graphs import simplified, summands
from pymc_pseudomarginal.reading.interpreter import Interpreter
from pymc_pseudomarginal.reading.patterns import propagate
from pymc_pseudomarginal.reading.polynomials import degrees
from pymc_pseudomarginal.reading.zeros import may_be_nonzero

x, t = pt.vector("x", shape=(6,)), pt.scalar("t")
INDEX = np.array([2, 0, 2, 5])
MASK = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0])
MATRIX = np.arange(24.0).reshape(4, 6) % 3
POINTS = [{"x": np.zeros(6), "t": np.array(value)} for value in (0.3, -0.7)]


def affinity_of(graph):
    (graph,) = simplified([graph])
    interpreter = Interpreter([graph], [x, t])
    return graph, find_affine(interpreter, [x], POINTS, np.random.default_rng(0))


def evaluate(graph, at_x, at_t):
    function = pytensor.function([x, t], graph, mode=INTERPRETED, on_unused_input="ignore")
    return np.asarray(function(np.asarray(at_x, dtype=float), np.asarray(at_t, dtype=float)))


# Linear in x; whether a slope moves with t; the pattern is exactly that of the Jacobian.
LINEAR = {
    "indices": (x[INDEX] - 2 * x[:4], False),
    "set": (pt.set_subtensor(pt.zeros(8)[2:], x), False),
    "set by indices": (pt.set_subtensor(x[np.array([1, 3])], 7.0), False),
    "increased": (pt.inc_subtensor(x[INDEX], x[:4]), False),
    "joined": (pt.concatenate([x[:2], pt.ones(2), -x[4:]]), False),
    "stacked": (pt.stack([x[0], t, x[3]]), False),
    "reshaped": (x.reshape((2, 3)).T.flatten(), False),
    "reversed and rolled": (pt.roll(x[::-1], 2), False),
    "repeated": (pt.repeat(x, 2), False),
    "cumulated": (pt.cumsum(x), False),
    "cumulated and scaled": (pt.cumsum(t * x), True),
    "summed along an axis": (x.reshape((2, 3)).sum(axis=0), False),
    "product with data": (pt.dot(MATRIX, x), False),
    "products in batches": (pt.matmul(MATRIX.reshape(2, 2, 6), x), False),
    "mixture of both": (pt.concatenate([t * x[:3], x[3:]]), True),
    "hidden by data": (x * MASK, False),
    "chosen by data": (pt.where(MASK > 0, x, x[::-1]), False),
    "einsum": (pt.einsum("ij,j->i", MATRIX, x), False),
    "kronecker": (pt.linalg.kron(x[:2].reshape((2, 1)), np.eye(2)).flatten(), False),
    "difference": (pt.diff(x, n=2), False),
    "offset of theta": (x + pt.exp(t), False),
    "diagonal of theta": (pt.diag(t * MASK) @ x, True),
    "triangle": (pt.linalg.cholesky(pt.eye(6) * (1 + t**2)) @ x, True),
}


@pytest.mark.parametrize("name", LINEAR)
def test_pattern_is_that_of_the_jacobian(name):
    graph, moves = LINEAR[name]
    plain, affinity = affinity_of(graph)
    assert affinity.is_affine(plain)
    seeds = {x: csr_array(eye_array(6, dtype=bool, format="csr"))}
    found = propagate(affinity, seeds, affinity.is_affine, with_slopes=True)
    jacobians = [
        np.stack(
            [
                evaluate(graph, e, at).ravel() - evaluate(graph, 0 * e, at).ravel()
                for e in np.eye(6)
            ],
            axis=1,
        )
        for at in (0.3, 1.7, -0.4)
    ]
    seen = np.any([np.abs(J) > 1e-12 for J in jacobians], axis=0)
    pattern = found.of[plain].toarray()
    assert (pattern >= seen).all()
    if name != "triangle":  # the factor of a diagonal matrix is diagonal, which is not looked for
        np.testing.assert_array_equal(pattern, seen)
    varies = found.varying[plain].toarray() if plain in found.varying else np.zeros_like(pattern)
    assert varies.any() == moves
    assert (varies >= (np.ptp(jacobians, axis=0) > 1e-12)).all()


# What is no polynomial has an infinite degree, wherever it looks like one.
DEGREES = {
    "sum": (x.sum() + t, 1),
    "square": ((x - t) ** 2, 2),
    "product": (x * x[::-1], 2),
    "quadratic form": (x @ pt.dot(np.eye(6), x), 2),
    "cube": (x * x * x, 3),
    "power of theta": (x**t, np.inf),
    "quotient": (1.0 / (1e9 + x), np.inf),
    "quotient by theta": (x / t, 1),
    "softplus": (pt.softplus(100 + x), np.inf),
    "hyperbolic tangent": (pt.tanh(1e-9 * x), np.inf),
    "log of a sum of exponentials": (pt.logaddexp(x, -50.0), np.inf),
    "maximum": (pt.maximum(x, -1e6), np.inf),
    "comparison": (pt.switch(x > 1e6, 0.0, x), np.inf),
    "chosen by theta": (pt.switch(t > 0, x, 2 * x), 1),
    "solution": (pt.linalg.solve(np.eye(6) * (1 + t**2), x), 1),
    "system": (pt.linalg.solve(pt.diag(1e9 + x), np.ones(6)), np.inf),
    "shape alone": (pt.ones_like(x) * x.shape[0], 0),
    "element of a mixture": (pt.stack([pt.exp(x[0]), x[1]])[1], 1),
    "running product": (pt.cumprod(1e9 + x), np.inf),
    "log of an exponential": (pt.log(2.0 * pt.exp(x)), 1),
}


@pytest.mark.parametrize("name", DEGREES)
def test_degree_is_read_from_the_structure(name):
    graph, degree = DEGREES[name]
    (plain,) = simplified([graph])
    interpreter = Interpreter([plain], [x, t])
    found = degrees(interpreter.nodes, [x], interpreter(POINTS[0]))
    assert np.max(found.get(plain, 0.0)) == degree


ZEROS = {
    "lower triangle": (pt.linalg.cholesky(pt.eye(3) + t**2), np.tril(np.ones((3, 3)))),
    "diagonal": (pt.diag(t * MASK[:3]), np.diag(MASK[:3])),
    "chosen": (pt.switch(np.eye(3) > 0, pt.exp(t), 0.0), np.eye(3)),
    "sum": (t * np.eye(3) + np.eye(3, k=1), np.eye(3) + np.eye(3, k=1)),
    "set": (pt.set_subtensor(pt.zeros((2, 2))[1, 0], t), np.array([[0, 0], [1, 0]])),
    "vanishing here": (pt.exp(-1e6 * pt.ones(2) / t**2), np.ones(2)),
    "off here": (pt.maximum(t - 10.0, 0.0) * np.ones(2), np.ones(2)),
}


@pytest.mark.parametrize("name", ZEROS)
def test_only_zeros_that_theta_cannot_change_count(name):
    graph, mask = ZEROS[name]
    plain, affinity = affinity_of(pt.dot(graph, x[: mask.shape[-1]]))
    matrix = next(
        v
        for v in ancestors([plain])
        if v.owner is not None
        and v.owner.op == graph.owner.op
        and np.shape(Interpreter.value(v, affinity.values)) == mask.shape
    )
    np.testing.assert_array_equal(may_be_nonzero(matrix, affinity), mask > 0)


TOTALS = {
    "sum": ((x**4).sum(), 6),
    "sum of sums": ((x.reshape((2, 3)) ** 4).sum(axis=1).sum() + t, 7),
    "multiple": (-0.5 / t**2 * pt.sum((x - 1) ** 4), 6),
    "difference": ((x[:2] ** 4).sum() - pt.exp(x).sum(), 8),
    "weighted": (pt.dot(MASK, pt.exp(x)), 6),
    "mean": (pt.mean(pt.exp(x)), 6),
    "number": (pt.exp(t), 1),
    "vector": (pt.exp(x), 6),
}


@pytest.mark.parametrize("name", TOTALS)
def test_summands_sum_to_the_whole(name):
    graph, count = TOTALS[name]
    terms = summands(graph)
    values = [evaluate(term, MASK - 0.3, 0.7).ravel() for term in terms]
    assert sum(v.size for v in values) == count
    whole = evaluate(graph, MASK - 0.3, 0.7).sum()
    np.testing.assert_allclose(np.concatenate(values).sum(), whole, rtol=1e-13)


PLAINER = {
    "log of a multiple of an exponential": pt.log(3.0 * pt.exp(x)[INDEX] / 2.0),
    "checked": pytensor.raise_op.Assert("positive")(pt.exp(x), pt.all(x > -9)),
    "written out": pt.logaddexp(x, 2 * x),
    "product along an axis": pt.prod(x.reshape((2, 3)) + 2.0, axis=1),
}


@pytest.mark.parametrize("name", PLAINER)
def test_plainer_form_has_the_same_value(name):
    (plain,) = simplified([PLAINER[name]])
    expected = evaluate(PLAINER[name], MASK - 0.3, 0.7)
    np.testing.assert_allclose(evaluate(plain, MASK - 0.3, 0.7), expected, rtol=1e-14)
    assert "Assert" not in {type(v.owner.op).__name__ for v in ancestors([plain]) if v.owner}
