"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import scipy.linalg  # noqa: F401  (loads SciPy's BLAS, so that it is listed)
from threadpoolctl import threadpool_info

import pymc_pseudomarginal as pmpm

PACKAGES = ("pymc", "pytensor", "arviz", "numpy", "scipy", "numba", "nutpie")


def machine() -> dict[str, str | int]:
    """Processor, cores and versions."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count() or 1,
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "blas": ", ".join(_blas_libraries()),
        "pymc_pseudomarginal": pmpm.__version__,
    }


def as_markdown(description: dict) -> str:
    """One line."""
    versions = [
        f"{name} {description[name]}" for name in ("python", *PACKAGES, "pymc_pseudomarginal")
    ]
    return (
        f"{description['cpu']}, {description['cores']} cores, {description['system']}; "
        f"{', '.join(versions)}; BLAS: {description['blas']}."
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _blas_libraries() -> list[str]:
    libraries = []
    for library in threadpool_info():
        if library["user_api"] != "blas":
            continue
        # The wheels of NumPy and SciPy bring a library each.
        folder = Path(library["filepath"]).parent.name
        owner = next((f" of {name}" for name in ("numpy", "scipy") if name in folder), "")
        libraries.append(f"{library['internal_api']} {library['version']}{owner}")
    return sorted(libraries)  # they are listed in the order of loading
