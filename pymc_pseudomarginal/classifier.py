"""`GPClassifier`: a scikit-learn classifier whose posterior is sampled exactly."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import arviz as az
import numpy as np
import pymc as pm

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "GPClassifier needs scikit-learn 1.6 or later. "
        'Install it with: pip install "pymc_pseudomarginal[sklearn]"'
    ) from error

from pymc_pseudomarginal.model.new_inputs import NewInputs
from pymc_pseudomarginal.model.reader import understand
from pymc_pseudomarginal.prediction.integration import Integration
from pymc_pseudomarginal.prediction.posterior import posterior_draws
from pymc_pseudomarginal.prediction.predict import given_draws
from pymc_pseudomarginal.step_methods import PseudoMarginalMH

_LARGEST_RHAT = 1.05
# Of draws times rows that are predicted together: 32 MB for each quantity.
_NUMBERS_AT_ONCE = 2**22


class GPClassifier(ClassifierMixin, BaseEstimator):
    """Gaussian-process probit classification with all uncertainty integrated out.

    The model is ``y ~ Bernoulli(Phi(f))`` with f a Gaussian process. Its hyper-parameters
    and f are sampled by `PseudoMarginalMH`, and probabilities are averaged over the draws.
    There is nothing to optimise and nothing to cross-validate.

    Parameters
    ----------
    covariance : callable, optional
        ``covariance(n_features)`` returns a `pymc.gp.cov` covariance function. It is called
        inside the model, so that it can give its parameters priors. None takes the kernel
        and priors of Filippone & Girolami (2014): squared exponential, with
        ``ls ~ Gamma(1, 1 / sqrt(n_features))`` and the variance ``sigma ~ Gamma(1.2, 0.2)``.
    ard : bool
        Whether that kernel has a length-scale for each feature. Not with `covariance`.
    approximation : {"auto", "ep", "laplace"}
    n_importance : int or "auto"
        See `PseudoMarginalMH`.
    draws, tune, chains : int
        Of `pm.sample`.
    cores : int, optional
        As many as there are chains and processors, if not given.
    random_state : int, RandomState or None
    verbose : bool
        Whether to show PyMC's progress bar and messages.

    Attributes
    ----------
    classes_ : array, shape (2,)
    n_features_in_ : int
    feature_names_in_ : array of str, shape (n_features_in_,)
        If X had names.
    model_ : pymc.Model
    gp_ : pymc.gp.Latent
    idata_ : InferenceData or DataTree
        Draws and sample statistics, for ArviZ.

    Notes
    -----
    The default priors suppose features of about unit scale: put a `StandardScaler` before
    the classifier. One draw costs several factorisations of an n×n matrix.

    References
    ----------
    Filippone & Girolami (2014), Pseudo-marginal Bayesian inference for Gaussian processes,
    IEEE Transactions on Pattern Analysis and Machine Intelligence 36(11).

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> classifier = make_pipeline(StandardScaler(), pmpm.GPClassifier(ard=True, random_state=1))
    >>> classifier.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    def __init__(
        self,
        covariance: Callable | None = None,
        *,
        ard: bool = False,
        approximation: str = "auto",
        n_importance: int | str = "auto",
        draws: int = 1000,
        tune: int = 500,
        chains: int = 4,
        cores: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.covariance = covariance
        self.ard = ard
        self.approximation = approximation
        self.n_importance = n_importance
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.cores = cores
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: np.ndarray, y: np.ndarray) -> GPClassifier:
        """Sample the posterior.

        Parameters
        ----------
        X : array or DataFrame, shape (n, d)
        y : array, shape (n,)
            Labels of two classes, of any type.

        Returns
        -------
        GPClassifier
            Itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the R-hat of a hyper-parameter is above 1.05.
        """
        X, y = validate_data(self, X, y, dtype=float)
        self.classes_, labels = self._classes(y)
        self._X, self._labels = X, labels
        self.model_, self.gp_ = self._build()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with self.model_:
            step = PseudoMarginalMH(
                approximation=self.approximation, n_importance=self.n_importance
            )
            self.idata_ = pm.sample(
                self.draws,
                tune=self.tune,
                chains=self.chains,
                cores=self.cores,
                step=step,
                random_seed=seed,
                progressbar=self.verbose,
                quiet=not self.verbose,
                compute_convergence_checks=False,
            )
        self._warn_of_divided_chains()
        self._prepare_predictions()
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of the two classes, averaged over the draws.

        Parameters
        ----------
        X : array or DataFrame, shape (m, d)

        Returns
        -------
        array, shape (m, 2)
        """
        check_is_fitted(self, "idata_")
        X = np.ascontiguousarray(validate_data(self, X, dtype=float, reset=False))
        draws, rng = self._draws, np.random.default_rng(0)  # nothing is drawn for labels
        rows = max(1, _NUMBERS_AT_ONCE // len(draws.which))
        condition = given_draws(self._integration.model, draws)
        p = [
            self._integration.run(X[i : i + rows], draws, condition, rng, False)["p"].mean(axis=0)
            for i in range(0, len(X), rows)
        ]
        p = np.concatenate(p)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The more probable class for every row, shape (m,)."""
        p = self.predict_proba(X)
        return self.classes_[np.argmax(p, axis=1)]

    def _classes(self, y):
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) > 2 or kind != "binary":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}, with {len(classes)} classes. Use OneVsRestClassifier."
            )
        if len(classes) < 2:
            raise ValueError(
                f"GPClassifier needs samples of 2 classes; found one class only, {classes[0]}."
            )
        return classes, labels

    def _build(self):
        """(model, process) of the training data."""
        if self.covariance is not None and self.ard:
            raise ValueError("ard=True belongs to the default kernel; leave it out of yours.")
        d = self._X.shape[1]
        with pm.Model() as model:
            covariance = self.covariance or self._paper_covariance
            gp = pm.gp.Latent(cov_func=covariance(d))
            f = gp.prior("f", X=pm.Data("X", self._X))
            pm.Bernoulli("y", p=pm.math.invprobit(f), observed=pm.Data("labels", self._labels))
        return model, gp

    def _paper_covariance(self, d):
        ls = pm.Gamma("ls", 1.0, 1.0 / np.sqrt(d), shape=d if self.ard else None)
        sigma = pm.Gamma("sigma", 1.2, 0.2)
        return sigma * pm.gp.cov.ExpQuad(d, ls=ls)

    def _prepare_predictions(self):
        read = understand(self.model_)
        self._draws = posterior_draws(self.idata_, read, latent=True)
        inputs = NewInputs(read, self.gp_)
        self._integration = Integration.prepare(read, inputs, self._draws.theta[0])

    def _warn_of_divided_chains(self):
        posterior = self.idata_["posterior"]
        if posterior.sizes["chain"] < 2:
            return
        names = [rv.name for rv in self.model_.free_RVs if rv.name != "f_rotated_"]
        worst = {name: max(_rhat(posterior[name])) for name in names}
        above = {name: rhat for name, rhat in worst.items() if not rhat <= _LARGEST_RHAT}
        if above:
            found = ", ".join(f"{name} {rhat:.2f}" for name, rhat in above.items())
            warnings.warn(
                f"The chains do not agree yet (R-hat: {found}). Increase draws= or tune=, and "
                "look at idata_ with ArviZ.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # The model and what is compiled of it are made again from the data: PyMC's graphs
    # cannot be pickled by the standard library.
    def __getstate__(self):
        rebuilt = ("model_", "gp_", "_integration", "_draws")
        return {k: v for k, v in super().__getstate__().items() if k not in rebuilt}

    def __setstate__(self, state):
        super().__setstate__(state)
        if "idata_" in state:
            self.model_, self.gp_ = self._build()
            self._prepare_predictions()


def _rhat(values):
    """R-hat of every element of a variable."""
    draws = values.transpose("chain", "draw", ...).to_numpy()
    flat = draws.reshape(*draws.shape[:2], -1)
    return [float(az.rhat(flat[..., i])) for i in range(flat.shape[-1])]
