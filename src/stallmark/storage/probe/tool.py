"""The program that does a probe's I/O: `fio`, on Windows `diskspd`. It is looked for, never installed."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from stallmark.errors import StallmarkError
from stallmark.leftovers import temporary_name
from stallmark.processes import killed_by
from stallmark.record.manifest.storage import Asked, ProbeStep
from stallmark.redact import environment as environment_without_secrets
from stallmark.storage.probe import fio
from stallmark.storage.probe.probe_file import ProbeFile

GRACE_S = 120.0
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
            output = _run(order, seconds, asked, clean(environment_without_secrets()) | dict(environment or {}))
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


def _run(order: list[str], seconds: float, asked: Asked, environment: dict[str, str]) -> str:
    """Run the program and return what it printed. It has a session of its own: Ctrl-C reaches Stallmark alone, which
    ends it.

    Raise StallmarkError when the program fails or hangs.
    """
    try:
        process = subprocess.Popen(
            order,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise StallmarkError(f"{order[0]} could not be started ({error.strerror}): install it again.") from None
    try:
        output, errors = process.communicate(timeout=seconds + GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise StallmarkError(
            f"The probe's I/O did not end {GRACE_S:.0f} s after its time ({asked.pattern.title}, "
            f"{asked.outstanding} outstanding): the device hangs; look at it before measuring anything."
        ) from None
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if process.returncode:
        if (by := killed_by(process.returncode)) and not (errors + output).strip():
            raise StallmarkError(f"{Path(order[0]).stem} was killed by {by}: nothing of this step can be used.")
        raise StallmarkError(_failed(order[0], errors + output))
    return output


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
