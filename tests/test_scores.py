"""Capacity scores against a slow reference written from the paper's words."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import pymc_pseudomarginal as pmpm


def reference(y, p):
    """(capacity accuracy, capacity AUC) with exact fractions and double loops.

    Parameters are labels and probabilities as fractions.
    """
    half = Fraction(1, 2)
    accuracy, auc = [], []
    for k in range(51):
        rho = Fraction(k, 100)
        kept = [(a, q) for a, q in zip(y, p, strict=True) if not half - rho < q < half + rho]
        left_out = 1 - Fraction(len(kept), len(y))
        if not kept:
            continue
        right = [half if q == half else Fraction((q > half) == (a == 1)) for a, q in kept]
        accuracy.append((left_out, sum(right) / len(right)))
        pairs = [(q, r) for a, q in kept if a == 1 for b, r in kept if b == 0]
        if pairs:
            won = sum(half if q == r else Fraction(q > r) for q, r in pairs)
            auc.append((left_out, won / len(pairs)))
    return float(area(accuracy)), float(area(auc))


def area(curve):
    total = Fraction(0)
    for (a, u), (b, v) in pairwise(curve):
        total += (b - a) * (u + v) / 2
    return total / curve[-1][0] if curve[-1][0] else curve[0][1]


def random_case(seed):
    """Labels and probabilities: coarse ones tie with each other and with the thresholds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    denominator = int(rng.choice([2, 10, 100, 997]))
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    numerators = rng.integers(0, denominator + 1, n)
    if seed % 3 == 0:  # a good classifier: confident and mostly right
        numerators = np.where(y == 1, denominator - numerators // 4, numerators // 4)
    return y.tolist(), [Fraction(int(k), denominator) for k in numerators]


@pytest.mark.parametrize("seed", range(60))
def test_scores_equal_the_reference(seed):
    y, p = random_case(seed)
    found = pmpm.capacity_scores(y, [float(q) for q in p])
    assert (found.accuracy, found.auc) == pytest.approx(reference(y, p), abs=1e-12)


ADVERSARIAL = {
    "all undecided": ([0, 1, 1], [0.5, 0.5, 0.5]),
    "certain and right": ([0, 1, 1], [0.0, 1.0, 1.0]),
    "certain and wrong": ([0, 1, 1], [1.0, 0.0, 0.0]),
    "one class is left": ([0, 0, 1, 1], [0.55, 0.45, 0.8, 0.9]),
    "on the thresholds": ([0, 1, 0, 1], [0.4, 0.6, 0.2, 0.7]),
    "two cases": ([0, 1], [0.3, 0.2]),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_inputs_equal_the_reference(name):
    y, p = ADVERSARIAL[name]
    exact = [Fraction(str(q)) for q in p]
    found = pmpm.capacity_scores(y, p)
    assert (found.accuracy, found.auc) == pytest.approx(reference(y, exact), abs=1e-12)


def test_curves_say_where_they_are_not_defined():
    curves = pmpm.capacity_scores(*ADVERSARIAL["one class is left"]).curves
    assert curves.sizes == {"rho": 51}
    assert float(curves["abstention"].sel(rho=0.0)) == 0.0
    assert int(curves["kept"].sel(rho=0.2)) == 2
    assert float(curves["accuracy"].sel(rho=0.2)) == 1.0
    assert np.isnan(curves["auc"].sel(rho=0.2))
    assert np.isnan(curves["accuracy"].sel(rho=0.5))


def test_repr_and_booleans():
    found = pmpm.capacity_scores(np.array([False, False, True, True]), [0.1, 0.6, 0.4, 0.9])
    assert repr(found) == "CapacityScores(accuracy=0.7500, auc=0.8750, abstention up to 100%)"


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1], [0.2, 1.2], "between 0 and 1; found 1.2"),
        ([0, 1], [0.2, np.nan], "between 0 and 1; found nan"),
        ([1, 1], [0.2, 0.3], "All 2 labels are 1"),
        ([-1, 1], [0.2, 0.3], "found the values -1, 1"),
        ([0, 1, 1], [0.2, 0.3], "same length"),
        ([], [], "same length"),
    ],
)
def test_bad_input_is_named(y, p, message):
    with pytest.raises(ValueError, match=message):
        pmpm.capacity_scores(y, p)
