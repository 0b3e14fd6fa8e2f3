"""What is known of every data set: size, meaning, source, licence, checksum."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One data set.

    Attributes
    ----------
    rows, features : int
    positive : str
        What label 1 means, and in brackets label 0.
    source, licence : str
    checksum : str
        SHA-256 of the uncompressed CSV.
    embedded : bool
        Whether it comes with the package.
    """

    rows: int
    features: int
    positive: str
    source: str
    licence: str
    checksum: str
    embedded: bool = True


_CC_BY = "CC BY 4.0"

CATALOGUE = {
    "breast": Entry(
        683,
        9,
        "malignant (benign)",
        "W. H. Wolberg, Breast Cancer Wisconsin (Original), UCI, doi 10.24432/C5HP4Z; 16 rows "
        "with a missing value were removed",
        _CC_BY,
        "f3ff6c8a552f247b1e9be1cf0c19e94c8747b3970a164aaf47991ff18e2511e0",
    ),
    "pima": Entry(
        768,
        8,
        "diabetes (none)",
        "Smith et al. (1988), NIDDK, formerly at UCI; zeros in glucose, blood_pressure, "
        "skin_thickness, insulin and bmi are missing values, kept as they are",
        "none stated; commonly redistributed as public domain",
        "bdfdf0f9a9ced40f0f10f394a8ea3daaa0c9d7d883848e6d1068896f22553f86",
    ),
    "abalone": Entry(
        2835,
        8,
        "male (female); infants were dropped",
        "Nash et al. (1994), UCI, doi 10.24432/C55C7W",
        _CC_BY,
        "15243a7f38e341553d22ed8d310af0867e5d35244c3ccf8ec44865bc96fe561d",
    ),
    "thyroid": Entry(
        215,
        5,
        "hyper- or hypothyroid (normal)",
        "Coomans et al. (1983), new-thyroid in UCI Thyroid Disease, doi 10.24432/C5D010",
        _CC_BY,
        "97faeae34c278ea2ea4ac59d560ac105235a3e1f8019da3065a529bfc6bcc0ae",
    ),
    "ionosphere": Entry(
        351,
        34,
        "good return (bad)",
        "Sigillito et al. (1989), UCI, doi 10.24432/C5W01B; x02 is constant",
        _CC_BY,
        "53b7b0e2da30da7c5cdaf7860cc989f01157a177aa36957c2229611350e02041",
    ),
    "glass": Entry(
        214,
        9,
        "window glass (other)",
        "B. German (1987), Glass Identification, UCI, doi 10.24432/C5WW2P",
        _CC_BY,
        "5e6b0e898ded99c0a48f99b0e766f4e99c6325bbaa0a53203184e8bed9d3da78",
    ),
    "usps": Entry(
        1540,
        256,
        "digit 3 (digit 5)",
        "Hull (1994); the resampled images of Kuss & Rasmussen (2005) and Rasmussen & Williams "
        "(2006), threes and fives; rows 1-767 were for training",
        "none stated, so that it does not come with the package",
        "75a2979a469cb3edbbea28c46abdbaa76c2b7a492f06b96e7d49ce39b7d67d07",
        embedded=False,
    ),
}
"""By the names that `load` takes."""
