"""The checks after a round. Each returns what is wrong, in words; nothing where all is well."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stallmark.cli.exit_codes import FAILED, INCOMPLETE, UNEXPECTED
from stallmark.errors import ErrorClass
from stallmark.record.reader import Record
from stallmark.transactions.checks import ConditionResult

LOST_S = {"command": 3, "executor": 2, "conductor": 2, "worker": 2}
"""Executors report four times a second, and a second is written when all have reported it: so much is lost with a
process that is killed, as the documentation states."""
DEVIATIONS = 4
"""A record of few seconds knows the rate of its commits as a draw: those of the time that is lost may be so many
standard deviations more."""


@dataclass
class Counts:
    """The commits of a run as its record has them, by transaction. `doubtful` may have been committed or not;
    `most` is the most of a second, of `seconds`; `before` what the database had counted when the run began."""

    seen: Counter[str] = field(default_factory=Counter)
    doubtful: Counter[str] = field(default_factory=Counter)
    most: dict[str, int] = field(default_factory=dict)
    seconds: int = 0
    before: dict[str, int] = field(default_factory=dict)
    unfinished: int = 0

    @classmethod
    def of(cls, record: Record) -> "Counts":
        counts, made = cls(), record.manifest
        per_second: Counter[tuple[str, int]] = Counter()
        for row in record.table("transactions").to_pylist():
            counts.seen[row["transaction"]] += row["committed"]
            per_second[row["transaction"], row["second"]] += row["committed"]
        counts.seconds = len({second for _, second in per_second})
        for (name, _), number in per_second.items():
            counts.most[name] = max(counts.most.get(name, 0), number)
        for row in record.table("errors").to_pylist():
            if row["error_class"] == ErrorClass.UNKNOWN_OUTCOME:
                counts.doubtful[row["transaction"]] += row["attempts"]
        for workload in [made.workload, *(load.workload for load in made.loads if load.workload)]:
            counts.before |= {name: one.before for name, one in workload.counted.items()}
        counts.unfinished = made.unheard.unfinished if made.unheard else 0
        return counts


def counted(counts: Counts, after: Mapping[str, int], *, lost_s: float = 0.0) -> Iterator[str]:
    """Hold the commits of a record against those that the database counted until `after`. `lost_s`: the seconds of
    which a process that was killed cannot have reported. A record of less than 2 s says nothing of their rate."""
    for name, before in counts.before.items():
        found, seen = after[name] - before, counts.seen[name]
        allowed: float = counts.doubtful[name] + counts.unfinished
        most = max(1, counts.most.get(name, 0)) if counts.seconds >= 2 else math.inf
        lost = lost_s * most if lost_s else 0.0
        allowed += lost + DEVIATIONS * math.sqrt(lost)
        if found < seen:
            yield f"{seen} {name} were seen committed, and the database has {found}"
        elif found > seen + allowed:
            yield f"the database has {found} {name}, {seen} were seen, and {allowed:.0f} may be unknown"


def tables(now: Mapping[str, Sequence[Any]], as_built: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """Hold rows and checksums of tables against those of an undisturbed build."""
    for name, (rows, total) in as_built.items():
        found = now.get(name)
        if found is None:
            yield f"the table {name} is not there"
        elif (int(found[0]), str(found[1])) != (int(rows), str(total)):
            yield f"the table {name} has {found[0]} rows with the sum {found[1]}, built as {rows} with {total}"


def conditions(found: Iterable[ConditionResult]) -> Iterator[str]:
    """Name the consistency conditions that do not hold, or could not be asked."""
    for one in found:
        if one.holds is False or one.refused:
            yield f"the condition “{one.name}” does not hold: {one.refused or one.detail}"


def said(code: int, text: str) -> Iterator[str]:
    """Look at the words of a command that has ended: none may be a traceback, and a failure has its sentence."""
    if "Traceback" in text:
        yield f"a traceback: {text[text.index('Traceback') :].strip().splitlines()[-1]}"
    if code == UNEXPECTED:
        yield f"a bug in Stallmark is said: {text.strip().splitlines()[-1]}"
    elif code > 0 and not text.strip():
        yield f"it ended with {code} and said nothing"


@dataclass(frozen=True)
class Truth:
    """The end of a command as it must be told: its exit codes, and the words of its reason."""

    codes: tuple[int, ...]
    words: str


KILLED = r"killed|SIGKILL|signal 9"
TRUTHS = {
    ("command", "KILL"): Truth((-9,), "killed before it could close the record"),
    ("command", "INT"): Truth((130,), "Ctrl-C"),
    ("group", "INT"): Truth((130,), "Ctrl-C"),
    ("command", "TERM"): Truth((143, -15), "SIGTERM"),
    ("executor", "KILL"): Truth((FAILED, INCOMPLETE), rf"executor.*({KILLED})"),
    ("conductor", "KILL"): Truth((FAILED, INCOMPLETE), rf"(conductor|load driver).*({KILLED})"),
    ("loader", "KILL"): Truth((FAILED,), rf"loader.*({KILLED})"),
    ("server", "KILL"): Truth((FAILED, INCOMPLETE), r"server|PostgreSQL|connection"),
    ("backend", "KILL"): Truth((FAILED, INCOMPLETE), r"server|PostgreSQL|connection"),
    ("guard", "KILL"): Truth((FAILED, INCOMPLETE), r"server|PostgreSQL|connection"),
    ("initdb", "KILL"): Truth((FAILED,), KILLED),
    ("initdb", "INT"): Truth((FAILED,), r"killed|interrupted|SIGINT|signal 2|stopped"),
}


def reason(victim: str, how: str, code: int, text: str, record: Record | None) -> Iterator[str]:
    """Hold the end of a command against what was done to it. One that ended well although it was struck has a record
    that is complete; one that stood still goes on."""
    told = " ".join(((record.incomplete_because or "") if record else text).split())
    truth = TRUTHS.get((victim, how), Truth((0,), ""))
    if record and record.manifest.status == "running" and code != -9:
        yield f"the record says that the run goes on, and the command has ended with {code}"
    elif code == 0:
        if record and record.incomplete_because:
            yield f"the command ended well, and its record says “{told}”"
    elif code not in truth.codes:
        yield f"it ended with {code}, where {' or '.join(map(str, truth.codes))} is true; it says “{told[-300:]}”"
    elif record and not record.incomplete_because:
        if code not in (130, 143, -9):  # stopped when its run was whole already
            yield f"it ended with {code}, and its record says that it is complete"
    elif (record or code > 0) and not re.search(truth.words, told, re.IGNORECASE):
        yield f"the reason is “{told[-300:]}”, after SIG{how} to the {victim}"


def left(
    *,
    processes: Iterable[str] = (),
    shared: Iterable[str] = (),
    temporary: Iterable[str] = (),
    containers: Iterable[str] = (),
    volumes: Iterable[str] = (),
) -> Iterator[str]:
    """Name what is left behind."""
    kinds = {"processes": processes, "shared memory": shared, "temporary files": temporary}
    for what, found in (kinds | {"containers": containers, "volumes": volumes}).items():
        if names := list(found):
            yield f"{what} left behind: {', '.join(names)}"


def drafts(folder: Path) -> Iterator[str]:
    """Name drafts, half-removed folders and crash logs below a folder."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".new", ".old") or re.fullmatch(r"error-.*\.log", path.name):
            yield str(path.relative_to(folder))


