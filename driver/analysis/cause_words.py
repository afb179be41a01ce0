"""Causes in sentences."""

from collections.abc import Sequence

from stallmark.driver.analysis.cause_evidence import CPU_BUSY, CPU_TIME, READ_TIME, READS
from stallmark.driver.analysis.cause_summary import PARTS, STORAGE, Evidence, Storage
from stallmark.driver.analysis.words import number, per_transaction, percent

NOT_KNOWN = (
    "The cause is not known: the users’ sessions were not looked at in every run (collector “Waits of the users”), so "
    "nothing tells where response time went."
)
UNCERTAIN = "Runs scatter: no single part of I/O is known to have changed, only their sum points at storage."
NO_DEVICE = "The device’s own counters are not known, so waiting for a CPU after an I/O is counted as I/O."
LAW_FAILED = "A law that the figures must obey does not close in a run: see the laws of its step."
LOCKS = (
    "Locks are a large part of the change. Who holds one may wait for I/O himself, so some of it may be storage’s "
    "doing at second hand."
)

_STORAGE_TITLES = {PARTS[name] for name in STORAGE}


def nothing_changed(
    storage: Storage,
    whole: Evidence,
    parts: Sequence[Evidence],
    figures: Sequence[Evidence],
    level: Sequence[float],
) -> str:
    """Of two sides whose response times are alike as far as these runs show."""
    times = f"{number(whole.a)} and {number(whole.b)} ms"
    if storage != "is not the cause":
        return f"No change of the response time was shown ({times}), of which I/O was {_shares(level)}."
    said = [f"I/O is {_shares(level)} of it"]
    if other := max((p for p in parts if p.name not in _STORAGE_TITLES), key=lambda p: p.b, default=None):
        said.append(f"{other.name} {percent(other.b / whole.b)}")
    if cpu := next((one for one in figures if one.name == CPU_BUSY), None):
        said.append(f"and the CPUs were {_shares([cpu.a, cpu.b])} busy")
    return (
        f"Storage is not the cause: no change of the response time was shown ({times}), and storage has little part in "
        f"it: {', '.join(said)}."
    )


def changed(
    storage: Storage,
    whole: Evidence,
    parts: Sequence[Evidence],
    figures: Sequence[Evidence],
    io: float,
    fewer: float,
    largest: Evidence,
) -> tuple[str, str]:
    """The sentence, and the same as the end of another: "because …". `io` and `fewer` are shares of the change: what
    single I/Os took, and what came of another number of reads."""
    turned = f"A transaction took {number(whole.b)} ms instead of {number(whole.a)} ms"
    explains = f"the time of single I/Os explains {_of_change(io)} of the change"
    if storage == "is the cause":
        reason = _storage_reason(parts, figures, whole.change)
        return f"Storage is the cause. {turned}; {explains}: {reason}.", f"because {reason}"
    reason = (
        _reads_reason(figures) if fewer >= max(io, _other_share(parts)) else _part_reason(largest, figures)
    )
    if storage == "is not the cause":
        return (
            f"Storage is not the cause. {turned}; {explains}, but {reason}.",
            f"because {reason} (storage is not the cause)",
        )
    of_io = _storage_reason(parts, figures, whole.change)
    more = "" if reason == of_io else f" Besides, {reason}."
    return (
        f"Storage is one of several causes. {turned}; {explains}: {of_io}.{more}",
        f"partly because {of_io}" if not more else f"partly because {of_io}, and {reason}",
    )


def _storage_reason(parts: Sequence[Evidence], figures: Sequence[Evidence], change: float) -> str:
    """Of the parts of I/O the one that changed most; "read stalls fell from 4.1 to 1.9 ms" is of a single read."""
    of_io = [part for part in parts if part.name in _STORAGE_TITLES]
    part = max(of_io, key=lambda one: one.change / change)
    if part.name == PARTS["read"]:
        for place in ("server", "device"):
            for one in figures:
                if one.name == f"{READ_TIME} ({place})" and one.change * change > 0:
                    return f"read stalls {_went(one)} ms"
    return _part_reason(part, figures)


def _part_reason(part: Evidence, figures: Sequence[Evidence]) -> str:
    if part.name == PARTS["cpu"]:
        for one in figures:
            if one.name == CPU_TIME and one.change * part.change > 0 and abs(one.change) > 0.1 * one.a:
                return (
                    f"CPU time per transaction {_went(one)} ms, and with waiting for a CPU {_went(part)} ms"
                )
        return f"CPU time and waiting for a CPU {_went(part)} ms per transaction"
    if part.name == PARTS["read"]:
        return f"waiting for reads {_went(part)} ms per transaction"
    if part.name == PARTS["lock"]:
        return f"waiting for locks {_went(part)} ms per transaction"
    return f"time for {part.name} {_went(part)} ms per transaction"


def _reads_reason(figures: Sequence[Evidence]) -> str:
    reads = next(one for one in figures if one.name == READS)
    verb = "fell" if reads.change < 0 else "rose"
    return (
        f"physical reads per transaction {verb} from {per_transaction(reads.a)} to {per_transaction(reads.b)}"
    )


def _other_share(parts: Sequence[Evidence]) -> float:
    return max((p.share or 0.0 for p in parts if p.name not in _STORAGE_TITLES), default=0.0)


def _went(one: Evidence) -> str:
    a, b = number(one.a), number(one.b)
    return f"{'fell' if one.change < 0 else 'rose'} from {a} to {b}"


def _of_change(share: float) -> str:
    """More than all of a change is possible: other parts then went the other way."""
    if share > 1:
        return "more than all"
    return "nothing" if share <= 0 else percent(share)


def _shares(level: Sequence[float]) -> str:
    a, b = (percent(share) for share in level)
    return a if a == b else f"{a} and {b}"
