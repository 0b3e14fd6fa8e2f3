"""What a step method must know of PyMC 5.28 and PyMC 6 beyond their documentation."""

from __future__ import annotations

import logging
import multiprocessing

import numpy as np
from pymc.stats.convergence import SamplerWarning, WarningType
from pymc.step_methods.compound import BlockedStep
from pymc.util import get_random_generator

# Below PyMC's own logger, whose handler and level it has: what it says is seen as PyMC's is.
log = logging.getLogger("pymc.pseudomarginal")


class ChainStep(BlockedStep):
    """A step method that is told when a chain starts, on either version of PyMC.

    PyMC 5.28 calls `set_rng` before a chain, PyMC 6 calls `setup_chain`. Both lead to
    `start_chain`, which subclasses override to forget the chain before: one instance
    serves several chains in turn when they run in one process.
    """

    rng: np.random.Generator

    def set_rng(self, rng) -> None:
        """PyMC 5.28: take the generator of the chain that starts."""
        self.rng = get_random_generator(rng, copy=False)
        self.start_chain()

    def setup_chain(self, rng, tune: int, draws: int) -> None:
        """PyMC 6: take the generator of the chain that starts."""
        self.set_rng(rng)

    def start_chain(self) -> None:
        """Forget everything that belongs to the previous chain."""
        raise NotImplementedError


def is_worker() -> bool:
    """Whether this is a process that PyMC made for one chain, by the name that it gives it."""
    return multiprocessing.current_process().name.startswith("worker_chain_")


def is_first_chain() -> bool:
    """Whether what every chain has to say should be said here."""
    name = multiprocessing.current_process().name
    return not name.startswith("worker_chain_") or name == "worker_chain_0"


def message(text: str, level: str) -> SamplerWarning:
    """For the statistic "warning", which PyMC logs in the main process as soon as it is drawn."""
    return SamplerWarning(WarningType.BAD_PARAMS, text, level)
