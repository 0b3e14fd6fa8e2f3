"""The data sets of Filippone & Girolami (2014), in their two-class form.

`load` reads them; ``data/README.md`` beside this file has sources and licences.
"""

from pymc_pseudomarginal.datasets.catalogue import CATALOGUE
from pymc_pseudomarginal.datasets.loading import Dataset, load

__all__ = ["CATALOGUE", "Dataset", "load"]
