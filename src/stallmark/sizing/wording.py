"""The wording of a sizing: the need, the headroom of candidates, and the answers to both."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from stallmark.analysis.finding import Finding, Kind
from stallmark.errors import as_reason
from stallmark.format import display_name, exact, listed, moment, number, percent, plural, quoted, roughly, short, size
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.report.text import Format, says
from stallmark.report.text.ceiling import limit_of
from stallmark.report.text.profile import slots
from stallmark.sizing.candidate import Standing
from stallmark.sizing.manifest import Measured, Sizing
from stallmark.sizing.reach import Method, SizingKind

_MB = 1e6
TITLE = "Will it carry my load?"
QUESTION = "Does new hardware carry the load of a profile, how much more, and what limits it first?"
CANDIDATES = (
    "Headroom is the highest carried load ÷ the need. Its interval is from the highest level that held to the lowest "
    "that broke. The lower of replay and stand-in counts. TPS: the profile’s transactions at the carried load."
)
CHART = (
    "The load is a multiple of the need: at 1 a candidate gets the load that it must carry. Replay: the profile’s I/O "
    "as raw load, with the reads of the slowest window. Stand-in: transactions of Stallmark on its own database, "
    "with as much I/O as the profile’s server."
)
PLAYED = "Replayed windows of the profile"
DEMAND = (
    "The profile’s windows that were replayed, as means over their observed seconds. Each is the busiest by the "
    "measure next to it, and a candidate must carry every one."
)
MATCHED = "Per second in the profile’s busiest window, and by the stand-in at the same load."
LEVELS = "Every level that the replay tried: I/Os due and I/Os done, per second, and their duration in ms."
NOT_TESTED = "Not tested"
ALONE = "report it alone, or give several sizings to `stallmark size`"
NEED_MARK = "need"
IN_PRODUCTION = "in production (from the profile)"
EMULATED_CANDIDATES = (
    "The storage of the candidates is emulated: this is an exercise, and does not describe a real array."
)
UNTESTED = "Each of these can make the real server carry less than shown, or more."
STANDINGS: Mapping[Standing, str] = {
    "carries": "carries it",
    "carries_not": "does not carry it",
    "open": "open",
    "unknown": "not known",
}
METHODS: Mapping[Method, str] = {"replay": "replay", "stand_in": "stand-in"}
QUANTITIES: Mapping[str, str] = {
    "reads": "reads per s",
    "read_bytes": "read MB/s",
    "writes": "writes per s",
    "log_bytes": "log MB/s",
    "cpu_cores": "CPU cores busy",
}
BECAUSE: Mapping[Measured | Literal["together"], str] = {
    "ios_per_s": "most I/Os",
    "reads_per_s": "most reads",
    "writes_per_s": "most writes",
    "log_writes_per_s": "most log writes",
    "read_bytes_per_s": "most bytes read",
    "write_bytes_per_s": "most bytes written",
    "log_bytes_per_s": "most bytes of the log",
    "together": "most of several at once",
}
"""The reasons why a window is played."""
MEASURES: Mapping[Measured, str] = {
    "ios_per_s": "I/Os per s",
    "reads_per_s": "reads per s",
    "writes_per_s": "writes of data per s",
    "log_writes_per_s": "log writes per s",
    "read_bytes_per_s": "MB/s read",
    "write_bytes_per_s": "MB/s written to data",
    "log_bytes_per_s": "MB/s written to the log",
}
STREAMS: Mapping[str, str] = {"reads": "reads", "writes": "writes of data", "log": "writes of the log"}


def per_second(measure: Measured, value: float) -> str:
    """Write a measure of the demand: 370 MB/s read."""
    return f"{number(value / _MB if 'bytes' in measure else value)} {MEASURES[measure]}"


def in_times(value: float) -> str:
    """Write a multiple: 1.32×."""
    return f"{short(value)}×"


def span(low: float, high: float | None) -> str:
    """Write a range of multiples: "1.25 to 1.38", "at least 4", "under 0.5"."""
    if not low and high is not None:
        return f"under {short(high)}"
    return f"at least {short(low)}" if high is None else f"{short(low)} to {short(high)}"


def service_level(level: ServiceLevelObjective) -> str:
    """Write a service level: "reads within 20 ms (oltp)"."""
    name = f" ({level.name})" if level.name != "read" else ""
    reads = [f"reads within {level.read_ms:g} ms{name}"] if level.read_ms is not None else []
    return listed([*reads, *level.transactions])


def progress(sizing: Sizing) -> str:
    """Return the progress of a sizing."""
    replay, stand_in = sizing.replay, sizing.stand_in
    levels = len(replay.levels) if replay else 0
    levels_done = "not begun" if not levels else f"{levels} level{'s' * (levels > 1)}"
    done = f"replay: {levels_done}{', ended' if replay and replay.outcome else ''}"
    trial = "not begun" if stand_in is None else "matched" if stand_in.ceiling is None else "searched"
    reason = f" ({as_reason(sizing.because)})" if sizing.because else ""
    return f"The sizing is {sizing.status}{reason}; {done}; stand-in: {trial}."


def first_limit(ends: Finding | None) -> str:
    """Return the first limit, as a clause; empty if unknown."""
    if ends is None:
        return ""
    return _replay_ends(ends.facts) if ends.kind is SizingKind.REPLAY_ENDS else _stand_in_ends(ends.facts)


def _replay_ends(facts: Mapping[str, Any]) -> str:
    slow, behind = [], []
    if facts["limit_ms"] is not None:
        slow = [f"reads take longer than {facts['limit_ms']:g} ms{_in_windows([facts['slow_in']])}"]
    if facts["behind"]:
        streams = listed([STREAMS[name] for name in facts["behind"]])
        behind = [f"{streams} fall behind{_in_windows(facts['behind_in'])}"]
    return listed([*slow, *behind])


def _in_windows(windows: Sequence[Sequence[Any] | None], *, begin: bool = False) -> str:
    """Return a clause with the windows that broke, with their begin on request; empty if the profile has only one
    window."""
    known = [window for window in windows if window]
    if not known:
        return ""
    named = [f"{BECAUSE[window[0]]}{f' ({moment(window[1])})' if begin else ''}" for window in known]
    return f" in the window{'s' * (len(named) > 1)} with {listed(named)}"


def _stand_in_ends(facts: Mapping[str, Any]) -> str:
    limits = [_missed_limit(*missed) for missed in facts["missed"]]
    limit = limit_of(facts["verdict"])
    return ": ".join(filter(None, [listed(limits), limit]))


def _missed_limit(subject: str, transaction: str | None, kind: str | None, limit_ms: float | None) -> str:
    if subject == "backlog":
        return "a growing number of transactions waits"
    if subject == "queries":
        return f"a growing number of queries of {transaction} waits"
    if subject == "reads":
        return f"reads take longer than {limit_ms:g} ms"
    return f"{kind} of {plural(display_name(transaction)) if transaction else 'transactions'} is above {limit_ms:g} ms"


def _limit_clause(ends: Finding | None) -> str:
    clause = first_limit(ends)
    return f"; beyond that {clause}" if clause else ""


SENTENCES: Mapping[Kind, str] = {
    SizingKind.UNKNOWN: "Nothing is known about “{candidate}”: neither replay nor stand-in gave an answer.",
    SizingKind.ENDS: "“{candidate}”: {ends:clause}.",
    SizingKind.NEED_BELOW_BUSIEST: (
        "The busiest {window_s:roughly} need {times:short}× the load of {percentile} of the {interval_s:slots}: in "
        "that time even a candidate that carries the need may break the service level."
    ),
    SizingKind.TODAY: (
        "“{candidate}” carries {ratio:short}× ({low:short} to {high:short}) the load of “{today}”, by {method:method}."
    ),
    SizingKind.TODAY_OPEN: (
        "“{candidate}” and “{today}” cannot be compared by {method:method}: at least one of them has no ceiling "
        "between two levels."
    ),
    SizingKind.TODAY_BELOW: (
        "“{today}” did carry the profile’s busiest windows, but by {method:method} it carries less than {high:short}× "
        "their load: the real server may need less than was tested, or may not meet the service level either."
    ),
    SizingKind.SLOW_TODAY: (
        "In the profile’s window with {because:window}, from {begin:moment}, reads take {read_ms:number} ms on "
        "average today, more than the {limit_ms:g} ms of the service level."
    ),
}
FORMATS: Mapping[str, Format] = {"method": METHODS.__getitem__, "slots": slots, "window": BECAUSE.__getitem__}


@says(SizingKind.CARRIES)
def _(
    candidate: str, headroom: float | None, low: float, high: float | None, ends: Finding | None, untried: bool = False
) -> str:
    if high is None:
        beyond = "no higher load was tried" if untried else "higher loads are unknown"
        return f"{quoted([candidate])} carries the load with at least {in_times(low)} headroom: {beyond}."
    much = f"{short(low)} to {in_times(high)} headroom"
    if headroom is not None:
        much = f"{in_times(headroom)} headroom ({span(low, high)})"
    return f"{quoted([candidate])} carries the load with {much}{_limit_clause(ends)}."


@says(SizingKind.CARRIES_NOT)
def _(candidate: str, headroom: float | None, low: float, high: float, ends: Finding | None) -> str:
    if not low:
        clause = first_limit(ends)
        return f"{quoted([candidate])} does not carry even {in_times(high)} the need{f': {clause}' if clause else ''}."
    much = (
        f"{short(low)} to {in_times(high)} the need"
        if headroom is None
        else f"{in_times(headroom)} the need ({span(low, high)})"
    )
    return f"{quoted([candidate])} carries only {much}{_limit_clause(ends)}."


@says(SizingKind.OPEN)
def _(
    candidate: str,
    headroom: float | None,
    low: float,
    high: float | None,
    ends: Finding | None,
    whole: bool,
    without: Sequence[Method],
    unplayed: Sequence[Measured],
    peaks_known: bool,
    untried: bool = False,
) -> str:
    reasons = "" if whole else " The sizing is not finished."
    reasons += (
        f" The window with {listed([BECAUSE[measure] for measure in unplayed])} was not replayed." if unplayed else ""
    )
    reasons += "" if peaks_known else " It is unknown whether the window with most bytes was replayed."
    reasons += f" The {METHODS[without[0]]} gave no answer." if without else ""
    name = f"Inconclusive for {quoted([candidate])}"
    if not low and high is not None:
        limit = first_limit(ends)
        return f"{name}: no level up to {in_times(high)} the need was carried{f': {limit}' if limit else ''}.{reasons}"
    none = ", and no higher load was tried" if high is None and untried else ""
    return f"{name}: it carries {span(low, high)} times the need{none}{_limit_clause(ends)}.{reasons}"


def need(per_s: float, multiple: float) -> str:
    """Write the need in its unit, and as the multiple at which all windows are played."""
    return f"need of {number(per_s)} I/Os per s, {in_times(multiple)} the busiest window"


@says(SizingKind.NEED)
def _(
    per_s: float, multiple: float, growth: float, window_per_s: float, window_s: float, begin: float, percentile: str,
    minutes_per_s: float, others: int, interval_s: float,
) -> str:  # fmt: skip
    which = f"{'the highest' if percentile == 'max' else percentile} of the {slots(interval_s)}"
    return (
        f"The need is {number(per_s)} I/Os per second: {_base(minutes_per_s, growth)} {which}. It is "
        f"{in_times(multiple)} the {number(window_per_s)} of the busiest {roughly(window_s)}, which began at "
        f"{moment(begin)}.{_others(others)}"
    )


@says(SizingKind.NEED_BY_WINDOW)
def _(
    per_s: float, growth: float, window_per_s: float, window_s: float, begin: float, percentile: str | None,
    minutes: int, others: int, interval_s: float,
) -> str:  # fmt: skip
    reason = ""
    if percentile is not None:
        reason = f" This window decides because {minutes} {slots(interval_s)} are too few for {percentile}."
    return (
        f"The need is {number(per_s)} I/Os per second: {_base(window_per_s, growth)} the busiest {roughly(window_s)}, "
        f"which began at {moment(begin)}.{reason}{_others(others)}"
    )


def _base(per_s: float, growth: float) -> str:
    """Write the base of the need, with the growth over it: growth is part of the need, and written only here."""
    return "those of" if growth == 1 else f"growth of {in_times(growth)} over the {number(per_s)} of"


def _others(windows: int) -> str:
    if not windows:
        return ""
    which = "other window counts" if windows == 1 else f"other {windows} windows count"
    return f" The {which} at the same multiple."


@says(SizingKind.METHODS)
def _(candidate: str, multiple: float, replay: Sequence[float | None], stand_in: Sequence[float | None]) -> str:
    by = [
        f"{span((low or 0.0) / multiple, None if high is None else high / multiple)} by {name}"
        for name, (low, high, _) in (("replay", replay), ("stand-in", stand_in))
    ]
    return f"In multiples of the need, {quoted([candidate])} carries {listed(by)}; the lower counts."


@says(SizingKind.REPLAY_ENDS)
def _(
    level: float,
    read_ms: float | None,
    slower: float | None,
    limit_ms: float | None,
    slow_in: Sequence[Any] | None,
    behind: Sequence[str],
    behind_in: Sequence[Sequence[Any]],
    late: float | None,
) -> str:
    slow, fell = [], []
    if slower is not None:
        slow = [f"{percent(slower)} of the reads took longer than {limit_ms:g} ms"]
    elif read_ms is not None:
        slow = [f"reads took {number(read_ms)} ms, longer than {limit_ms:g} ms"]
    slow = [f"{clause}{_in_windows([slow_in], begin=True)}" for clause in slow]
    if behind and late is not None:
        streams = f"{listed([STREAMS[name] for name in behind])} fell behind{_in_windows(behind_in, begin=True)}"
        fell = [f"{streams}: up to {percent(late)} of them came late"]
    clauses = "; ".join([*slow, *fell]) or "too little was observed to judge the service level"
    return f"In the replay, at {in_times(level)} the busiest windows, {clauses}."


@says(SizingKind.STAND_IN_ENDS)
def _(
    level: float,
    missed: Sequence[Sequence[Any]],
    verdict: Finding | None,
    busy_share: float | None,
    cpu_share: float | None,
) -> str:
    clauses = _stand_in_ends({"missed": missed, "verdict": verdict})
    clauses = clauses or "too little was observed to judge the service level"
    busy = [f"the storage of the data was {percent(busy_share)} busy"] if busy_share is not None else []
    busy += [f"the CPUs were {percent(cpu_share)} busy"] if cpu_share is not None else []
    beside = f" ({listed(busy)})" if busy else ""
    return f"With the stand-in, at {in_times(level)} the busiest window, {clauses}{beside}."


@says(SizingKind.MEMORY)
def _(
    candidate: str,
    today_bytes: float | None,
    memory_bytes: int | None,
    database_bytes: float | None,
    stand_in_share: float | None,
) -> str:
    parts = []
    if today_bytes is not None:
        parts.append(f"today the buffer pool is {_pool(today_bytes, database_bytes)}")
    if memory_bytes is not None:
        subject = "it" if parts else "the buffer pool"
        parts.append(f"with {quoted([candidate])} {subject} is to be {_pool(memory_bytes, database_bytes)}")
    if stand_in_share is not None:
        parts.append(
            f"the stand-in on {quoted([candidate])} ran with a buffer pool of {percent(stand_in_share)} of its data"
        )
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _pool(pool_bytes: float, database_bytes: float | None) -> str:
    share = f", {percent(pool_bytes / database_bytes)} of the data" if database_bytes else ""
    return f"{size(pool_bytes)}{share}"


@says(SizingKind.CHEAPEST)
def _(candidate: str, alike: Sequence[str], cost: float, carrying: int, without_cost: Sequence[str]) -> str:
    names = f"{quoted([candidate, *alike])} {'are' if alike else 'is'} the cheapest ({exact(cost)})"
    if without_cost:
        known = carrying - len(without_cost)
        unknown = f"that of {quoted(without_cost)} is unknown"
        return f"Of the {known} candidates that carry the load and whose cost is known, {names}; {unknown}."
    return f"Of {carrying} candidates that carry the load, {names}."
