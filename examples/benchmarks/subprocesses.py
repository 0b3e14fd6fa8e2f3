"""Work in a fresh Python process, with a result that comes back as JSON.

A process prints a line of JSON for everything that it knows so far; the last one counts. So
something is known even of work that is stopped at its time limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

# NumPy, SciPy and Numba read these when they are loaded, so they must stand before.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMBA")
}


class SubprocessFailed(RuntimeError):
    """The work raised an error; its message ends with what the process wrote."""


def in_subprocess(
    function: Callable[..., dict],
    arguments: dict,
    *,
    environment: Mapping[str, str] = ONE_THREAD,
    time_limit: float | None = None,
) -> dict:
    """Call a function of a module in a fresh process.

    Parameters
    ----------
    function : callable
        A function at the top of a module, which returns what JSON can hold.
    arguments : dict
        Its keyword arguments, of what JSON can hold.
    environment : mapping
        Environment variables to set, besides those of this process.
    time_limit : float, optional
        Seconds after which the process is ended.

    Returns
    -------
    dict
        What the function returned; or, past the time limit, what it reported last, and
        ``timed_out``.
    """
    process = _started(function, arguments, environment)
    try:
        output, errors = process.communicate(timeout=time_limit)
    except subprocess.TimeoutExpired:
        _end(process)
        output, _ = process.communicate()
        return _last_line(output) | {"timed_out": True}
    except BaseException:
        _end(process)
        raise
    if process.returncode != 0:
        raise SubprocessFailed("\n".join(errors.strip().splitlines()[-20:]))
    return _last_line(output)


def _started(
    function: Callable[..., dict], arguments: dict, environment: Mapping[str, str]
) -> subprocess.Popen:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "examples.benchmarks.subprocesses"),
            *(f"{function.__module__}:{function.__name__}", json.dumps(arguments)),
        ],
        cwd=REPOSITORY,
        env=os.environ | dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that it can be ended with the processes of its chains
    )


def report(known: dict) -> None:
    """Say what is known so far; the worker's `sys.stdout` leads elsewhere."""
    print(json.dumps(known), file=sys.__stdout__, flush=True)


def _last_line(output: str) -> dict:
    for line in reversed(output.splitlines()):
        with contextlib.suppress(json.JSONDecodeError):
            known = json.loads(line)
            if isinstance(known, dict):
                return known
    return {}


def _end(process: subprocess.Popen) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def main() -> None:
    """The worker: call the function that the arguments name and print what it returns."""
    function, arguments = sys.argv[1:]
    # Whatever libraries print must not come between the lines of JSON.
    with contextlib.redirect_stdout(sys.stderr):
        result = pkgutil.resolve_name(function)(**json.loads(arguments))
    report(result)


if __name__ == "__main__":
    main()
