"""The data sets: sizes, balance, checksums, options, errors."""

import gzip
import hashlib
from importlib.resources import files

import numpy as np
import pytest

import pymc_pseudomarginal as pmpm
from pymc_pseudomarginal.datasets import CATALOGUE, load

POSITIVE = {
    "breast": 239,
    "pima": 268,
    "abalone": 1528,
    "thyroid": 65,
    "ionosphere": 225,
    "glass": 163,
}


def test_every_embedded_set_is_counted_here():
    assert {name for name, entry in CATALOGUE.items() if entry.embedded} == set(POSITIVE)


@pytest.mark.parametrize("name", POSITIVE)
def test_counts_and_balance(name):
    data = load(name)
    assert data.X.shape == (CATALOGUE[name].rows, CATALOGUE[name].features)
    assert np.isfinite(data.X).all()
    assert set(np.unique(data.y)) == {0, 1}
    assert data.y.sum() == POSITIVE[name]
    assert len(data.feature_names) == data.X.shape[1]
    assert CATALOGUE[name].licence in repr(data)


@pytest.mark.parametrize("name", POSITIVE)
def test_standardising_survives_constant_features(name):
    X = load(name, standardise=True).X
    constant = np.ptp(load(name).X, axis=0) == 0.0
    assert constant.sum() == (name == "ionosphere")
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), np.where(constant, 0.0, 1.0), atol=1e-12)


def test_a_frame_has_the_names():
    pandas = pytest.importorskip("pandas")
    frame = load("thyroid", as_frame=True).X
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(load("thyroid").feature_names)


def test_they_are_small():
    folder = files("pymc_pseudomarginal.datasets") / "data"
    assert sum(len(f.read_bytes()) for f in folder.iterdir()) < 300_000


def test_errors_say_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="Unknown data set 'iris'; expected one of breast"):
        load("iris")
    with pytest.raises(ValueError, match="'glass' comes with the package"):
        load("glass", path=tmp_path)
    with pytest.raises(ValueError, match=r"does not come with the package.*path="):
        load("usps")
    with pytest.raises(FileNotFoundError, match=r"usps\.csv\.gz"):
        load("usps", path=tmp_path)


def test_a_file_that_was_changed_is_refused(tmp_path):
    (tmp_path / "usps.csv.gz").write_bytes(gzip.compress(b"p001,y\n0.5,1\n"))
    with pytest.raises(ValueError, match=r"not the expected one.*SHA-256"):
        load("usps", path=tmp_path)


def test_a_file_of_the_user_is_read(tmp_path, monkeypatch):
    content = b"p001,p002,y\n0.5,1.5,1\n-0.5,0.25,-1\n"
    entry = pmpm.datasets.catalogue.Entry(
        2, 2, "", "", "", hashlib.sha256(content).hexdigest(), embedded=False
    )
    monkeypatch.setitem(CATALOGUE, "usps", entry)
    for name, raw in (("usps.csv", content), ("usps.csv.gz", gzip.compress(content))):
        path = tmp_path / name
        path.write_bytes(raw)
        for given in (path, tmp_path):
            data = load("usps", path=given)
            np.testing.assert_array_equal(data.X, [[0.5, 1.5], [-0.5, 0.25]])
            np.testing.assert_array_equal(data.y, [1, 0])
