"""The wording of the laws that the figures of a step must obey: their names, their two sides, and if they agree."""

from collections.abc import Mapping

from stallmark.analysis.bottleneck.summary import Law, LawKind
from stallmark.analysis.finding import Kind
from stallmark.format import number, percent
from stallmark.report.text import says
from stallmark.report.text.templates import Format, Template
from stallmark.report.text.terms import PART_NAMES

LAWS: Mapping[Kind, tuple[str, str, str, str]] = {
    LawKind.USERS: (
        "Little’s law of the users",
        "users that were running",
        "transactions per second × (latency + think time)",
        "users",
    ),
    LawKind.READS: (
        "Little’s law of the reads",
        "reads per second × time of a read, by the server’s counters",
        "sessions seen waiting for a read",
        "sessions",
    ),
    LawKind.DEVICE: (
        "Utilisation law of the {role:role}",
        "busy share of its spindles, as it counted",
        "I/Os per second × service time ÷ spindles",
        "share of the time",
    ),
    LawKind.CPU: (
        "Utilisation law of the CPU",
        "cores busy, by the machine’s counters",
        "sessions seen running or waiting for a CPU, and the driver’s CPU time",
        "cores",
    ),
    LawKind.WAITS: (
        "Little’s law of waiting for {part:part}",
        "time waited per second, by the server’s counters ({wait_types:joined})",
        "sessions seen waiting for it",
        "sessions",
    ),
}
_ROLES = {"data": "data device", "wal": "log’s device"}
FORMATS: Mapping[str, Format] = {"joined": ", ".join, "part": PART_NAMES.__getitem__, "role": _ROLES.__getitem__}


def law_words(law: Law) -> list[str]:
    """Return the name of a law, its two sides, and their unit."""
    return [Template(text, FORMATS)(**law.finding.facts) for text in LAWS[law.kind]]


def _sides(left: float, right: float) -> str:
    return f"Does not close: {number(left)} on one side, {number(right)} on the other."


def _open(left: float, right: float, few: float) -> str:
    return (
        f"Whether it closes is not known: {number(left)} by the counters, which may be off by {percent(few)} because "
        f"their samples were few, and {number(right)} seen."
    )


@says(LawKind.USERS)
def _(left: float, right: float, closed: bool) -> str:
    return "Transactions and the time between them account for all users." if closed else _sides(left, right)


@says(LawKind.READS)
def _(left: float, right: float, closed: bool | None, few: float | None) -> str:
    if few:
        return _open(left, right, few)
    if closed is None:
        return f"Users were {number(right)} of the {number(left)} that read by the counters: other loads read too."
    return "Sessions were seen reading for as long as the server counted." if closed else _sides(left, right)


@says(LawKind.DEVICE)
def _(left: float, right: float, closed: bool | None, role: str) -> str:
    what = f"I/Os times their service times account for the busy time of the {_ROLES[role]}"
    if closed is None:
        return f"{what} less well: sequential I/O is served faster than the model’s read and write times say."
    return f"{what}." if closed else _sides(left, right)


@says(LawKind.CPU)
def _(left: float, right: float, closed: bool | None) -> str:
    if closed:
        return f"Sessions on a CPU and the driver account for the machine’s {number(left)} busy cores."
    if right > left:
        return (
            f"Sessions on a CPU or waiting for one, and the driver, would fill {number(right)} cores, of which "
            f"{number(left)} were busy: the others queued for a core, or did not run whenever they were seen running."
        )
    return (
        f"{percent(1 - right / left)} of {number(left)} busy cores were neither sessions seen on a CPU nor the driver: "
        "the kernel’s work for I/O, the server’s own processes, or other programs."
    )


@says(LawKind.WAITS)
def _(left: float, right: float, closed: bool | None, few: float | None, part: str, wait_types: list[str]) -> str:
    if few:
        return _open(left, right, few)
    both = f"{number(left)} by the counters, {number(right)} seen"
    if closed is None:
        return (
            f"The server counted more waiting than users’ sessions were seen in ({both}): its counters hold its own "
            "tasks and other sessions too."
        )
    if closed:
        return "The server counted as much waiting as sessions were seen in."
    return f"Does not close: sessions were seen waiting for longer than the server counted ({both})."
