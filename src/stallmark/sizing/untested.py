"""The wording of the limits of a sizing: parts of the load that were not tested, or not as they will be."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark.analysis.finding import Kind
from stallmark.errors import as_reason
from stallmark.format import listed, moment, quoted, roughly, short, size
from stallmark.report.text import Format, says
from stallmark.sizing.manifest import Measured
from stallmark.sizing.reach import Method, SizingKind
from stallmark.sizing.wording import BECAUSE, MEASURES, METHODS, STREAMS, in_times, per_second

_VISIBLY = 1.005
"""Smaller ratios are written as 1×."""


SENTENCES: Mapping[Kind, str] = {
    SizingKind.NO_REPLAY: (
        "The profile’s I/O was not replayed on “{candidate}”: its sizes, bursts and log were not tested."
    ),
    SizingKind.NOT_COMPARED: (
        "It is unknown whether the stand-in on “{candidate}” matches the profile in {quantities:quantities}."
    ),
    SizingKind.LOG_AMONG_DATA: (
        "The profile does not separate log writes: they were replayed as data writes, so a slow log would go unnoticed."
    ),
    SizingKind.SLOW_PERCENTILE: (
        "At the highest level that the replay on “{candidate}” carried, the mean of reads is within {limit_ms:g} ms, "
        "but their {percentile} is not: {slower:percent} took longer."
    ),
    SizingKind.GROUPED: (
        "The replay on “{candidate}” wrote the log in groups of up to {grouped:number} writes, first at "
        "{level:short}× the busiest windows: the log’s device does not keep up with single writes, and a server then "
        "makes some of them wait."
    ),
    SizingKind.COMPRESSED: (
        "On “{candidate}” a window was replayed in {played:percent} of its time: bursts were shorter than in "
        "production, and may have fitted into a cache that real bursts fill."
    ),
    SizingKind.BEHIND: (
        "The replay on “{candidate}” issued half of the {stream:stream} of a level {behind_ms:number} ms "
        "late or more, though no backlog grew: the machine was busy, or all threads waited for earlier ones. On a busy "
        "machine the times are too long: repeat it on a quiet one."
    ),
    SizingKind.POOLS_DIFFER: (
        "The buffer pool of “{candidate}” is to hold {shares[0]:percent} of the data, and that of its stand-in "
        "held {shares[1]:percent}."
    ),
    SizingKind.PEAKS_NOT_KNOWN: (
        "It is unknown whether another window of the profile has more bytes: this sizing was made when windows were "
        "chosen by I/Os and writes alone. Pass its profile to stallmark size, which checks this."
    ),
    SizingKind.BEYOND_PLAYED: (
        "Not replayed: the window from {begin:moment} differs most from those of this sizing. It has more "
        "{measure:measure} than the most similar of them, by {share:percent} of the profile’s highest value."
    ),
    SizingKind.DATA_GROWTH: (
        "Growth of {growth:short}× applies to I/Os only. If the database grows as well, a smaller share of it is in "
        "memory, and it reads more."
    ),
    SizingKind.IO_SIZES: (
        "Sizes of I/Os are means: the few large reads of a report among many small reads were replayed with one equal "
        "size."
    ),
    SizingKind.CACHES: (
        "The replay accesses all parts of its file equally. If real data have a hot part, the storage’s caches serve "
        "them better; if a cache is full only after hours, the storage does worse from then on."
    ),
    SizingKind.FEW_QUERIES: (
        "The cost of a query of {load} on “{candidate}” was measured on the {ended:,} of {of} queries that completed, "
        "so it depends on which ones these were."
    ),
    SizingKind.QUERIES_WAITED: (
        "At the profile’s load {share:percent} of the queries of {load} waited for a stream on “{candidate}”: at "
        "higher loads the queries may do less than required. Give them more streams."
    ),
}


@says(SizingKind.UNFINISHED)
def _(candidate: str, running: bool, said: str | None) -> str:
    if running:
        return f"The sizing of “{candidate}” is under way, or was killed: this is what it shows so far."
    reason = f" ({as_reason(said)})" if said else ""
    return f"The sizing of “{candidate}” ended early{reason}: this is what it shows."


@says(SizingKind.UNCONFIRMED)
def _(candidate: str, method: Method, runs: int, of: int, running: bool) -> str:
    which = "The search" if of == 1 else f"{runs} of {of} searches"
    by = f"{which} by {METHODS[method]} on “{candidate}”"
    if running:
        return f"{by} gave no answer yet."
    return f"{by} gave no answer: it was cut short, its levels contradicted each other, or too little was measured."


@says(SizingKind.GAP)
def _(candidate: str, method: Method, levels: Sequence[float], other_level: bool) -> str:
    low, high = levels
    reason = "it was searched under another service level, and " if other_level else ""
    return (
        f"“{candidate}” was not measured between {short(low)} and {in_times(high)} the busiest windows by "
        f"{METHODS[method]}: {reason}its ceiling may be anywhere in between."
    )


@says(SizingKind.NO_STAND_IN)
def _(candidate: str, replayed: bool) -> str:
    alone = ", only storage" if replayed else ""
    return f"No stand-in was brought to its ceiling on “{candidate}”: CPU, memory and locks were not tested{alone}."


@says(SizingKind.UNMATCHED)
def _(candidate: str, quantities: Sequence[str], ratios: Sequence[float], searched: bool) -> str:
    off = [f"{_quantity(name)} {in_times(ratio)}" for name, ratio in zip(quantities, ratios, strict=True)]
    mismatch = f"At the profile’s load the stand-in on “{candidate}” did not match the profile ({', '.join(off)})"
    if not searched:
        return f"{mismatch}."
    return (
        f"{mismatch}: its multiples count its own data I/Os, so the quantities that differ were tested at other "
        "multiples."
    )


def _quantity(name: str) -> str:
    return {
        "read_bytes": "bytes read",
        "writes": "writes of data",
        "log_bytes": "bytes of the log",
        "cpu_cores": "CPU",
    }.get(name, name)


@says(SizingKind.SMALLER)
def _(candidate: str, method: Method, own_bytes: int, database_bytes: float) -> str:
    container = "a file" if method == "replay" else "a database"
    return (
        f"The {METHODS[method]} on “{candidate}” had {container} of {size(own_bytes)}, and the profile’s server has "
        f"{size(database_bytes)}: a cache in the storage can hold a larger share of it."
    )


@says(SizingKind.OTHER_HOURS)
def _(windows: Sequence[Sequence[Any]], seconds: float, span_s: float | None, most: float | None, all: bool) -> str:
    unseen = "Times outside the profile, such as the end of a month, were not replayed."
    if all:
        return f"The complete profile was replayed, {roughly(seconds)}. {unseen}"
    named = listed([f"with {BECAUSE[because]} (from {moment(begin)})" for because, begin in windows])
    total = f"the {roughly(span_s)} of the profile" if span_s is not None else "the profile"
    which = f"the window {named}" if len(windows) == 1 else f"{len(windows)} windows, those {named}"
    others = ""
    if most is not None:
        more = f"more than {in_times(most)} as many" if most >= _VISIBLY else "more"
        others = f" No other window has {more} I/Os, reads, writes or bytes."
    return f"Replayed: {roughly(seconds)} of {total}, {which}.{others} {unseen}"


@says(SizingKind.NOT_PLAYED)
def _(measure: Measured, begin: float, per_s: float, played: float) -> str:
    return (
        f"Not replayed: the window with {BECAUSE[measure]}, from {moment(begin)}, has {per_second(measure, per_s)}; "
        f"the windows of this sizing have up to {per_second(measure, played)}."
    )


@says(SizingKind.STAND_IN_WINDOW)
def _(windows: int, replayed: bool) -> str:
    scope = f"The stand-in covers the window with {BECAUSE['ios_per_s']} only"
    if windows == 1:
        return f"{scope}."
    others = "the other was" if windows == 2 else f"the other {windows - 1} were"
    return f"{scope}: {others} {'only replayed' if replayed else 'not tested'}."


@says(SizingKind.OTHER_QUERIES)
def _(without: Sequence[str], ran: bool) -> str:
    own, missed = "its own transactions and queries", ""
    if not ran:
        own, missed = "its own transactions", "your reporting queries did not run, and "
    elif without:
        missed = f"your reporting queries did not run on {quoted(without)}, and "
    return f"The stand-in runs {own}: {missed}plans, locks and latches of your queries were not tested."


@says(SizingKind.MEAN_READS)
def _(stand_in_alone: bool) -> str:
    where = "Reads of the stand-in" if stand_in_alone else "Reads"
    return f"{where} are judged by their mean: some reads take longer."


FORMATS: Mapping[str, Format] = {
    "measure": MEASURES.__getitem__,
    "quantities": lambda quantities: listed([_quantity(name) for name in quantities]),
    "stream": STREAMS.__getitem__,
}
