"""Passes over one triangle agree with the full matrices of NumPy."""

import numpy as np
import pytest

from pymc_pseudomarginal.numerics.triangles import (
    invert_lower,
    lower_triangle,
    scaled_identity_plus,
)

SIZES = pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 150])


def symmetric(n):
    A = np.random.default_rng(n).standard_normal((n, n))
    return A @ A.T + n * np.eye(n)


@SIZES
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_lower_triangle_is_copied_and_the_rest_is_zero(n, order):
    A = np.array(symmetric(n), order=order)
    lower = lower_triangle(A)
    np.testing.assert_array_equal(lower, np.tril(A))
    assert lower.flags.f_contiguous
    assert not np.shares_memory(lower, A)


@SIZES
def test_the_scaled_matrix_plus_the_identity(n):
    A, scale = symmetric(n), np.random.default_rng(0).uniform(0.0, 2.0, n)
    lower = scaled_identity_plus(A, scale)
    expected = np.eye(n) + np.diag(scale) @ A @ np.diag(scale)
    np.testing.assert_allclose(lower, np.tril(expected), rtol=1e-13)
    assert lower.flags.f_contiguous


@SIZES
def test_the_inverse_of_a_triangular_matrix(n):
    L = np.asfortranarray(np.linalg.cholesky(symmetric(n)))
    inverse = invert_lower(L.copy(order="F"))
    np.testing.assert_allclose(inverse @ L, np.eye(n), atol=1e-12)
    np.testing.assert_array_equal(inverse, np.tril(inverse))


def test_the_inverse_takes_the_place_of_the_matrix():
    L = np.asfortranarray(np.linalg.cholesky(symmetric(70)))
    assert np.shares_memory(invert_lower(L), L)
