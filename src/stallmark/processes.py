"""Child processes: their start, their times with those of all descendants, their end, and what killed ones leave."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, AnyStr

# CPU time of a process and all its descendants, ended ones included, from Linux' /proc.

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_NS_PER_S = 1e9


@dataclass(frozen=True)
class Stat:
    """The contents of /proc/PID/stat for a process. Its times include those of its ended children."""

    name: str
    parent: int
    user_s: float
    system_s: float
    threads: int


@dataclass(frozen=True)
class TreeTimes:
    user_s: float
    system_s: float
    run_delay_s: float | None  # runnable, waiting for a CPU; None if the kernel does not count it
    processes: int


class ProcessTree:
    """The processes that descend from `root`. Their times only grow: children that ended are counted by their parent,
    and the run delay of ended threads is kept as it was last seen."""

    def __init__(self, root: int, proc: Path = PROC):
        self._root = root
        self._proc = proc
        self._ours = {root}
        self._others: set[int] = set()
        self._delays: dict[tuple[int, str], int] = {}  # ns, by process and thread
        self._ended_ns = 0
        self._most = 0.0, 0.0

    def read(self) -> TreeTimes | None:
        """Return the times so far, or None if the root has ended."""
        # The root first: a child that ends meanwhile is missed until the next reading, and never counted twice.
        first = read_stat(self._root, self._proc)
        if first is None:
            return None
        stats = {self._root: first}
        self._find_new()
        for pid in sorted(self._ours - {self._root}):
            if (stat := read_stat(pid, self._proc)) is None:
                self._ours.discard(pid)
            else:
                stats[pid] = stat
        user = max(self._most[0], sum(stat.user_s for stat in stats.values()))
        system = max(self._most[1], sum(stat.system_s for stat in stats.values()))
        self._most = user, system
        return TreeTimes(user, system, self._run_delay_s(stats), len(stats))

    def _find_new(self) -> None:
        """Sort processes that were not there before into ours and others, parents before their children."""
        listed = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        self._others &= listed
        for pid in sorted(listed - self._ours - self._others):
            stat = read_stat(pid, self._proc)
            if stat is not None:
                (self._ours if stat.parent in self._ours else self._others).add(pid)

    def _run_delay_s(self, stats: dict[int, Stat]) -> float | None:
        now: dict[tuple[int, str], int] = {}
        for pid, stat in stats.items():
            for thread in self._threads(pid) if stat.threads > 1 else [str(pid)]:
                # A process that ends meanwhile keeps what was seen before.
                with suppress(ProcessLookupError):
                    try:
                        text = (self._proc / str(pid) / "task" / thread / "schedstat").read_text()
                    except FileNotFoundError:
                        continue
                    _, waited_ns, slices = text.split()
                    if slices != "0":  # all is 0 where the kernel counts no delays (delayacct)
                        now[pid, thread] = int(waited_ns)
        self._ended_ns += sum(ns for thread, ns in self._delays.items() if thread not in now)
        self._delays = now
        return (self._ended_ns + sum(now.values())) / _NS_PER_S if now or self._ended_ns else None

    def _threads(self, pid: int) -> list[str]:
        try:
            return os.listdir(self._proc / str(pid) / "task")
        except OSError:
            return []


def read_stat(pid: int, proc: Path = PROC) -> Stat | None:
    """Return the kernel's record of a process, or None if it has ended or is hidden from us."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    before, _, after = text.rpartition(")")  # a name may hold spaces and brackets
    values = after.split()
    user, system, user_ended, system_ended = (int(value) / _TICKS_PER_S for value in values[11:15])
    return Stat(
        name=before.partition("(")[2],
        parent=int(values[1]),
        user_s=user + user_ended,
        system_s=system + system_ended,
        threads=int(values[17]),
    )


# Start processes of our own, and end them for certain.
#
# Some stay apart. The guard of a data generator (loaders/warehouse/guard.py) imports nothing of ours, and holds its
# generator up. A hook's family (experiment/storage_work.py) is killed as a group, whose number must not be freed by
# waiting first. The emulated array's processes (lab/block_device_parts.py) belong to no parent: they are found again by
# their command lines.

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
    """Run a program with a guard of ours, and return the guard.

    Once its input or this process ends, the guard sends each signal of `ends`, and the next one if the program is still
    running after its number of seconds. Ctrl-C reaches this process alone.
    """
    guard = start_module(
        "stallmark.child_guard", f"guard-of-{name}", stdin=subprocess.PIPE, start_new_session=True, **options
    )
    assert guard.stdin
    order = {"argv": list(argv), "environment": dict(environment), "ends": ends, "log": log and str(log)}
    write_order(guard.stdin, json.dumps(order).encode() + b"\n")
    return guard


_GRACE_S = 5.0
"""Seconds that a program has to end by itself."""


