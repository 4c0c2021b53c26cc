"""Share the trainings of an experiment between two processes, one for each core.

`python -m regard.experiments.two_processes MODULE:FUNCTION SETTING JOBS` is what each of them runs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from regard.errors import RegardError
from regard.experiments.claims import Setting


def share_out(
    setting: Setting, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """What `function(setting, *job)` returns for each job, in order.

    Jobs and results are plain values. What is tiny takes less time than the start of a process, so
    all of it is done here.
    """
    if setting.size == "tiny":
        return [function(setting, *job) for job in jobs]
    name = f"{function.__module__}:{function.__qualname__}"
    plain = json.dumps([setting.size, str(setting.folder), setting.vectors, setting.device])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    results: list[Any] = [None] * len(jobs)
    with TemporaryDirectory() as folder:
        started = []
        try:
            for half in range(min(2, len(jobs))):
                command = [sys.executable, "-m", __name__, name, plain, json.dumps(jobs[half::2])]
                with Path(folder, f"{half}.txt").open("w", encoding="utf-8") as output:
                    process = subprocess.Popen(
                        command, env=environment, stdout=output, stderr=subprocess.STDOUT
                    )
                started.append(process)
            for half, process in enumerate(started):
                process.wait()
                last = Path(folder, f"{half}.txt").read_text("utf-8").strip().rpartition("\n")[2]
                if process.returncode:
                    raise RegardError(f"a process of the experiment failed: {last}")
                results[half::2] = json.loads(last)
        finally:
            for process in started:
                process.kill()
                process.wait()
    return results


def processor_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def main(name: str, setting: str, jobs: str) -> None:
    """Print what a function returns for each job, as JSON."""
    size, folder, vectors, device = json.loads(setting)
    module, _, function = name.partition(":")
    call = getattr(import_module(module), function)
    chosen = Setting(size, Path(folder), vectors, device)
    results = [call(chosen, *job) for job in json.loads(jobs)]
    sys.stdout.write(f"\n{json.dumps(results)}\n")


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    main(*sys.argv[1:])
