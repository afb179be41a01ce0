"""The kinds of files that people have: those with a reader, and those that are refused with the command that helps."""

import re
from pathlib import Path
from typing import Literal, NamedTuple

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import Schedule
from stallmark.record.formats.perfmon import HEAD as PERFMON
from stallmark.record.formats.perfmon import Perfmon
from stallmark.record.formats.sample import Recorded, head_bytes, head_of
from stallmark.record.formats.sysstat import AS_SADF, AS_TEXT, HEAD, REPORT, IostatJson, IostatText, Sadf

Format = Literal["perfmon", "iostat", "sar", "prometheus", "csv"]
_IOSTAT, _JSON = f"record {AS_TEXT}", f"write its recording as JSON with {AS_SADF}"
_SAR = r"^(?:\d{1,2}[:时]\d{2}[:分]\d{2}秒?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: [AaPp]\.?[Mm]\.?)?[ \t]+"


class _Text(NamedTuple):
    """A kind of text by a pattern in its first characters: with a format if it has a reader, otherwise with its name
    and a remedy.

    A kind with both can be attached, but makes no profile.
    """

    pattern: str
    format: Format | None
    name: str = ""
    remedy: str = ""


class _Binary(NamedTuple):
    """A kind of binary file by its first bytes, or by its suffix."""

    start: bytes
    suffix: str
    name: str
    remedy: str


_BINARY = (
    # sa.h of sysstat: SYSSTAT_MAGIC is 0xd596, in the byte order of the machine
    _Binary(b"\x96\xd5", "", "a binary file of sar", f"write it as JSON with {AS_SADF}"),
    _Binary(b"\xd5\x96", "", "a binary file of sar", f"write it as JSON with {AS_SADF}"),
    _Binary(b"PK\x03\x04", "", "a workbook or a .zip", "unpack it, or save the sheet as CSV"),
    _Binary(b"BZh", "", "compressed with bzip2", "unpack it with `bunzip2 FILE`"),
    _Binary(b"\xfd7zXZ", "", "compressed with xz", "unpack it with `unxz FILE`"),
    _Binary(b"\x28\xb5\x2f\xfd", "", "compressed with zstd", "unpack it with `unzstd FILE`"),
    _Binary(b"", ".blg", "a binary log of Perfmon", "write it as CSV with `relog FILE -f CSV -o out.csv`"),
    _Binary(
        b"", ".xel", "a file of extended events, which has no counters",
        "record Perfmon's counters, or the server itself with `stallmark profile --server`",
    ),
)  # fmt: skip
_TEXT = (
    _Text(
        r'\A"\(PDH-CSV .*?\\(Physical Cpu|Group Cpu|Numa Node)\(', "perfmon",
        "of esxtop, which counts all machines of a host", "record inside the virtual machine",
    ),
    _Text(rf"\A{PERFMON.pattern}", "perfmon"),
    _Text(r'\A\{\s*"sysstat"(?=[\s\S]*("timestamp"\s*:\s*\{|"sysdata-version"|"file-date"))', "sar"),
    _Text(r'\A\{\s*"sysstat"', "iostat"),
    _Text(r'\A\{(?=[\s\S]{0,4096}"status")[\s\S]*"(result|error)', "prometheus"),
    _Text(rf"^[ \t]*({REPORT}|(tps|r/s)[ \t].*[ \t]Device[ \t]*$)", "iostat"),
    _Text(
        rf"^\S.*\b{REPORT}", None,
        "of iostat with more before each line", "cut that off, as with `sed 's/^HOST: //' FILE > new`",
    ),
    _Text(
        rf"{_SAR}(CPU\s|tps\s|DEV\s|LINUX[ -]RESTART|.*[ \t]DEV\s*$)", None,
        "text of sar", _JSON,
    ),
    _Text(
        r"\A(# hostname;interval;timestamp;|[^;\n]+;-?\d+;\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^;\n]*;)", None,
        "text of `sadf -d`", _JSON,
    ),
    _Text(rf"\A{HEAD.pattern}", None, "of another tool of sysstat", f"{_IOSTAT}; if it is of sar, {_JSON}"),
    _Text(r"\A[{[<]", None, "in no format known here"),
    _Text(r"^(procs[ \t]+-+[ \t]*memory|[ \t]*r +b +(swpd|w) |kthr +memory)", None, "of vmstat", _IOSTAT),
    _Text(r"\AAAA,", None, "of nmon", _IOSTAT),
    _Text(
        r'\A("?(pcp-)?[Dd](stat|ool) [\d.]+ CSV|-+(total-)?cpu-usage-+ -|You did not select any)', None,
        "of dstat", _IOSTAT,
    ),
    _Text(
        r"^[ \t]*((AIX|SunOS|HP-UX|FreeBSD|Darwin) |System configuration: lcpu=|tty:[ \t]+tin|Disks:[ \t]+% tm_act"
        r"|extended device statistics|(device +)?r/s +w/s +kr/s|tty[ \t]+\w+\d+[ \t].*\bcpu)", None,
        "of iostat or sar on AIX, Solaris, HP-UX or BSD",
        "put its series into a CSV with a column of times, as docs/import-a-profile.md describes",
    ),
)  # fmt: skip
_READ = (
    f"Perfmon's CSV, iostat as in {AS_TEXT}, sar as in {AS_SADF}, a range query of Prometheus as JSON, and CSV with a "
    "column of times"
)


def detect_format(path: Path, *, of_profile: bool = False) -> Format:
    """Return the format of a file.

    Raise StallmarkError for one of another kind, or of a kind that makes no profile; OSError if it cannot be opened.
    """
    start = head_bytes(path)
    for kind in _BINARY if b"\0" in start else ():
        if start.startswith(kind.start) and path.name.lower().removesuffix(".gz").endswith(kind.suffix):
            raise StallmarkError(f"{path} is {kind.name}: {kind.remedy}.")
    head = head_of(path).lstrip("\ufeff\r\n ")
    for text in _TEXT:
        if re.search(text.pattern, head, re.M):
            if text.format and not (of_profile and text.name):
                return text.format
            raise StallmarkError(f"{path} is {text.name}: {text.remedy or f'use {_READ}'}.")
    return "csv"


def open_recording(path: Path, format: Format, schedule: Schedule | None = None) -> Recorded | None:
    """Return the reader of a file of Perfmon, iostat or sar; None for another format.

    Raise StallmarkError for a schedule of a file whose times are always known.
    """
    if format == "iostat":
        iostat = IostatJson(path) if head_of(path).lstrip().startswith("{") else IostatText(path)
        iostat.schedule = schedule
        return iostat
    if schedule:
        raise StallmarkError(f"{path} has its own times: --start and --interval are for iostat alone. Leave them out.")
    return Perfmon(path) if format == "perfmon" else Sadf(path) if format == "sar" else None