def run_guarded(
    name: str,
    argv: Sequence[str],
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return it with what it printed. It ends when this process does, by a guard of ours,
    which Windows does not have. `environment` is added to `env`.

    Raise TimeoutExpired if it is running after `timeout_s`, and end it, as for any other error.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        options: dict[str, Any] = {"stdout": output, "stderr": errors}
        if sys.platform == "win32":
            every = dict(os.environ if env is None else env) | dict(environment)
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, env=every, **options)
        else:
            ends = [(signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)]
            process = start_guarded(name, argv, environment, ends, env=env, **options)
        try:
            process.wait(timeout_s)
        finally:
            _end(process)
        printed = []
        for file in (output, errors):
            file.seek(0)
            printed.append(file.read().decode(errors="replace"))
    code = process.returncode if sys.platform == "win32" else exit_code_from_guard(process.returncode)
    return subprocess.CompletedProcess(argv, code or 0, *printed)


def _end(process: subprocess.Popen) -> None:
    """End a guard and its program."""
    assert process.stdin
    hang_up(process.stdin)
    if sys.platform == "win32":
        kill(process)
        return
    code = wait_for_exit_code(process, 2 * _GRACE_S)
    # The program outlives a guard that was killed, and a device that hangs keeps both.
    if code is None or killed_by(code):
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def write_order(stdin: IO[AnyStr], order: AnyStr) -> None:
    """Write to a process. A process that was killed cannot read: its end is reported where its answer is awaited."""
    with suppress(BrokenPipeError):
        stdin.write(order)
        stdin.flush()


def hang_up(stdin: IO[AnyStr]) -> None:
    """Close what a process reads, also where it was killed before it took all of it."""
    with suppress(BrokenPipeError):
        stdin.close()


OPEN_FILES = 10_240
"""The open files that macOS certainly allows a process, although it reports no limit."""


def most_open_files() -> int | None:
    """Return the number of files and connections that a process of ours may have open, or None without a limit."""
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


def wait_for_exit_code(process: subprocess.Popen, within_s: float) -> int | None:
    """Wait for the exit code of a child that is ending, as Popen has it; None if it is still running after
    `within_s`."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
    return process.poll()


def exit_code_from_guard(code: int | None) -> int | None:
    """Return the code of the process that a guard of ours ran, from the guard's own: it hands a signal on as shells do,
    as 128 more than its number."""
    return 128 - code if code is not None and code > 128 else code


def killed_by(code: int | None) -> str | None:
    """Return the signal that ended a process, "signal 9 (SIGKILL)", from its code as Popen has it; None if it ended
    otherwise, or has not."""
    if code is None or code >= 0:
        return None
    name = signal.Signals(-code).name if -code in set(signal.Signals) else "of no name"
    return f"signal {-code} ({name})"


def exit_clause(code: int | None) -> str:
    """Return the end of a process as a clause, from its exit code."""
    if by := killed_by(code):
        return f"was killed by {by}"
    return "has not ended" if code is None else f"ended with code {code}"


# Files in places for temporary ones that carry the number of the process they belong to: what a killed one has left is
# known by that, and removed by the next.

SHARED_MEMORY = Path("/dev/shm")

_OURS = re.compile(r"stallmark-[a-z]+-(\d+)-.*")


@dataclass(frozen=True)
class Leftover:
    """A thing that no process uses any more; `remove` may raise OSError or StallmarkError."""

    kind: str
    place: Path | str
    """A file or folder; the name of what is neither."""

    bytes: int
    remove: Callable[[], None]


def temporary_name(word: str) -> str:
    """Return the beginning of the name of a temporary file or folder of this process; `word` is one word."""
    return f"stallmark-{word}-{os.getpid()}-"


def leftovers_of_dead_processes() -> Iterator[Leftover]:
    """Yield the leftovers of dead processes in memory and in the folder for temporary files."""
    for place in (SHARED_MEMORY, Path(tempfile.gettempdir())):
        for path in place.glob("stallmark-*"):
            match = _OURS.fullmatch(path.name)
            if match and is_own(path) and not _runs(int(match[1])):
                yield Leftover("of a process that was killed", path, size_of(path), partial(_remove, path))


def is_own(path: Path) -> bool:
    """Return True if a file exists and belongs to this user."""
    with suppress(OSError):
        # The link itself is looked at: whoever can write to the folder may have put one there that leads to a file of
        # ours.
        return not hasattr(os, "getuid") or path.lstat().st_uid == os.getuid()
    return False


def size_of(path: Path) -> int:
    """Return the bytes of a file, of all files in a folder, or of a link itself."""
    total = 0
    folder = not path.is_symlink() and path.is_dir()
    # Unlike rglob, os.walk passes over a folder that is removed meanwhile.
    for file in (Path(root, name) for root, _, names in os.walk(path) for name in names) if folder else [path]:
        with suppress(OSError):
            total += file.lstat().st_size
    return total


def _runs(process: int) -> bool:
    # Imported late: a command that meets no leftovers is spared the import.
    import psutil

    return psutil.pid_exists(process)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
