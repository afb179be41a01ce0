"""The programs that do raw I/O: found, never installed; executed for a step of a probe, or next to a database during a
run, with a guard that ends them when we end.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from stallmark.errors import StallmarkError, as_reason
from stallmark.processes import (
    exit_clause,
    exit_code_from_guard,
    hang_up,
    kill,
    killed_by,
    run_guarded,
    start_guarded,
    temporary_name,
)
from stallmark.record.manifest.storage import Asked, ProbeStep
from stallmark.record.manifest.workload import RawPlan
from stallmark.redact import environment as environment_without_secrets
from stallmark.storage import fio
from stallmark.storage.arrivals import GRACE_S, NOTHING, Report, Seconds, Work, documents, parse
from stallmark.storage.fio import ALWAYS, SKIP_BYTES, WRITING, escaped, part_bytes
from stallmark.storage.probe_file import ProbeFile

# The program that does a probe's I/O: `fio`, on Windows `diskspd`.

_STEP_GRACE_S = 120.0
"""Seconds beyond a step's own time after which its last I/Os are taken to hang."""
_EMULATION = ("LD_PRELOAD", "STALLMARK_EMULATED_ARRAYS")


@dataclass(frozen=True)
class Tool:
    """A program that was found. `version` is its own statement, "fio-3.33"."""

    program: str
    version: str
    how: str

    def measure(
        self, file: ProbeFile, asked: Asked, seconds: float, seed: int, environment: Mapping[str, str] | None
    ) -> ProbeStep:
        """Measure one step. `environment`: that of an emulated array; None for real storage. Raise StallmarkError."""
        with TemporaryDirectory(prefix=temporary_name("probe")) as folder:
            scratch = Path(folder)
            if self.how == "diskspd":
                order = fio.diskspd_command(self.program, file.path, file.bytes, asked, seconds, seed)
            else:
                order = fio.command(self.program, file.path, file.bytes, asked, seconds, self.how, scratch, seed)
            output = _run(order, seconds, asked, environment or {})
            return fio.parse_diskspd(asked, output) if self.how == "diskspd" else fio.read(asked, seconds, scratch)


def can_probe() -> str | None:
    """Return the reason why no probe can be made on this machine, as a sentence; None when one can."""
    try:
        find_tool(emulated=False)
    except StallmarkError as error:
        return str(error)
    return None


