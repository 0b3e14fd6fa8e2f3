"""How much memory sampling takes, in n×n arrays."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path

from examples.benchmarks.problems import Chain, probit_model
from examples.benchmarks.subprocesses import in_subprocess
from examples.benchmarks.tables import number, spread, table
from examples.benchmarks.timing import quartiles

TITLE = "Memory"
READING = (
    "The most memory that sampling held at any moment beyond what the process held before the "
    "first draw (model and step built, K and everything compiled), as a number of n×n arrays of "
    "64-bit numbers: the median over fresh processes, with the quartiles in brackets. Tuning and "
    "the draws after it are included. What is freed goes back to the system at once; the C library "
    "may otherwise keep an array or so in reserve."
)
FULL = {"n": 2000, "tune": 5, "draws": 5, "repetitions": 3}
# At n = 200 an array is smaller than what the rest of the process takes and gives back.
QUICK = {"n": 768, "tune": 5, "draws": 5, "repetitions": 1}

SAMPLERS = (("laplace", 1), ("ep", 16))

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def measure(n: int, tune: int, draws: int, repetitions: int) -> dict:
    """Peak memory for Laplace and EP, each time in a fresh process."""
    rows = []
    for approximation, n_importance in SAMPLERS:
        sampler = {"approximation": approximation, "n_importance": n_importance}
        arguments = sampler | {"n": n, "tune": tune, "draws": draws}
        peaks = [in_subprocess(peak_arrays, arguments)["arrays"] for _ in range(repetitions)]
        known = None not in peaks
        rows.append(sampler | {"n": n, "arrays": quartiles(peaks) if known else None})
    return {"rows": rows}


def peak_arrays(
    approximation: str, n_importance: int, n: int, tune: int, draws: int
) -> dict[str, float | None]:
    """Peak memory of this process while it samples; None where the system does not tell it."""
    _keep_no_reserve(8 * n**2)
    chain = Chain(probit_model(n, 2), approximation=approximation, n_importance=n_importance)
    gc.collect()
    _return_free_memory()
    try:
        before = _status_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    except OSError:
        return {"arrays": None}
    chain.tune(tune)
    for _ in range(draws):
        chain.draw()
    return {"arrays": (_status_bytes("VmHWM") - before) / (8 * n**2)}


def _keep_no_reserve(size: int) -> None:
    """Have the C library ask the system for arrays of this size each by itself; glibc alone can.

    By default it stops to do so once one was freed, up to 32 MB, and keeps what is freed later.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, size // 2)


def _return_free_memory() -> None:
    """Ask the C library to give the system what it holds in reserve; glibc alone can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _status_bytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise OSError(f"The system does not tell {name}.")


def as_markdown(result: dict) -> str:
    """The table."""
    rows = [
        (
            row["approximation"],
            str(row["n_importance"]),
            str(row["n"]),
            "not told by this system" if row["arrays"] is None else spread(row["arrays"]),
            number(8e-6 * row["n"] ** 2),
        )
        for row in result["rows"]
    ]
    return table(("approximation", "N", "n", "n×n arrays at the peak", "MB per array"), rows)
