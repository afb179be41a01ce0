"""Commands in processes of their own that import nothing: each is forked from one that has imported what they need."""

import multiprocessing
import os
from collections.abc import Mapping
from pathlib import Path

import psutil

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "stallmark.cli.main", "stallmark.experiment.hooks", "stallmark.machines.serving",
        "stallmark.experiment.resume", "stallmark.experiment.runner", "stallmark.live.server",
        "stallmark.report.in_json", "stallmark.report.page", "stallmark.report.terminal",
    ]
)  # fmt: skip


class Prepared(psutil.Process):
    """A `stallmark` that was started in a session of its own, with no input; what it says goes into a file."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str], said: Path):
        told = (arguments, folder, dict(environment), said)
        self._process = _processes.Process(target=_become, args=told, daemon=True)
        self._process.start()
        super().__init__(self._process.pid)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        assert code is not None, f"still running after {timeout} s"
        return code


def _become(arguments: tuple[str, ...], folder: Path, environment: dict[str, str], said: Path) -> None:
    from stallmark.cli.main import main

    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path, flags in ((0, Path(os.devnull), os.O_RDONLY), (1, said, os.O_WRONLY | os.O_APPEND)):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.dup2(1, 2)
    main.main(arguments, "stallmark")
