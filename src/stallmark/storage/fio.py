"""The steps of raw I/O: their patterns, and the command lines of `fio` or, on Windows, `diskspd` with the results."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from stallmark.errors import StallmarkError, WrongOption
from stallmark.record.manifest.storage import NS_PER_MS, Asked, Pattern, ProbeStep, coarser

# The patterns of a probe, as SQLIO's: 8 KiB and 64 KiB at random, 1 to 32 outstanding, and large blocks in order.

_KIB = 1024
_SIZES = {"8k": 8 * _KIB, "64k": 64 * _KIB, "256k": 256 * _KIB, "1m": 1024 * _KIB}

PATTERNS: dict[str, Pattern] = {
    name: Pattern(name, operation, order, _SIZES[size])
    for order, sizes in (("random", ("8k", "64k")), ("sequential", ("256k", "1m")))
    for operation in ("read", "write")
    for size in sizes
    for name in (f"{size}-{order}-{operation}",)
}
OUTSTANDING = (1, 2, 4, 8, 16, 32)
IN_ORDER = (1, 8)
"""Outstanding I/Os of sequential patterns, each in a stream of its own: a single one, and several between which a
disk's arm moves. With more, the I/O that reaches the device is barely in order any more.
"""
MOST_OUTSTANDING = 256
LONGEST_STEP_S = 86_400

SHORT_STEPS = (
    Asked(PATTERNS["8k-random-read"], 1),
    Asked(PATTERNS["8k-random-read"], 8),
    Asked(PATTERNS["8k-random-read"], 32),
    Asked(PATTERNS["256k-sequential-read"], 1),
    Asked(PATTERNS["8k-random-write"], 8),
)
"""The steps that show a change of storage within seconds: reads come before the writes that change them. 32 outstanding
I/Os are about those of thirty users, so the two can be compared.
"""


def find_patterns(names: Sequence[str]) -> list[Pattern]:
    """Return the patterns with the names given, or all without names. Raise StallmarkError for an unknown name."""
    for name in names:
        if name not in PATTERNS:
            raise WrongOption(f"{name!r} is not a pattern of a probe: there are {', '.join(PATTERNS)}.")
    return [PATTERNS[name] for name in dict.fromkeys(names)] or list(PATTERNS.values())


def steps_of(patterns: Sequence[Pattern], outstanding: Sequence[int]) -> tuple[Asked, ...]:
    """Return the steps: reads before the writes that change them; random patterns at each of `outstanding`."""
    ordered = sorted(patterns, key=lambda pattern: not pattern.reads)
    return tuple(
        Asked(pattern, depth)
        for pattern in ordered
        for depth in (outstanding if pattern.random else [d for d in outstanding if d in IN_ORDER] or outstanding[:1])
    )


# The patterns of raw loads: those of a probe, and random reads of mixed sizes as a web server makes them.


@dataclass(frozen=True)
class RawPattern:
    """A kind of I/O. `blocks`: the share of the I/Os by their size in bytes."""

    name: str
    operation: Literal["read", "write"]
    order: Literal["random", "sequential"]
    blocks: Mapping[int, float]

    @property
    def random(self) -> bool:
        return self.order == "random"


WEB = RawPattern(
    "web",
    "read",
    "random",
    {
        512: 0.22,
        _KIB: 0.15,
        2 * _KIB: 0.08,
        4 * _KIB: 0.23,
        8 * _KIB: 0.15,
        16 * _KIB: 0.02,
        32 * _KIB: 0.06,
        64 * _KIB: 0.07,
        128 * _KIB: 0.01,
        512 * _KIB: 0.01,
    },
)
"""The access specification "Web Server" that Intel distributed with Iometer. Its sizes and shares are from memory: no
source was found that prints them all. Published reviews confirm random reads alone, from 512 bytes to 512 KiB, with 128
and 512 KiB beyond the sizes of its sister "File Server" (thessdreview.com, server profiles of the Micron 9100)."""

RAW_LOAD_PATTERNS: dict[str, RawPattern] = {
    **{
        name: RawPattern(
            name,
            "read" if pattern.reads else "write",
            "random" if pattern.random else "sequential",
            {pattern.block_bytes: 1.0},
        )
        for name, pattern in PATTERNS.items()
    },
    WEB.name: WEB,
}
ALIASES = {"scan": "256k-sequential-read"}
NAMES = (*ALIASES, WEB.name, *PATTERNS)


def find_pattern(name: str) -> RawPattern:
    """Return a pattern by its name or alias. Raise ValueError, with a name that is near, for an unknown one."""
    if pattern := RAW_LOAD_PATTERNS.get(ALIASES.get(name, name)):
        return pattern
    near = difflib.get_close_matches(name, NAMES, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
    raise ValueError(f"unknown pattern {name!r}: {hint}")


def with_least_block(blocks: Mapping[int, float], least_bytes: int) -> dict[int, float]:
    """Return the shares of block sizes, with those below `least_bytes` rounded up to `least_bytes`."""
    rounded: dict[int, float] = {}
    for size, share in blocks.items():
        rounded[max(size, least_bytes)] = rounded.get(max(size, least_bytes), 0.0) + share
    return rounded


# `fio`: its command line for one step, and its results in JSON.
#
# Written for fio 3.x; documentation: HOWTO of fio, "Command line options", "JSON output", "Log File Formats".

WINDOW_MS = 250
SKIP_BYTES = 2**20
"""Bytes at the beginning of the file that hold our own mark."""
_LOG = "windows"
ALWAYS = (
    "--direct=1", "--thread=1", "--group_reporting=1", "--time_based=1", "--norandommap=1", "--randrepeat=1",
    "--lat_percentiles=1",  # issue to end, as in the mean; with bins
    # The file is ours, and whole: fio shall neither lay one out, nor extend, nor remove it.
    "--overwrite=1", "--fallocate=none", "--allow_file_create=0", "--invalidate=0", "--output-format=json+",
)  # fmt: skip
"""The options of all our I/O."""
WRITING = ("--refill_buffers=1", "--buffer_compress_percentage=50", "--buffer_compress_chunk=4096")
"""Those of writes, whose data half compress."""


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
        f"--numjobs={threads}",
        f"--iodepth={asked.outstanding // threads}",
        f"--runtime={round(seconds * 1000)}ms",
        f"--randseed={seed}",
        *ALWAYS,
        *(() if pattern.reads else WRITING),
        f"--write_iops_log={scratch / _LOG}",
        f"--log_avg_msec={WINDOW_MS}",
        "--per_job_logs=0",
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
    log = "".join(path.read_text() for path in sorted(scratch.glob(f"{_LOG}_iops*.log")))
    return parse(asked, seconds, text, log)


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
        reason = f"error {error}" if error else "no I/O ended in time"
        raise StallmarkError(
            f"fio could not measure {asked.pattern.title} at {asked.outstanding} outstanding ({reason}): look at the "
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


# `diskspd` (Windows): its command line for one step, and its results in XML.
#
# Written by its documentation (github.com/microsoft/diskspd, wiki "Command line and parameters", and the source of its
# XmlResultParser); it has never run here.


def diskspd_command(program: str, file: Path, size_bytes: int, asked: Asked, seconds: float, seed: int) -> list[str]:
    """Return the command line of one step. Its time is in whole seconds. In order, every outstanding I/O is a stream
    with a thread of its own.

    -Su: past the system's cache; the hardware's stays on, as with fio's direct=1. -Zr: written data are random
    and incompressible.
    """
    pattern = asked.pattern
    streams = 1 if pattern.random else asked.outstanding
    return [
        program,
        f"-b{pattern.block_bytes}",
        f"-B{SKIP_BYTES}",
        f"-f{size_bytes}",
        f"-d{max(1, round(seconds))}",
        "-W0",
        f"-t{streams}",
        f"-o{asked.outstanding // streams}",
        f"-r{pattern.block_bytes}" if pattern.random else f"-s{pattern.block_bytes}",
        *([f"-T{part_bytes(size_bytes, streams, pattern.block_bytes)}"] if streams > 1 else []),
        "-w0" if pattern.reads else "-w100",
        *([] if pattern.reads else ["-Zr"]),
        f"-z{seed}",
        "-Su",
        "-L",
        f"-D{WINDOW_MS}",
        "-Rxml",
        str(file),
    ]


def parse_diskspd(asked: Asked, text: str) -> ProbeStep:
    """Return the step from its result in XML. Raise StallmarkError when that is unreadable, or reports no I/O."""
    verb = "Read" if asked.pattern.reads else "Write"
    try:
        span = ElementTree.fromstring(text[text.index("<Results") :]).find("TimeSpan")
        assert span is not None
        seconds = float(_text(span, "TestTimeSeconds"))
        targets = span.findall("Thread/Target")
        ios = sum(int(_text(target, f"{verb}Count")) for target in targets)
        size = sum(int(_text(target, f"{verb}Bytes")) for target in targets)
        if not ios or seconds <= 0:
            raise StallmarkError(
                f"diskspd could not measure {asked.pattern.title} at {asked.outstanding} outstanding (no I/O ended in "
                "time): look at the device, or give it more --seconds."
            )
        mean = float(_text(span, f"Latency/Average{verb}Milliseconds"))
        bins = list(_histogram(span, verb, ios))
        windows = tuple(
            (int(bucket.attrib["SampleMillisecond"]) / 1000, float(bucket.attrib[verb]))
            for bucket in span.findall("Iops/Bucket")
        )
    except (ValueError, AssertionError, KeyError, ElementTree.ParseError):
        raise StallmarkError(
            "diskspd ended without a result that can be read: Stallmark needs diskspd 2.0.20 or later."
        ) from None
    whole = tuple((t, rate) for t, rate in windows if t <= seconds)
    return ProbeStep(asked.pattern, asked.outstanding, seconds, ios, size, mean, coarser(bins), whole)


def _text(parent: ElementTree.Element, name: str) -> str:
    text = parent.findtext(name)
    if text is None:
        raise ValueError(name)
    return text


def _histogram(span: ElementTree.Element, verb: str, ios: int) -> Iterator[tuple[float, int]]:
    """Yield ms and counts from percentiles: one I/O in a hundred is between the 49th and the 50th."""
    counted = 0
    for bucket in span.findall("Latency/Bucket"):
        upto = round(float(_text(bucket, "Percentile")) / 100 * ios)
        milliseconds = float(_text(bucket, f"{verb}Milliseconds"))
        # Steps finer than one I/O add none.
        if upto > counted:
            yield milliseconds, upto - counted
            counted = upto
