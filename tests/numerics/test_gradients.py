"""One inversion for the gradients, against NumPy's; the formulas are checked in tests/model."""

import numpy as np
import pytest
from problems import probit_problem

from pymc_pseudomarginal.numerics import DensePrior
from pymc_pseudomarginal.numerics.triangles import symmetric_combination


@pytest.mark.parametrize("n", [6, 70])  # beyond a block, and beyond what LAPACK inverts at once
def test_a_symmetric_combination_in_one_pass(n):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, n))
    A = A + A.T
    scale, u, v = rng.standard_normal((3, n))
    lower = np.asfortranarray(np.tril(A) + np.triu(np.full((n, n), np.nan), 1))
    found = symmetric_combination(lower, scale, -0.5, u, v)
    expected = -0.5 * np.outer(scale, scale) * A + np.outer(u, v) + np.outer(v, u)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("tiny", [0.0, 1e-13])
def test_an_inversion_gives_the_marginals_as_well(tiny):
    m, K, _, _ = probit_problem(90, seed=3)
    prior = DensePrior(m, K)
    W = np.random.default_rng(1).uniform(0.1, 2.0, 90)
    W[::7] = tiny
    factor = prior.condition(W)
    variances, diagonal = factor.marginals()
    before = prior.cubic_operations
    inverse = factor.invert()
    assert prior.cubic_operations == before + 1
    B = np.eye(90) + np.sqrt(np.outer(W, W)) * K
    np.testing.assert_allclose(np.tril(inverse.lower), np.tril(np.linalg.inv(B)), atol=1e-12)
    np.testing.assert_allclose(inverse.variances, variances, rtol=1e-9)
    np.testing.assert_allclose(inverse.diagonal, diagonal, rtol=1e-12)
