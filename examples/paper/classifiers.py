"""The four classifiers that the paper compares: a support vector machine and three GP classifiers.

Each is a function ``(X, y, X_new, seed, settings)`` of training inputs of shape (n, d), labels 0
and 1 of shape (n,), new inputs of shape (n_new, d), a seed, and a mapping with the lengths of
chains; and returns predictive probabilities of label 1, shape (n_new,).

The GP classifiers share model and priors. The paper states no prior for its comparison of
classifiers: the one that it has for its other real data is taken.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import pymc as pm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import pymc_pseudomarginal as pmpm
from examples.paper import models

CV_FOLDS = 5
COSTS = np.geomspace(0.1, 1000.0, 5)
WIDTHS = np.geomspace(0.01, 10.0, 7)
"""Of the kernel of the SVM, times the number of inputs, as squared distances grow with it."""


def svm(
    X: np.ndarray, y: np.ndarray, X_new: np.ndarray, seed: int, settings: Mapping
) -> np.ndarray:
    """A support vector machine with Platt's scaling, as LIBSVM has it.

    Cost and width of the kernel have the smallest cross-validated error; the first wins a tie,
    which is the smoothest.
    """
    splits = StratifiedKFold(CV_FOLDS, shuffle=True, random_state=seed)
    grid = {"C": COSTS, "gamma": WIDTHS / X.shape[1]}
    chosen = GridSearchCV(SVC(), grid, cv=splits, refit=False).fit(X, y).best_params_
    # What SVC(probability=True) did before scikit-learn deprecated it.
    scaled = CalibratedClassifierCV(SVC(**chosen), cv=splits, ensemble=False)
    return scaled.fit(X, y).predict_proba(X_new)[:, 1]


def ep_ml(
    X: np.ndarray, y: np.ndarray, X_new: np.ndarray, seed: int, settings: Mapping
) -> np.ndarray:
    """EP at the hyper-parameters that maximise its marginal likelihood."""
    model, gp = _model(X, y)
    with model, warnings.catch_warnings():
        # Few labels are often separable, which leaves sigma unbounded: the search ends where its
        # box does, and this is what type-II maximum likelihood has to say then.
        warnings.simplefilter("ignore", UserWarning)
        fit = pmpm.fit_marginal(approximation="ep", random_seed=seed, progressbar=False)
    found = pmpm.predict_approximately(fit, gp, X_new, model=model, progressbar=False)
    return found["p"].to_numpy()


def mcmc_ep(
    X: np.ndarray, y: np.ndarray, X_new: np.ndarray, seed: int, settings: Mapping
) -> np.ndarray:
    """EP at draws of the hyper-parameters from its approximate posterior."""
    model, gp = _model(X, y)
    with model:
        draws = _draws(pmpm.ApproximateMarginalMH(approximation="ep"), seed, settings)
    found = pmpm.predict_approximately(draws, gp, X_new, model=model, progressbar=False)
    return found["p"].mean(("chain", "draw")).to_numpy()


def pm_ep(
    X: np.ndarray, y: np.ndarray, X_new: np.ndarray, seed: int, settings: Mapping
) -> np.ndarray:
    """Draws of hyper-parameters and latent from their exact posterior."""
    model, gp = _model(X, y)
    with model:
        step = pmpm.PseudoMarginalMH(
            approximation="ep",
            n_importance=64,
            annealing=0,
            normals="independent",
            proposal="random-walk",
            refresh=True,
        )
        draws = _draws(step, seed, settings)
    found = pmpm.predict(draws, gp, X_new, model=model, progressbar=False)
    return found["p"].mean(("chain", "draw")).to_numpy()


CLASSIFIERS: dict[str, Callable[..., np.ndarray]] = {
    "SVM": svm,
    "EP ML": ep_ml,
    "MCMC EP": mcmc_ep,
    "PM EP (64)": pm_ep,
}
"""By their names in the paper."""


def predict_fold(
    dataset: str,
    size: int,
    chain: Mapping,
    *,
    seed: int,
    X: np.ndarray | None = None,
    y: np.ndarray | None = None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Train all classifiers on `size` random rows, half of each class, and predict the others.

    Parameters
    ----------
    dataset : str
        Loaded by its name unless X and y are given.
    size : int
        Number of training rows.
    chain : dict
        Lengths of the chains: ``tune``, ``draws``, and ``predictive_draws``, which are those that
        predictions are made from.
    seed : int
        Of the training set, the splits of the cross-validation, and the chains.
    X : array, shape (rows, d), optional
    y : array, shape (rows,), optional

    Returns
    -------
    labels : array, shape (rows - size,)
        Of the test set.
    probabilities : dict
        Of label 1, by the name of the classifier; the shape of the labels.
    """
    if X is None:
        data = pmpm.datasets.load(dataset, standardise=True)
        X, y = data.X, data.y
    rng = np.random.default_rng(seed)
    halves = [rng.choice(np.flatnonzero(y == label), size // 2, replace=False) for label in (0, 1)]
    training = np.concatenate(halves)
    test = np.setdiff1d(np.arange(len(y)), training)
    return y[test], {
        name: classify(X[training], y[training], X[test], int(rng.integers(2**31)), chain)
        for name, classify in CLASSIFIERS.items()
    }


def _draws(step, seed: int, settings: Mapping) -> object:
    """Inference data of one chain, thinned to the draws that predictions are made from."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        idata = pm.sample(
            settings["draws"],
            tune=settings["tune"],
            step=step,
            chains=1,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return idata.sel(draw=slice(None, None, settings["draws"] // settings["predictive_draws"]))


def _model(X: np.ndarray, y: np.ndarray) -> tuple[pm.Model, pm.gp.Latent]:
    model, gp = _model_of_size(*X.shape)
    model.set_data("X", X)
    model.set_data("labels", y)
    return model, gp


@lru_cache(maxsize=1)
def _model_of_size(n: int, d: int) -> tuple[pm.Model, pm.gp.Latent]:
    # Kept for the next classifier and fold: what predictions compile is kept with the model, and
    # takes as long as a chain does.
    return models.gp_probit(np.zeros((n, d)), np.arange(n) % 2, prior=models.REAL_PRIOR)
