"""What the time of one draw goes into."""

from __future__ import annotations

import functools
import inspect
import pkgutil
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from types import FunctionType
from unittest import mock

from threadpoolctl import threadpool_limits

from examples.benchmarks.problems import Chain, probit_model, tuning_draws
from examples.benchmarks.tables import UNKNOWN, number, spread, table
from examples.benchmarks.timing import quartiles

TITLE = "Where the time of a draw goes"
READING = (
    "Laplace, N = 1, after tuning. Times are exclusive: what a part calls of the other parts is "
    "counted to those only. Microseconds are medians with quartiles over the draws, shares are of "
    "the sum of the medians. Timing itself adds about a microsecond per part."
)
# Draws that are timed at every size.
FULL = {"draws": {50: 500, 200: 200, 2000: 10}}
QUICK = {"draws": {50: 100, 200: 50}}

REST = "bookkeeping"
Label = str | Callable[[tuple, dict], str]


def _whose_set(args: tuple, kwargs: dict) -> str:
    """Only the set of the current theta includes a given f."""
    include = kwargs.get("include", args[3] if len(args) > 3 else None)
    return f"importance set of the {'proposed' if include is None else 'current'} theta"


_STEP = "pymc_pseudomarginal.step_methods.pseudo_marginal_mh"
_TRANSITION = "pymc_pseudomarginal.transitions.pseudo_marginal"
_MODEL = "pymc_pseudomarginal.model:LatentGaussianModel"
# Label, owner and name of every part that is timed; of these, what the package has.
PARTS: tuple[tuple[Label, str, str], ...] = (
    ("log prior of theta", _MODEL, "log_prior"),
    ("building K", _MODEL, "prior"),
    ("Cholesky factor of K", "pymc_pseudomarginal.numerics:DensePrior", "cholesky"),
    (_whose_set, f"{_TRANSITION}:Conditional", "importance_set"),
    ("elliptical slice", f"{_STEP}:PseudoMarginalMH", "_move_latent"),
    ("f out of the point", _MODEL, "f"),
    ("f into the point", _MODEL, "stored_latent"),
    ("adaptation", f"{_STEP}:PseudoMarginalMH", "_adapt"),
)


class Stopwatch:
    """Exclusive seconds of parts of a computation that call each other.

    Attributes
    ----------
    seconds : dict
        By label, since `restart`.
    """

    def __init__(self):
        self.restart()

    def restart(self) -> None:
        """Forget what was measured."""
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside: list[float] = []  # for every call under way, the time of timed calls in it

    def timed(self, function: Callable, label: Label) -> Callable:
        """The function, its time counted to `label`."""

        @functools.wraps(function)
        def measured(*args, **kwargs):
            self._inside.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                elapsed = time.perf_counter() - start
                name = label if isinstance(label, str) else label(args, kwargs)
                self.seconds[name] += elapsed - self._inside.pop()
                if self._inside:
                    self._inside[-1] += elapsed

        return measured


@threadpool_limits.wrap(limits=1)
def measure(draws: dict[int, int]) -> dict:
    """Time the parts of a step at every size.

    Parameters
    ----------
    draws : dict
        Number of timed draws by n.
    """
    return {"sizes": [_size(n, repetitions) for n, repetitions in draws.items()]}


def _size(n: int, repetitions: int) -> dict:
    chain = Chain(probit_model(n, 2), approximation="laplace", n_importance=1)
    chain.tune(tuning_draws(n))
    stopwatch = Stopwatch()
    draw = stopwatch.timed(chain.draw, REST)
    measured = []
    with ExitStack() as patches:
        _time_parts(stopwatch, patches)
        for _ in range(repetitions):
            stopwatch.restart()
            draw()
            measured.append(stopwatch.seconds)
    labels = [*sorted(set().union(*measured) - {REST}), REST]
    microseconds = {
        label: quartiles([1e6 * seconds.get(label, 0.0) for seconds in measured])
        for label in labels
    }
    total = sum(times["median"] for times in microseconds.values())
    parts = [
        {"part": label, "microseconds": times, "percent": 100.0 * times["median"] / total}
        for label, times in microseconds.items()
    ]
    return {"n": n, "draws": repetitions, "microseconds": total, "parts": parts}


def _time_parts(stopwatch: Stopwatch, patches: ExitStack) -> None:
    for label, owner_name, name in PARTS:
        try:
            owner = pkgutil.resolve_name(owner_name)
        except (ImportError, AttributeError):
            continue
        original = inspect.getattr_static(owner, name, None)
        if isinstance(original, functools.cached_property):
            replacement = functools.cached_property(stopwatch.timed(original.func, label))
            replacement.__set_name__(owner, name)
        elif isinstance(original, FunctionType):
            replacement = stopwatch.timed(original, label)
        else:
            continue
        patches.enter_context(mock.patch.object(owner, name, replacement))
    try:
        approximations = pkgutil.resolve_name("pymc_pseudomarginal.numerics:APPROXIMATIONS")
    except (ImportError, AttributeError):
        return
    timed = {
        name: stopwatch.timed(function, "Gaussian approximation")
        for name, function in approximations.items()
    }
    patches.enter_context(mock.patch.dict(approximations, timed))


def as_markdown(result: dict) -> str:
    """The table: a row for every part, two columns for every n."""
    header, columns, labels = ["part"], [], []
    for size in result["sizes"]:
        header += [f"n = {size['n']}, µs", "share"]
        columns.append({part["part"]: part for part in size["parts"]})
        labels += [label for label in columns[-1] if label not in labels]
    rows = [
        [label, *(cell for parts in columns for cell in _cells(parts.get(label)))]
        for label in sorted(labels, key=lambda label: _order(label, columns))
    ]
    sums = [cell for size in result["sizes"] for cell in (number(size["microseconds"]), "100%")]
    return table(header, [*rows, ["sum", *sums]])


def _order(label: str, columns: list[dict]) -> tuple[bool, float]:
    """The largest part at the smallest n first, the rest last."""
    part = columns[0].get(label)
    return label == REST, -part["percent"] if part else 0.0


def _cells(part: dict | None) -> tuple[str, str]:
    if part is None:
        return UNKNOWN, UNKNOWN
    return spread(part["microseconds"]), f"{part['percent']:.1f}%"