def find_tool(name: str | None = None, *, emulated: bool) -> Tool:
    """Return the program, by default the one that probes on this system. `emulated`: for an interposer, which sees only
    the plain calls of threads.

    Raise StallmarkError if none works.
    """
    name = name or ("diskspd" if sys.platform == "win32" else "fio")
    windows = name == "diskspd"
    program = shutil.which(name)
    if program is None:
        how = (
            "get it from github.com/microsoft/diskspd and put its folder on the PATH"
            if windows
            else "install it (Debian and Ubuntu: apt install fio; Red Hat: dnf install fio; macOS: brew install fio)"
        )
        raise StallmarkError(
            f"Raw I/O needs {name}, which is not on the PATH: {how}; databases can be measured without it."
        )
    if windows:
        return Tool(program, name, "diskspd")
    # In our own environment an interposer might keep it from starting.
    completed = subprocess.run(
        [program, "--version"], capture_output=True, text=True, env=clean(environment_without_secrets()), check=False
    )
    version = completed.stdout.strip()
    if completed.returncode or not version.startswith("fio-"):
        raise StallmarkError(f"{program} does not start as fio ({reason_in(completed.stderr)}): install it again.")
    return Tool(program, version, "psync" if emulated else "libaio" if sys.platform.startswith("linux") else "posixaio")


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without our interposer, by which a real device would seem emulated."""
    return {name: value for name, value in environment.items() if name not in _EMULATION}


def _run(order: list[str], seconds: float, asked: Asked, environment: Mapping[str, str]) -> str:
    """Run the program and return what it printed. Raise StallmarkError when the program fails or hangs."""
    ours = clean(environment_without_secrets())
    try:
        done = run_guarded("probe", order, environment, timeout_s=seconds + _STEP_GRACE_S, env=ours)
    except OSError as error:
        raise StallmarkError(f"{order[0]} could not be started ({error.strerror}): install it again.") from None
    except subprocess.TimeoutExpired:
        raise StallmarkError(
            f"The probe's I/O did not end {_STEP_GRACE_S:.0f} s after its time ({asked.pattern.title}, "
            f"{asked.outstanding} outstanding): the device hangs; look at it before measuring anything."
        ) from None
    if done.returncode:
        text = done.stderr + done.stdout
        if (by := killed_by(done.returncode)) and not text.strip():
            raise StallmarkError(f"{Path(order[0]).stem} was killed by {by}: nothing of this step can be used.")
        raise StallmarkError(_failed(order[0], text))
    return done.stdout


def _failed(program: str, text: str) -> str:
    name = Path(program).stem
    lowered = text.lower()
    if "invalid argument" in lowered or "direct=1" in lowered:
        return (
            f"{name} could not open the file for direct I/O ({reason_in(text)}): without it the system's memory would "
            "be measured; choose a folder on a file system that has it (ext4, XFS, NTFS)."
        )
    if "no space" in lowered:
        return f"{name} ran out of space ({reason_in(text)}): make room or give it a smaller size."
    return f"{name} failed ({reason_in(text)}): nothing of this step can be used."


def reason_in(text: str) -> str:
    """Return the line of a program's output that gives the reason it failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wanted = [line for line in lines if "err" in line.lower() or "fail" in line.lower()]
    return (wanted or lines or ["it said nothing"])[0]


# The command line by which `fio` makes the I/O of one cell of a raw load, until it is told to stop.
#
# I/Os that arrive at a rate are not its work (arrivals.py).

REPORT_EVERY_S = 1
_FOR_EVER = f"{30 * 86400}s"


def command(program: str, how: str, file: Path, plan: RawPlan, blocks: Mapping[int, float], seed: int) -> list[str]:
    """Return the command line. `how` is the I/O engine, as for a probe: `psync` needs a thread for each I/O under way,
    others one thread for all random ones. `blocks` are those of the plan, without any below the sector.
    """
    random = plan.order == "random"
    threads = 1 if random and how != "psync" else plan.outstanding
    parts = 1 if random else threads
    length = part_bytes(plan.size_bytes, parts, max(blocks))
    return [
        program,
        f"--filename={escaped(file)}",
        f"--offset={SKIP_BYTES}",
        f"--size={length}",
        *([f"--offset_increment={length}"] if parts > 1 else []),
        f"--rw={'rand' * random}{plan.operation}",
        f"--bs={next(iter(blocks))}" if len(blocks) == 1 else f"--bssplit={_split(blocks)}",
        f"--ioengine={how}",
        f"--iodepth={max(1, plan.outstanding // threads)}",
        "--clat_percentiles=0",
        f"--runtime={_FOR_EVER}",
        f"--randseed={seed}",
        *ALWAYS,
        *(WRITING if plan.operation == "write" else ()),
        f"--status-interval={REPORT_EVERY_S}",
        "--eta=never",
        "--name=raw",
        f"--numjobs={threads}",
        *([f"--rate={round(plan.rate_bytes / threads)}"] if plan.rate_bytes else []),
    ]  # fmt: skip


def _split(blocks: Mapping[int, float]) -> str:
    return ":".join(f"{size}/{round(share * 100)}" for size, share in sorted(blocks.items()))


# A running program that does I/O, with a guard, which ends it when we end.

_PATIENCE_S = GRACE_S + 5.0
"""Seconds after the order to end when a guard is killed."""


