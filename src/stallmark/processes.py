"""Start processes of our own, and end them for certain.

Some stay apart. The guard of a data generator (loaders/warehouse/guard.py) imports nothing of ours, and holds its
generator up. A hook's family
(experiment/storage_work.py) is killed as a group, whose number must not be freed by waiting first. The emulated array's
processes (lab/block_device/parts.py) belong to no parent: they are found again by their command lines.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, AnyStr

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]


def start_module(module: str, *arguments: str, **options: Any) -> subprocess.Popen:
    """Run one of our modules with `python -m`; `options` are Popen's.

    Never multiprocessing: its spawn imports the parent's main module again, and under Locust children would come up
    with a standard library patched by gevent.
    """
    return subprocess.Popen([sys.executable, "-m", module, *arguments], **options)


def start_guarded(
    name: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    ends: Sequence[tuple[int, float | None]],
    log: Path | None = None,
    **options: Any,
) -> subprocess.Popen:
    """Run a program with a guard of ours, and return the guard. Once its input ends, or this process, it sends the
    signals of `ends`, as long as the program goes on for so many seconds after each. Ctrl-C is for us alone."""
    guard = start_module(
        "stallmark.guard", f"guard-of-{name}", stdin=subprocess.PIPE, start_new_session=True, **options
    )
    assert guard.stdin
    order = {"argv": list(argv), "environment": dict(environment), "ends": ends, "log": log and str(log)}
    tell(guard.stdin, json.dumps(order).encode() + b"\n")
    return guard


def tell(stdin: IO[AnyStr], order: AnyStr) -> None:
    """Write to a process. One that was killed takes nothing: how it ended is told where its answer is awaited."""
    with suppress(BrokenPipeError):
        stdin.write(order)
        stdin.flush()


def hang_up(stdin: IO[AnyStr]) -> None:
    """Close what a process reads, also where it was killed before it took all of it."""
    with suppress(BrokenPipeError):
        stdin.close()


OPEN_FILES = 10_240
"""The open files that macOS allows a process for certain, though it says that there is no limit."""


def most_open_files() -> int | None:
    """Return how many files and connections a process of ours may have open at most; None where there is no limit."""
    if resource is None:  # Windows
        return None
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        return most
    return None if now == resource.RLIM_INFINITY else max(now, OPEN_FILES)


def may_open_most_files() -> None:
    """Let this process have as many files and connections open as it may ask for."""
    if most := most_open_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def kill(process: subprocess.Popen) -> int:
    """Kill a child, which may have ended already, and leave no zombie; returns its code as Popen has it."""
    process.kill()
    return process.wait()


def code_of(process: subprocess.Popen, within_s: float) -> int | None:
    """Return the code of a child that is ending, as Popen has it; None where it has not ended after so long."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
    return process.poll()


def of_guarded(code: int | None) -> int | None:
    """Return the code of the process that a guard of ours ran, from the guard's own: it hands a signal on as shells do,
    as 128 more than its number."""
    return 128 - code if code is not None and code > 128 else code


def killed_by(code: int | None) -> str | None:
    """Return the signal that ended a process, "signal 9 (SIGKILL)", from its code as Popen has it; None where it ended
    otherwise, or has not."""
    if code is None or code >= 0:
        return None
    name = signal.Signals(-code).name if -code in set(signal.Signals) else "of no name"
    return f"signal {-code} ({name})"


def how_ended(code: int | None) -> str:
    """Return how a process ended, as the end of a sentence, from the same code."""
    if by := killed_by(code):
        return f"was killed by {by}"
    return "has not ended" if code is None else f"ended with code {code}"
