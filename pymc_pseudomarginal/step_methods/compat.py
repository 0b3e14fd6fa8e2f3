"""What a step method must know of PyMC 5.28 and PyMC 6 beyond their documentation."""

from __future__ import annotations

import multiprocessing

import numpy as np
from pymc.step_methods.compound import BlockedStep
from pymc.util import get_random_generator


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
