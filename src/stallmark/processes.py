"""Start processes of our own, and end processes for certain.

Two watchers stay apart, because they outlive whoever would supervise them and import nothing of ours: the embedded
server's (engines/postgres/embedded/guard.py) and the one of a data generator (loaders/warehouse/keeper.py). A server
that an earlier run left behind is asked by its own signals (embedded/ownership.py).
"""

import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil


def start_module(module: str, *arguments: str, **options: Any) -> subprocess.Popen:
    """Run one of our modules with `python -m`; `options` are Popen's.

    Never multiprocessing: its spawn imports the parent's main module again, and under Locust children would come up
    with a standard library patched by gevent.
    """
    return subprocess.Popen([sys.executable, "-m", module, *arguments], **options)


def kill(process: subprocess.Popen) -> int:
    """Kill a child, which may have ended already, and leave no zombie; returns its code as Popen has it."""
    process.kill()
    return process.wait()


def end(processes: Iterable["psutil.Process"], grace_s: float) -> None:
    """Ask processes to end, wait for up to `grace_s`, and kill those that are still there."""
    import psutil  # here, because executors start sooner without it

    left = list(processes)
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with suppress(psutil.Error):
                ask(process)
        _, left = psutil.wait_procs(left, timeout=grace_s)
