"""An experiment whose tasks take a moment, to be interrupted; a script that runs it on workers."""

import sys
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from examples.paper.result_file import ResultFile
from examples.paper.runner import run
from examples.paper.tasks import Task

SETTINGS = {"tasks": 8, "pause": 0.3, "failing": []}


def pilot(seed):
    return {"shift": np.random.default_rng(seed).uniform()}


def draw(number, shift, pause, failing, seed):
    time.sleep(pause)
    if number in failing:
        raise ValueError(f"number {number} cannot be drawn")
    return {"values": shift + np.random.default_rng(seed).standard_normal(3)}


def tasks(settings, results):
    """The pilot first; the others need what it found."""
    found = [Task("pilot", pilot, {})]
    if "pilot" in results:
        found += [
            Task(
                f"number {number}",
                draw,
                {
                    "number": number,
                    "shift": results["pilot"]["shift"],
                    "pause": settings["pause"],
                    "failing": settings["failing"],
                },
            )
            for number in range(settings["tasks"])
        ]
    return found


def main(path):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        run("toy", sys.modules["toy_experiment"], SETTINGS, ResultFile(Path(path)), client)


if __name__ == "__main__":
    import toy_experiment  # by its name, under which workers know its functions

    toy_experiment.main(sys.argv[1])
