"""Run the tasks of an experiment on a Dask cluster, and store each as it is finished."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from distributed import Client, as_completed

from examples.paper.progress import Progress
from examples.paper.result_file import ResultFile
from examples.paper.tasks import Task, seed_of


@dataclass(frozen=True)
class Failure:
    """A task that ended with an error, or with its worker."""

    task: str
    error: str


def run(
    name: str, experiment: ModuleType, settings: Mapping, file: ResultFile, client: Client
) -> list[Failure]:
    """Run all tasks that the file lacks; those that failed.

    Parameters
    ----------
    name : str
        Of the experiment, for its seeds.
    experiment : module
        With ``tasks(settings, results)``, which is asked again when all it named are finished: some
        tasks need the results of others.
    settings : dict
        Of the scale.
    file : ResultFile
    client : distributed.Client
    """
    failures: dict[str, Failure] = {}
    while missing := _missing(experiment, settings, file, failures):
        with Progress(name, len(missing)) as progress:
            futures = {_submit(client, name, task): task for task in missing}
            for future in as_completed(list(futures), raise_errors=False):
                task = futures.pop(future)
                if future.status == "finished":
                    seconds, result = future.result()
                    file.append(task, seed_of(name, task.name), seconds, result)
                    progress.finished(task.name, seconds)
                else:
                    failures[task.name] = Failure(task.name, _error_of(future))
                    progress.failed(failures[task.name].task, failures[task.name].error)
                future.release()
    return list(failures.values())


def _missing(experiment, settings, file, failures) -> list[Task]:
    tasks = experiment.tasks(settings, file.results())
    return [task for task in tasks if task not in file and task.name not in failures]


def _submit(client: Client, name: str, task: Task):
    # Never pure: a worker that still holds the result of an earlier run must not answer for it.
    return client.submit(
        _timed,
        task.function,
        {**task.arguments, **task.data, "seed": seed_of(name, task.name)},
        key=f"{name}: {task.name} ({time.time_ns()})",
        pure=False,
    )


def _timed(function: Callable[..., dict], arguments: dict) -> tuple[float, dict]:
    start = time.perf_counter()
    result = function(**arguments)
    return time.perf_counter() - start, result


def _error_of(future) -> str:
    if future.status != "error":
        return f"The task was {future.status}."
    error = future.exception()
    where = traceback.extract_tb(future.traceback())
    last = f" ({where[-1].filename}, line {where[-1].lineno})" if where else ""
    return f"{type(error).__name__}: {error}{last}"
