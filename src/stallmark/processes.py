"""Start processes of our own, and end them for certain.

Some stay apart. The guards of the embedded server (engines/postgres/embedded/guard.py) and of a data generator
(loaders/warehouse/guard.py) outlive the process that started them, and import nothing of ours. A hook's family
(experiment/hooks.py) is killed as a group, whose number must not be freed by waiting first. The emulated array's
processes (storage/block_device/parts.py) belong to no parent: they are found again by their command lines.
"""

import subprocess
import sys
from typing import Any


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
