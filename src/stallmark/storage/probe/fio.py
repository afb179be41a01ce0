"""`fio`: its command line for one step, and its results in JSON.

Written for fio 3.x; documentation: HOWTO of fio, "Command line options", "JSON output", "Log File Formats".
"""

import json
import re
from math import ceil
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.probe import NS_PER_MS, Asked, ProbeStep, coarser

WINDOW_MS = 250
SKIP_BYTES = 2**20
"""Bytes at the beginning of the file that hold our own mark."""
_LOG = "windows"


def command(
    program: str, file: Path, size_bytes: int, asked: Asked, seconds: float, how: str, scratch: Path, seed: int
) -> list[str]:
    """Return the command line of one step. `how` is the I/O engine: `psync` uses a thread for each outstanding I/O,
    others one thread for all random ones.

    In order, each outstanding I/O is a stream with its own thread and part of the file, whatever the engine. A single
    stream far ahead of itself would be a different load under the same name.

    `seed` decides the places of random I/O: two steps with one seed would read the same blocks, the second from caches.
    """
    pattern = asked.pattern
    threads = asked.outstanding if how == "psync" or not pattern.random else 1
    sequential = (
        []
        if pattern.random or threads == 1
        else [f"--offset_increment={part_bytes(size_bytes, threads, pattern.block_bytes)}"]
    )
    writes = [] if pattern.reads else [
        "--refill_buffers=1", "--buffer_compress_percentage=50", "--buffer_compress_chunk=4096",
    ]  # fmt: skip
    return [
        program,
        "--name=probe",
        f"--filename={escaped(file)}",
        f"--offset={SKIP_BYTES}",
        f"--size={part_bytes(size_bytes, 1 if not sequential else threads, pattern.block_bytes)}",
        *sequential,
        f"--rw={'rand' * pattern.random}{pattern.operation}",
        f"--bs={pattern.block_bytes}",
        f"--ioengine={how}",
        "--direct=1",
        "--thread=1",
        f"--numjobs={threads}",
        f"--iodepth={asked.outstanding // threads}",
        "--group_reporting=1",
        "--lat_percentiles=1",  # with bins: from issuing to the end, as in the mean
        "--time_based=1",
        f"--runtime={round(seconds * 1000)}ms",
        "--norandommap=1",
        "--randrepeat=1",
        f"--randseed={seed}",
        # The file is ours, and whole: fio shall neither lay one out, nor extend, nor remove it.
        "--overwrite=1",
        "--fallocate=none",
        "--allow_file_create=0",
        "--invalidate=0",
        *writes,
        f"--write_iops_log={scratch / _LOG}",
        f"--log_avg_msec={WINDOW_MS}",
        "--per_job_logs=0",
        "--output-format=json+",
        f"--output={scratch / 'fio.json'}",
    ]


def part_bytes(size_bytes: int, parts: int, block_bytes: int) -> int:
    """Return the bytes of one stream's part of the file behind our mark, in whole blocks."""
    return (size_bytes - SKIP_BYTES) // parts // block_bytes * block_bytes


def escaped(file: Path) -> str:
    """Return the file's name for fio, which splits names at colons."""
    return str(file).replace("\\", "\\\\").replace(":", "\\:")


def read(asked: Asked, seconds: float, scratch: Path) -> ProbeStep:
    """Return the step as measured, from the files that fio left. Raise StallmarkError when they report no I/O, or
    an error."""
    try:
        text = (scratch / "fio.json").read_text()
    except OSError:
        text = ""
    return parse(asked, seconds, text, _log(scratch))


def _log(scratch: Path) -> str:
    return "".join(path.read_text() for path in sorted(scratch.glob(f"{_LOG}_iops*.log")))


def parse(asked: Asked, seconds: float, text: str, log: str) -> ProbeStep:
    """Return the step from fio's JSON (after any warnings it printed) and its log of I/Os per second.

    Raise StallmarkError when the JSON is unreadable, or reports no I/O or an error.
    """
    try:
        job = json.loads(text[text.index("{") :])["jobs"][0]
        done = job[asked.pattern.operation]
        error, ios, milliseconds = job["error"], done["total_ios"], done["runtime"]
        mean = done["lat_ns"]["mean"]
        bins = done["lat_ns"].get("bins") or done["clat_ns"].get("bins") or {}
        size = done["io_bytes"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise StallmarkError(
            "fio ended without a result that can be read: Stallmark needs fio 3.0 or later (fio --version)."
        ) from None
    if error or not ios or not milliseconds:
        why = f"error {error}" if error else "no I/O ended in time"
        raise StallmarkError(
            f"fio could not measure {asked.pattern.title} at {asked.outstanding} outstanding ({why}): look at the "
            "device, or give it more --seconds."
        )
    return ProbeStep(
        asked.pattern,
        asked.outstanding,
        milliseconds / 1000,
        ios,
        size,
        mean / NS_PER_MS,
        coarser([(int(ns) / NS_PER_MS, count) for ns, count in bins.items() if count]),
        windows(log, seconds),
    )


def windows(log: str, seconds: float) -> tuple[tuple[float, float], ...]:
    """Return I/Os per second in each window, all threads together. Lines are: ms since the start, I/Os per second, …

    fio writes none for a window in which nothing ended: its rate is 0. The last window is left out, because threads
    that ended within it are not counted at its end.
    """
    rates: dict[int, float] = {}
    for line in log.splitlines():
        if match := re.match(r"(\d+), *(\d+)", line):
            window = round(int(match[1]) / WINDOW_MS)
            rates[window] = rates.get(window, 0.0) + int(match[2])
    last = min(max(rates, default=0), ceil(seconds * 1000 / WINDOW_MS) - 1)
    return tuple((window * WINDOW_MS / 1000, rates.get(window, 0.0)) for window in range(1, last + 1))
