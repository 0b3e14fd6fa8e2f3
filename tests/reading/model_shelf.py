"""A shelf of small models as people write them, each with what a perfect reader finds in it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pymc as pm

from pymc_pseudomarginal.reading import read_model

N = 12
GROUP = np.arange(N) % 4
OTHER = (5 * np.arange(N) + np.arange(N) // 3) % 3
X = np.random.default_rng(4).normal(size=(N, 2))
TIME = np.linspace(0.0, 1.0, N)
REAL = np.random.default_rng(3).normal(size=N)
POSITIVE = np.exp(0.5 * REAL)
SHARE = 1.0 / (1.0 + np.exp(-REAL))
COUNTS = np.array([3, 0, 2, 5, 1, 4, 2, 3, 0, 6, 1, 2])
BINARY = np.array([1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0])
RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)


@dataclass(frozen=True)
class Case:
    """A model and its true split, by the names of its free variables.

    `latent` is what belongs in x, `theta` the rest, `unobserved` what is drawn afterwards;
    `also` are other latents that are as good; `predictors` is how many one term has; `shelf`
    tells look-alikes apart.
    """

    name: str
    build: Callable[[], None]
    latent: frozenset[str]
    theta: frozenset[str]
    unobserved: frozenset[str]
    also: tuple[frozenset[str], ...]
    predictors: int
    shelf: str = field(default="")

    def model(self) -> pm.Model:
        with warnings.catch_warnings(), pm.Model() as model:
            # That data are missing is meant; PyMC 5 warns of what it calls itself.
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            self.build()
        return model


SHELF: dict[str, Case] = {}


def case(latent="", theta="", *, unobserved="", also=(), predictors=1):
    """Put a function that builds a model in the current context on the shelf."""

    def put(build):
        name = build.__name__
        assert name not in SHELF, f"two models are called {name}"
        sets = [frozenset(names.split()) for names in (latent, theta, unobserved)]
        others = tuple(frozenset(names.split()) for names in also)
        SHELF[name] = Case(name, build, *sets, others, predictors, build.__module__)
        return build

    return put


def on_shelf(module) -> list[str]:
    return [name for name, one in SHELF.items() if one.shelf == module.__name__]


@cache
def read_case(name: str):
    """The model of a case as it was read, interpreted; each is read once."""
    return read_model(SHELF[name].model()).interpreted()