class GuardedProgram:
    """A running `fio`, or our own program. `environment` is that of an emulated array, or empty."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._guard = start_guarded(
            "raw-load",
            argv,
            environment,
            [(signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean(environment_without_secrets()),
        )
        assert self._guard.stdin and self._guard.stdout
        self._stdin, self._stdout = self._guard.stdin, self._guard.stdout
        self._said: list[str] = []
        self._unreadable: str | None = None
        self._stopped: float | None = None
        self._reader = threading.Thread(target=self._read, name="raw-load", daemon=True)
        self._reader.start()

    @property
    def has_ended(self) -> bool:
        """Return True if the process has ended, and all its reports were read."""
        if self._stopped is not None and time.monotonic() - self._stopped > _PATIENCE_S:
            kill(self._guard)
        code = self._guard.poll()
        # The guard has ended, but the program survives it in the guard's session.
        if code is not None and self._reader.is_alive():
            with suppress(OSError):
                os.killpg(self._guard.pid, signal.SIGKILL)
        return code is not None and not self._reader.is_alive()

    @property
    def failed(self) -> bool:
        """Return True if the process has ended without completing its work."""
        return bool(self._guard.poll())

    def stop(self) -> None:
        """Order the program to end, without waiting for it."""
        if self._stopped is None:
            self._stopped = time.monotonic()
            hang_up(self._stdin)

    def wait(self) -> None:
        """Wait until the program has ended, after `stop`."""
        self._reader.join(_PATIENCE_S)
        while not self.has_ended:
            time.sleep(0.05)

    def end_reason(self) -> str:
        """Return the reason why the program ended by itself, as the end of a sentence."""
        # Unreadable output made us stop the program ourselves, so its signal is not the reason.
        if self._unreadable:
            return self._unreadable
        self._errors.seek(0)
        output = "\n".join([self._errors.read().decode(errors="replace"), *self._said])
        code = self._guard.poll()
        if killed_by(code):
            return f"its guard {exit_clause(code)}"
        if killed_by(exit_code_from_guard(code)):
            return f"its program {exit_clause(exit_code_from_guard(code))}"
        return as_reason(reason_in(output))

    def hear(self, document: dict[str, Any]) -> None:
        """Take a document of its output, in a thread of its own. Raise StallmarkError for one that cannot be read."""

    def _read(self) -> None:
        """Read reports until there are no more: a thread's work, so that each has the time at which it came."""
        try:
            for document in documents(line.decode(errors="replace") for line in self._stdout):
                if isinstance(document, str):
                    self._said.append(document)
                else:
                    self.hear(document)
        except (StallmarkError, ValueError) as error:
            self._unreadable = as_reason(error)
            self.stop()


# The program of one cell of a raw load, while it runs.

_LATE_S = 0.1
"""The delay allowed for a report at the end of a second."""


class RawProcess(GuardedProgram):
    """A running program, and the work of its seconds by `clock`."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], operation: str, clock: Callable[[], float]):
        self._operation, self._clock = operation, clock
        self._reports: deque[tuple[float, Report]] = deque()
        self._before: tuple[float, Work] | None = None
        self._seconds = Seconds()
        self._waiting: dict[int, np.ndarray] = {}
        super().__init__(argv, environment)

    def hear(self, document: dict[str, Any]) -> None:
        report = parse(document, self._operation)
        self._reports.append((document.get("t", self._clock()), report))

    def pop_work(self) -> list[tuple[int, Work, np.ndarray | None]]:
        """Return the work of whole seconds since the last call; after its end, of all that is left. With each: for how
        long I/Os that were due had waited at its end, as buckets; None if this is not known."""
        over = self.has_ended
        while self._reports:
            t, report = self._reports.popleft()
            began, before = self._before or (t - report.seconds, NOTHING)
            if report.waiting is not None:
                self._waiting[int(t - _LATE_S)] = report.waiting
            if t > began:
                self._seconds.add(began, t, report.work - before)
                self._before = t, report.work
        until = float("inf") if over or self._before is None else self._before[0]
        return [(second, work, self._waiting.pop(second, None)) for second, work in self._seconds.pop_ended(until)]
