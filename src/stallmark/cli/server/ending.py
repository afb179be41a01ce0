"""The output of a server while it starts, and the reason why it ended."""

import re
from typing import Any

from stallmark.cli.server.container import asked

_FATAL = "This program has encountered a fatal error and cannot continue"
_KERNEL_THAT_ENDS_IT = (6, 7)
_TOO_OLD_FOR_IT = ("2017", "2019")  # 2022 from CU12 on is mended: microsoft/mssql-docker #868, #899


def why_ended(running: Any, version: str) -> str:
    """Return the reason why a container of SQL Server `version` ended, as the end of a sentence."""
    if running.attrs["State"].get("OOMKilled"):
        return "it needed more memory than its container has; raise --memory."
    log = running.logs(tail=200).decode(errors="replace")
    return _reason(log, version, running.client.version().get("KernelVersion", ""))


def last_line(running: Any) -> str:
    """Return the beginning of the last line of its output, for a line of progress."""
    with asked("The new server could not be watched"):
        lines = running.logs(tail=1).decode(errors="replace").splitlines()
    return _without_time(lines[-1])[:60] if lines else "starting"


def _reason(log: str, version: str, kernel: str) -> str:
    """Return the reason: the fatal error, or the first line that speaks of an error, else the last one.

    `kernel` is the release of the Linux that containers run on, "" where it is not known.
    """
    lines = [_without_time(line) for line in log.splitlines() if line.strip()]
    if any(_FATAL in line for line in lines):
        return _fatal(lines, version, kernel)
    telling = [line for line in lines if re.match(r"(/opt/mssql/bin/)?sqlservr: |ERROR: |.*\berror:", line)]
    return (telling or lines[-1:] or ["it said nothing"])[0].strip().rstrip(".") + "."


def _without_time(line: str) -> str:
    """Return the line without "2022-08-14 17:37:38.25 spid30s     "."""
    return re.sub(r"^\d{4}-\d\d-\d\d [\d:.]+ \S+\s+", "", line)


def _fatal(lines: list[str], version: str, kernel: str) -> str:
    said = [found[2].strip() for line in lines if (found := re.match(r"\s*(Signal|Message): (.+)", line))]
    what = f"a fatal error{f' ({said[0]})' if said else ''}."
    number = tuple(int(part) for part in re.findall(r"\d+", kernel)[:2])
    if "SIGABRT" not in what or number < _KERNEL_THAT_ENDS_IT:
        return what
    cure = "take --version 2022" if version in _TOO_OLD_FOR_IT else "docker pull the image anew"
    return (
        f"{what} Images of 2017 and 2019, and of 2022 before CU12, end so on Linux 6.7 and later, and this is "
        f"{kernel}: {cure}, or a host with an older kernel."
    )
