"""New inputs as a user gives them: array, DataFrame or DataArray."""

from __future__ import annotations

import numpy as np


def checked_inputs(X_new: object, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """New inputs as a matrix, and labels of its rows.

    Parameters
    ----------
    X_new : array, DataFrame or DataArray, shape (m, n_columns)
        Rows of a DataFrame keep its index as their labels, those of a DataArray the
        coordinate of its first dimension, those of an array are numbered.
    n_columns : int
        As many as the inputs of the process have.

    Returns
    -------
    X_new : array of float, shape (m, n_columns), C-ordered
    labels : array, shape (m,)
    """
    try:
        X = np.array(X_new, dtype=float, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"Xnew must be a matrix of numbers: {error}") from None
    if X.ndim != 2 or X.shape[1] != n_columns or not len(X):
        remedy = " Use Xnew[:, None] for a single column." if X.ndim == 1 else ""
        raise ValueError(
            f"Xnew must have the shape (m, {n_columns}), with the columns of the inputs that the "
            f"process was given; found {X.shape}.{remedy}"
        )
    bad = ~np.isfinite(X).all(axis=1)
    if bad.any():
        raise ValueError(
            f"Xnew has NaN or infinite values in {bad.sum()} of {len(X)} rows, the first of them "
            f"row {int(np.argmax(bad))}. Drop or impute them first."
        )
    return X, _labels(X_new, len(X))


def _labels(X_new, m):
    index = getattr(X_new, "index", None)  # DataFrame
    if index is None and hasattr(X_new, "dims"):  # DataArray
        index = X_new.coords.get(X_new.dims[0])
    if index is None or getattr(index, "nlevels", 1) > 1:
        return np.arange(m)
    return np.asarray(index)
