"""Causes in sentences."""

from collections.abc import Sequence

from stallmark.analysis.cause.evidence import CPU_BUSY, CPU_TIME, READ_TIME, READS, SYNCS, WRITES
from stallmark.analysis.cause.split import Split
from stallmark.analysis.cause.summary import PARTS, STORAGE, Evidence, Storage
from stallmark.format import number, per_transaction, percent
from stallmark.stats.thresholds import CAUSE_LITTLE

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
_NUMBERS = {"read": READS, "log": SYNCS, "other I/O": WRITES}


def nothing_changed(
    storage: Storage, whole: Evidence, parts: Sequence[Evidence], figures: Sequence[Evidence], level: Sequence[float]
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


def not_split(whole: Evidence, unknown: float) -> str:
    """Where the answer hangs on parts of I/O whose single I/Os nobody counted or timed."""
    return (
        f"Whether storage is the cause is not known. {_turned(whole)}; {_of_change(unknown)} of the change is waiting "
        "for I/O of which it is not known whether single ones took longer or there were more of them."
    )


def changed(
    storage: Storage,
    whole: Evidence,
    parts: Sequence[Evidence],
    figures: Sequence[Evidence],
    shares: Split,
    largest: Evidence,
) -> tuple[str, str]:
    """The sentence, and the same as the end of another: "because …"."""
    explains = f"the time of single I/Os explains {_of_change(shares.io)} of the change"
    of_io = _storage_reason(parts, figures, whole.change, shares)
    if storage == "is the cause":
        return f"Storage is the cause. {_turned(whole)}; {explains}: {of_io}.", f"because {of_io}"
    of_number = shares.fewer >= max(shares.io, _other_share(parts)) or _is_of_number(largest, shares)
    reason = _number_reason(figures, whole.change, shares) if of_number else _part_reason(largest, figures)
    if storage == "is not the cause":
        return (
            f"Storage is not the cause. {_turned(whole)}; {explains}, but {reason}.",
            f"because {reason} (storage is not the cause)",
        )
    more = "" if reason == of_io else f" Besides, {reason}."
    return (
        f"Storage is one of several causes. {_turned(whole)}; {explains}: {of_io}.{more}",
        f"partly because {of_io}" if not more else f"partly because {of_io}, and {reason}",
    )


def _turned(whole: Evidence) -> str:
    return f"A transaction took {number(whole.b)} ms instead of {number(whole.a)} ms"


def _storage_reason(parts: Sequence[Evidence], figures: Sequence[Evidence], change: float, shares: Split) -> str:
    """Of the parts of I/O the one that the device changed most; "read stalls fell from 4.1 to 1.9 ms" is of a single
    read."""
    most = max(shares.device, key=lambda name: shares.device[name])
    part = next((one for one in parts if one.name == PARTS[most]), None)
    if part is None:
        return "waiting for I/O hardly changed"
    if most == "read":
        for place in ("server", "device"):
            for one in figures:
                if one.name == f"{READ_TIME} ({place})" and one.change * change > 0:
                    return f"read stalls {_went(one)} ms"
    return _part_reason(part, figures)


def _part_reason(part: Evidence, figures: Sequence[Evidence]) -> str:
    if part.name == PARTS["cpu"]:
        for one in figures:
            if one.name == CPU_TIME and one.change * part.change > 0 and abs(one.change) > 0.1 * one.a:
                return f"CPU time per transaction {_went(one)} ms, and with waiting for a CPU {_went(part)} ms"
        return f"CPU time and waiting for a CPU {_went(part)} ms per transaction"
    if part.name == PARTS["read"]:
        return f"waiting for reads {_went(part)} ms per transaction"
    if part.name == PARTS["lock"]:
        return f"waiting for locks {_went(part)} ms per transaction"
    return f"time for {part.name} {_went(part)} ms per transaction"


def _is_of_number(part: Evidence, shares: Split) -> bool:
    return any(part.name == PARTS[name] and shares.number[name] >= shares.device[name] for name in shares.number)


def _number_reason(figures: Sequence[Evidence], change: float, shares: Split) -> str:
    """Of the parts whose I/Os became fewer or more: those that matter, the one that does most first."""
    order = sorted(shares.number, key=lambda name: -shares.number[name])
    named = [name for name in order if shares.number[name] > CAUSE_LITTLE] or order[:1]
    return " and ".join(_number_of(name, figures, change) for name in named)


def _number_of(name: str, figures: Sequence[Evidence], change: float) -> str:
    """What the server counted, where it went the same way as what was waited for."""
    for one in figures:
        if one.name == _NUMBERS[name] and one.change * change > 0:
            verb = "fell" if one.change < 0 else "rose"
            return f"{one.name} {verb} from {per_transaction(one.a)} to {per_transaction(one.b)}"
    waited = {"read": "reads", "log": "syncs of the log", "other I/O": "writes and other I/O of files"}[name]
    return f"a transaction waited for {'fewer' if change < 0 else 'more'} {waited}"


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
