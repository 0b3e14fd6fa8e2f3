"""The weights W are the positive semi-definite part of the curvature."""

import numpy as np
import pytest
from linalg.latent_problems import HeteroskedasticNormal, Softmax
from scipy.sparse import block_diag, csr_array

from pymc_pseudomarginal.linalg.curvature import MAX_BLOCK, CurvatureForm
from pymc_pseudomarginal.numerics.errors import NumericalFailure


def as_matrix(weights):
    m = len(weights.indptr) - 1
    return csr_array((weights.data, weights.indices, weights.indptr), shape=(m, m)).toarray()


def positive_part(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def projected(curvature):
    return as_matrix(CurvatureForm(curvature).weights(curvature))


def test_a_diagonal_is_clipped_at_zero():
    np.testing.assert_array_equal(
        projected(np.array([1.0, -2.0, 0.0, 3.0])), np.diag([1.0, 0.0, 0.0, 3.0])
    )


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_projected_one_by_one(seed):
    rng = np.random.default_rng(seed)
    blocks = [rng.standard_normal((k, k)) for k in (1, 2, 2, 3, 5, 3, 1, 4)]
    whole = block_diag([csr_array(b + b.T) for b in blocks]).toarray()
    shuffle = rng.permutation(len(whole))
    whole = whole[np.ix_(shuffle, shuffle)]
    np.testing.assert_allclose(projected(csr_array(whole)), positive_part(whole), atol=1e-13)


def test_a_component_with_missing_entries_is_filled():
    chain = csr_array(np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 2.0], [0.0, 2.0, 1.0]]))
    np.testing.assert_allclose(projected(chain), positive_part(chain.toarray()), atol=1e-14)


def test_semi_definite_blocks_stay_as_they_are():
    likelihood = Softmax(np.array([0, 2, 1, 1]))
    eta = np.random.default_rng(0).standard_normal(12)
    curvature = likelihood.derivatives(eta).curvature
    np.testing.assert_array_equal(projected(curvature), curvature.toarray())


def test_two_predictors_that_are_not_log_concave_become_so():
    rng = np.random.default_rng(0)
    likelihood = HeteroskedasticNormal(rng.standard_normal(30))
    curvature = likelihood.derivatives(rng.standard_normal(60)).curvature
    assert np.linalg.eigvalsh(curvature.toarray()).min() < -0.1
    found = projected(curvature)
    np.testing.assert_allclose(found, positive_part(curvature.toarray()), atol=1e-12)


def test_a_large_component_is_made_to_dominate():
    m = MAX_BLOCK + 10
    rng = np.random.default_rng(0)
    path = np.diag(rng.standard_normal(m)) + np.diag(rng.standard_normal(m - 1), 1)
    whole = path + path.T
    found = projected(csr_array(whole))
    assert np.linalg.eigvalsh(found).min() > -1e-12
    off = ~np.eye(m, dtype=bool)
    np.testing.assert_array_equal(found[off], whole[off])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_a_failure(bad):
    curvature = np.array([1.0, bad])
    with pytest.raises(NumericalFailure):
        CurvatureForm(curvature).weights(curvature)


def test_products_with_weights():
    rng = np.random.default_rng(0)
    blocks = csr_array(np.kron(np.eye(4), np.array([[2.0, 1.0], [1.0, 3.0]])))
    for curvature in (rng.uniform(size=8), blocks):
        weights = CurvatureForm(curvature).weights(curvature)
        W, E = as_matrix(weights), rng.standard_normal((5, 8))
        np.testing.assert_allclose(weights.times(E[0]), W @ E[0], rtol=1e-13)
        np.testing.assert_allclose(
            weights.quadratic_forms(E), np.einsum("ki,ij,kj->k", E, W, E), rtol=1e-13
        )
