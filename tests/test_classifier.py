"""`GPClassifier` as scikit-learn expects it, and as PyMC samples it."""

import pickle
import sys

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import pymc_pseudomarginal as pmpm

SHORT = {"draws": 15, "tune": 10, "chains": 1, "cores": 1, "n_importance": 4, "random_state": 1}


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Behaviour is wanted here, not speed."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def data(n=40):
    """Two features of very different scales, of which the first tells the classes apart."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2)) * [1.0, 100.0]
    return X, np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    X, y = data()
    classifier = pmpm.GPClassifier(ard=True, **SHORT | {"draws": 60, "tune": 60})
    return classifier.fit(X / [1.0, 100.0], y)


# No check is expected to fail. One is skipped where SciPy's array API is not switched on.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([pmpm.GPClassifier(**SHORT)])
def test_estimator_checks(estimator, check):
    check(estimator)


def test_probabilities_are_those_of_predict(fitted):
    X_new = np.random.default_rng(1).standard_normal((7, 2))
    p = fitted.predict_proba(X_new)
    exact = pmpm.predict(fitted.idata_, fitted.gp_, X_new, model=fitted.model_, progressbar=False)
    np.testing.assert_allclose(p[:, 1], exact["p"].mean(("chain", "draw")), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.predict(X_new), np.where(p[:, 1] > 0.5, "yes", "no"))


def test_it_learns_and_shows_its_draws(fitted):
    X, y = data()
    assert fitted.score(X / [1.0, 100.0], y) > 0.85
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.idata_["posterior"]["ls"].shape == (1, 60, 2)
    assert float(fitted.idata_["sample_stats"]["pm_failed"].sum()) == 0
    assert pmpm.read_model(fitted.model_).split()["theta"] == {"ls", "sigma"}


def test_rows_go_in_blocks(fitted, monkeypatch):
    X_new = np.random.default_rng(1).standard_normal((7, 2))
    whole = fitted.predict_proba(X_new)
    threes = [fitted.predict_proba(X_new[i : i + 3]) for i in (0, 3, 6)]
    monkeypatch.setattr("pymc_pseudomarginal.classifier._NUMBERS_AT_ONCE", 3 * 60)
    in_blocks = fitted.predict_proba(X_new)
    np.testing.assert_array_equal(in_blocks, np.concatenate(threes))
    # A triangular solve rounds differently with other columns beside it, and the covariance
    # here, of condition numbers about 1e8, may make 1e-8 of a rounding error of 1e-16.
    np.testing.assert_allclose(in_blocks, whole, rtol=0.0, atol=1e-9)


def test_a_pickle_predicts_the_same(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    X_new = np.zeros((1, 2))
    np.testing.assert_allclose(again.predict_proba(X_new), fitted.predict_proba(X_new), rtol=1e-12)


def test_it_works_in_a_pipeline_and_in_cross_validation():
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipeline = make_pipeline(StandardScaler(), pmpm.GPClassifier(**SHORT))
    scores = cross_val_score(pipeline, frame, y, cv=2)
    assert (scores > 0.6).all()
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()


def rough_covariance(n_features):
    scale = pm.HalfNormal("scale", 2.0)
    return scale**2 * pm.gp.cov.Matern32(n_features, ls=pm.LogNormal("roughness", 0.0, 1.0))


def test_kernel_and_priors_can_be_given():
    X, y = data(20)
    classifier = pmpm.GPClassifier(rough_covariance, **SHORT).fit(X, y)
    assert {"scale", "roughness", "f"} < set(classifier.idata_["posterior"].data_vars)
    with pytest.raises(ValueError, match="ard=True belongs to the default kernel"):
        clone(classifier).set_params(ard=True).fit(X, y)


def test_chains_that_disagree_are_reported():
    X, y = data(20)
    classifier = pmpm.GPClassifier(**SHORT | {"chains": 2, "draws": 8, "tune": 0})
    with pytest.warns(ConvergenceWarning, match=r"R-hat: .*Increase draws="):
        classifier.fit(X, y)


def test_bad_input():
    X, y = data(20)
    with pytest.raises(ValueError, match="one class only, yes"):
        pmpm.GPClassifier(**SHORT).fit(X, np.full(20, "yes"))
    with pytest.raises(ValueError, match=r"multiclass, with 3 classes. Use OneVsRest"):
        pmpm.GPClassifier(**SHORT).fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="approximation"):
        pmpm.GPClassifier(**SHORT | {"approximation": "vb"}).fit(X, y)
    with pytest.raises(NotFittedError):
        pmpm.GPClassifier().predict_proba(X)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "pymc_pseudomarginal.classifier")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match=r"pip install \"pymc_pseudomarginal\[sklearn\]\""):
        pmpm.GPClassifier  # noqa: B018