def in_json(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return what a command said in JSON, and what is wrong with it."""
    try:
        return json.loads(text[text.index("{") :]), []
    except ValueError:
        return {}, [f"no JSON: {text.strip()[-300:]}"]


def settings(now: Mapping[str, int], before: Mapping[str, int]) -> Iterator[str]:
    """Name the settings of a server that are not as they were."""
    for name, value in before.items():
        if now.get(name) != value:
            yield f"“{name}” is {now.get(name)}, and was {value}"


def secrets(folder: Path, *words: str) -> Iterator[str]:
    """Name the files below a folder that hold one of these words."""
    for path in folder.rglob("*"):
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words):
            yield f"a password stands in {path.relative_to(folder)}"


def figures(step: Mapping[str, Any], counts: Counts, seconds: float) -> Iterator[str]:
    """Hold the rate of a step, of one that has no warm-up, against the commits of its run and its planned time: right
    to a third, or marked as invalid."""
    if step["invalid"] or not step["tps"]:
        return
    expected = sum(counts.seen.values()) / seconds
    if not expected * 2 / 3 < step["tps"] < expected * 3 / 2:
        yield f"{step['tps']:.1f} TPS are shown, and {expected:.1f} were committed"
    if abs(step["measured_s"] - seconds) > 2:
        yield f"{step['measured_s']} s are said to have been measured, of {seconds} planned"
    for name in ("data_io", "wal_io", "device_io"):
        rate = (step.get(name) or {}).get("seconds")
        if rate is not None and not -0.1 < rate <= seconds + 3:
            yield f"{name} was taken over {rate} s, of {seconds}"
