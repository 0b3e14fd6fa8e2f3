"""Factors of P = Q + A'WA: exact, and the same in dense and in sparse form."""

import numpy as np
import pytest
from linalg.latent_problems import (
    crossed_design,
    gaussian_prior,
    lattice,
    random_walk,
    structures,
)
from scipy.sparse import csc_array, csr_array, diags_array, eye_array

from pymc_pseudomarginal.linalg.curvature import CurvatureForm
from pymc_pseudomarginal.linalg.dense_factor import DenseForm
from pymc_pseudomarginal.linalg.factor import SparseWithRows, plan
from pymc_pseudomarginal.linalg.latent import GaussianPrior, Predictor
from pymc_pseudomarginal.linalg.low_rank import LowRankFactor
from pymc_pseudomarginal.numerics.errors import NotPositiveDefinite

STRUCTURES = structures()
SPARSE = [name for name in STRUCTURES if name != "dense design"]
# Rounding: condition numbers here are below 1e4.
CLOSE = {"rtol": 1e-10, "atol": 1e-11}


def full(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def weighted_case(name, blocks):
    """(prior, predictor, curvature form, weights, P) with random weights."""
    prior, predictor = STRUCTURES[name]
    rng = np.random.default_rng(5)
    m = predictor.size
    if blocks:
        # Pairs (0, 1), (2, 3), ...: an odd last one stays alone.
        halves = rng.standard_normal((m, m)) * (np.arange(m)[:, None] // 2 == np.arange(m) // 2)
        curvature = csr_array(halves @ halves.T)
    else:
        curvature = rng.uniform(0.1, 2.0, m)
    form = CurvatureForm(curvature)
    weights = form.weights(curvature)
    W = np.diag(curvature) if not blocks else curvature.toarray()
    A = full(predictor.matrix)
    P = prior.precision.toarray() + A.T @ W @ A
    if prior.rows is not None:
        P += prior.rows.T @ prior.row_weights @ prior.rows
    return prior, predictor, form, weights, P


def factor_of(kind, case):
    prior, predictor, form, weights, _ = case
    made = DenseForm(predictor) if kind == "dense" else SparseWithRows(prior, predictor, form)
    return made.factor(prior, predictor, weights)


CASES = [("dense", name) for name in STRUCTURES] + [("sparse", name) for name in SPARSE]


@pytest.mark.parametrize("blocks", [False, True], ids=["diagonal", "pairs"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_factor_is_a_root_of_the_inverse(kind, name, blocks):
    case = weighted_case(name, blocks)
    P, predictor = case[-1], case[1]
    factor = factor_of(kind, case)
    n = len(P)
    T = factor.colour(np.eye(n)).T
    inverse = np.linalg.inv(P)
    np.testing.assert_allclose(T @ T.T, inverse, **CLOSE)
    rng = np.random.default_rng(1)
    u, g = rng.standard_normal((2, n))
    np.testing.assert_allclose(factor.colour(u), T @ u, **CLOSE)
    np.testing.assert_allclose(factor.colour_back(g), T.T @ g, **CLOSE)
    np.testing.assert_allclose(factor.whiten(factor.colour(u)), u, **CLOSE)
    np.testing.assert_allclose(factor.solve(g), inverse @ g, **CLOSE)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(P)[1], rtol=1e-11)
    A = full(predictor.matrix)
    variances = np.einsum("ij,jk,ik->i", A, inverse, A)
    np.testing.assert_allclose(factor.predictor_variances(predictor), variances, **CLOSE)


def test_the_check_of_roots_sees_a_wrong_order():
    case = weighted_case("lattice", False)
    factor = factor_of("sparse", case)
    factor._order = factor._order[::-1]
    T = factor.colour(np.eye(len(case[-1]))).T
    assert not np.allclose(T @ T.T, np.linalg.inv(case[-1]), **CLOSE)


def test_arguments_are_left_as_they_were():
    for kind, name in CASES:
        case = weighted_case(name, False)
        factor = factor_of(kind, case)
        u = np.random.default_rng(0).standard_normal(len(case[-1]))
        kept = u.copy()
        for method in (factor.colour, factor.colour_back, factor.whiten, factor.solve):
            method(u)
        factor.predictor_variances(case[1])
        before = factor.colour(u)
        np.testing.assert_array_equal(u, kept)
        np.testing.assert_array_equal(factor.colour(u), before)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("prior", ["flat", "intrinsic"])
def test_a_singular_precision_is_refused(kind, prior):
    if prior == "flat":
        Q = csc_array(diags_array(np.zeros(64)))
        # Stored zeros, as a reader gives them.
        Q = csc_array((np.zeros(64), np.arange(64), np.arange(65)), shape=(64, 64))
    else:
        Q = lattice(8, proper=False)
    given = gaussian_prior(Q, np.random.default_rng(0))
    predictor = Predictor(csr_array(eye_array(64)), np.zeros(64))
    form = CurvatureForm(np.ones(64))
    case = (given, predictor, form, form.of_diagonal(np.zeros(64)), None)
    with pytest.raises(NotPositiveDefinite):
        factor_of(kind, case)


def test_rows_that_alone_make_the_precision_definite_are_added_in_dense_form():
    rng = np.random.default_rng(0)
    rows, weights = np.ones((1, 64)), np.array([[3.0]])
    prior = gaussian_prior(lattice(8, proper=False), rng, rows, weights)
    predictor = Predictor(csr_array(eye_array(64)), np.zeros(64))
    form = CurvatureForm(np.ones(64))
    P = prior.precision.toarray() + 3.0 * rows.T @ rows
    case = (prior, predictor, form, form.of_diagonal(np.zeros(64)), P)
    factor = factor_of("sparse", case)
    assert not isinstance(factor, LowRankFactor)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(P)[1], rtol=1e-10)


def test_rows_of_negative_weight_that_break_definiteness_are_refused():
    rng = np.random.default_rng(0)
    prior = gaussian_prior(lattice(8), rng, np.ones((1, 64)), np.array([[-10.0]]))
    predictor = Predictor(csr_array(eye_array(64)), np.zeros(64))
    form = CurvatureForm(np.ones(64))
    case = (prior, predictor, form, form.of_diagonal(np.ones(64)), None)
    with pytest.raises(NotPositiveDefinite):
        factor_of("sparse", case)


def test_a_pattern_that_changes_is_an_error_not_a_wrong_factor():
    prior, predictor = STRUCTURES["walk"]
    form = CurvatureForm(np.ones(60))
    sparse = SparseWithRows(prior, predictor, form)
    other = gaussian_prior(csc_array(eye_array(60)), np.random.default_rng(0))
    with pytest.raises(ValueError, match="pattern"):
        sparse.factor(other, predictor, form.of_diagonal(np.ones(60)))


@pytest.mark.parametrize(
    ("Q", "A", "kind"),
    [
        (random_walk(300), csr_array(eye_array(300)), SparseWithRows),
        (lattice(15), csr_array(eye_array(225)), SparseWithRows),
        (random_walk(40), csr_array(eye_array(40)), DenseForm),
        (csc_array(np.eye(80)), np.ones((10, 80)), DenseForm),
        (csc_array(np.eye(80)), csr_array(np.ones((10, 80))), DenseForm),
    ],
    ids=["walk", "lattice", "small", "dense design", "full rows"],
)
def test_the_form_is_chosen_by_size_and_fill(Q, A, kind):
    prior = GaussianPrior(0.0, np.zeros(Q.shape[0]), Q)
    made = plan(prior, Predictor(A, np.zeros(A.shape[0])), np.ones(A.shape[0]))
    assert type(made.form) is kind


def test_a_larger_crossed_design_agrees_in_both_forms():
    rng = np.random.default_rng(3)
    A = crossed_design(rng, 900, (200, 80))
    prior = gaussian_prior(csc_array(eye_array(A.shape[1])), rng)
    predictor = Predictor(A, np.zeros(900))
    form = CurvatureForm(np.ones(900))
    weights = form.of_diagonal(rng.uniform(0.0, 3.0, 900))
    case = (prior, predictor, form, weights, None)
    dense, sparse = factor_of("dense", case), factor_of("sparse", case)
    b = rng.standard_normal(A.shape[1])
    np.testing.assert_allclose(sparse.solve(b), dense.solve(b), **CLOSE)
    np.testing.assert_allclose(sparse.log_determinant, dense.log_determinant, rtol=1e-12)


@pytest.mark.parametrize("triangle", [slice(0, 30), slice(3, 33), slice(2, 32)])
def test_a_triangular_block_of_columns_is_no_different(triangle):
    """A Cholesky factor beside a few other columns: the faster product has the same factor."""
    rng = np.random.default_rng(8)
    m, n = 30, 30 + (triangle.start and 5)
    A = rng.standard_normal((m, n))
    A[:, triangle] = np.tril(A[:, triangle])
    prior = gaussian_prior(csc_array(eye_array(n)), rng)
    weights = CurvatureForm(np.ones(m)).weights(rng.uniform(0.0, 2.0, m))
    b, u = rng.standard_normal((2, n))
    plain = Predictor(A, np.zeros(m))
    marked = Predictor(A, np.zeros(m), triangle)
    expected = DenseForm(plain).factor(prior, plain, weights)
    found = DenseForm(marked).factor(prior, marked, weights)
    for method, argument in (("solve", b), ("colour", u), ("colour_back", b), ("whiten", b)):
        np.testing.assert_allclose(
            getattr(found, method)(argument), getattr(expected, method)(argument), **CLOSE
        )
    assert found.log_determinant == pytest.approx(expected.log_determinant, rel=1e-12)
    # The control: what is not triangular must not be marked so.
    A[0, triangle.stop - 1] = 0.3
    wrong = DenseForm(marked).factor(prior, marked, weights)
    right = DenseForm(plain).factor(prior, plain, weights)
    assert not np.allclose(wrong.solve(b), right.solve(b), rtol=1e-3)
