"""Reading the data sets, with their checksums verified."""

from __future__ import annotations

import gzip
import hashlib
import io
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pymc_pseudomarginal.datasets.catalogue import CATALOGUE, Entry

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Dataset:
    """A two-class data set.

    Attributes
    ----------
    name : str
    X : array or pandas.DataFrame, shape (n, d)
        Features, in their original units unless standardised.
    y : array, shape (n,)
        Labels, 0 or 1.
    feature_names : tuple of str
    about : Entry
        What the labels mean, source and licence.
    """

    name: str
    X: np.ndarray | pd.DataFrame
    y: np.ndarray
    feature_names: tuple[str, ...]
    about: Entry

    def __repr__(self):
        """Size, balance and origin."""
        n, d = self.X.shape
        return (
            f"Dataset {self.name}: {n} rows, {d} features, {int(self.y.sum())} of label 1\n"
            f"  label 1  {self.about.positive}\n"
            f"  source   {self.about.source}\n"
            f"  licence  {self.about.licence}"
        )


def load(
    name: str,
    *,
    standardise: bool = False,
    as_frame: bool = False,
    path: str | Path | None = None,
) -> Dataset:
    """Load one of the paper's data sets.

    Parameters
    ----------
    name : {"breast", "pima", "abalone", "thyroid", "ionosphere", "glass", "usps"}
    standardise : bool
        Give every feature mean zero and standard deviation one, as the paper does. A
        constant feature becomes zero.
    as_frame : bool
        Features as a `pandas.DataFrame` with their names.
    path : str or Path, optional
        For "usps", which does not come with the package: its file ``usps.csv.gz`` (or
        ``usps.csv``), or the folder that holds it.

    Returns
    -------
    Dataset

    Notes
    -----
    The content is checked against its SHA-256. Sources and licences are in
    `Dataset.about` and in the file ``data/README.md`` of this folder.

    Examples
    --------
    >>> data = pmpm.datasets.load("thyroid", standardise=True)
    >>> data.X.shape
    (215, 5)
    """
    if name not in CATALOGUE:
        raise ValueError(f"Unknown data set {name!r}; expected one of {', '.join(CATALOGUE)}.")
    entry = CATALOGUE[name]
    content = _content(name, entry, path)
    header, _, body = content.partition(b"\n")
    *feature_names, _ = header.decode().strip().split(",")
    table = np.loadtxt(io.BytesIO(body), delimiter=",", ndmin=2)
    X, y = table[:, :-1], (table[:, -1] > 0).astype(np.int64)
    if standardise:
        scale = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    if as_frame:
        import pandas as pd

        X = pd.DataFrame(X, columns=feature_names)
    return Dataset(name, X, y, tuple(feature_names), entry)


def _content(name: str, entry: Entry, path) -> bytes:
    """The uncompressed CSV, checked."""
    if entry.embedded:
        if path is not None:
            raise ValueError(f"{name!r} comes with the package; leave path out.")
        raw = (files(__package__) / "data" / f"{name}.csv.gz").read_bytes()
    else:
        raw = _user_file(name, path).read_bytes()
    content = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    found = hashlib.sha256(content).hexdigest()
    if found != entry.checksum:
        raise ValueError(
            f"The file for {name!r} is not the expected one: its uncompressed content has the "
            f"SHA-256 {found}, expected {entry.checksum}."
        )
    return content


def _user_file(name: str, path) -> Path:
    if path is None:
        raise ValueError(
            f"{name!r} does not come with the package, as its licence is not stated. Give the "
            f"file {name}.csv.gz, or the folder that holds it, as path=."
        )
    path = Path(path)
    candidates = [path / f"{name}.csv.gz", path / f"{name}.csv"] if path.is_dir() else [path]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"No file {' or '.join(str(c) for c in candidates)} for {name!r}.")
