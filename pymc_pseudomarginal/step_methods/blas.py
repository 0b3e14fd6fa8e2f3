"""One BLAS thread inside a step.

It makes the draws the same wherever a chain runs: from about n = 200 a Cholesky factor on
several threads is rounded differently, and processes differ in their threads.
"""

from __future__ import annotations

from threadpoolctl import ThreadpoolController

from pymc_pseudomarginal.step_methods.compat import is_worker


class OneBlasThread:
    """A context in which BLAS runs on one thread; for good in a process of one chain."""

    def __init__(self):
        self._find_libraries()

    def _find_libraries(self) -> None:
        self._controller = ThreadpoolController().select(user_api="blas")
        self._limiter = None
        self._limited = False

    def start_chain(self) -> None:
        """In a process of one chain, limit BLAS for good: other steps compute in between."""
        if is_worker() and not self._limited:
            self._controller.limit(limits=1)
            self._limited = True

    def __enter__(self):
        if not self._limited:
            self._limiter = self._controller.limit(limits=1)
        return self

    def __exit__(self, *exception) -> None:
        if self._limiter is not None:
            self._limiter.restore_original_limits()
            self._limiter = None

    def __getstate__(self) -> dict:
        # Handles of shared libraries do not travel between processes.
        return {}

    def __setstate__(self, state: dict) -> None:
        self._find_libraries()
