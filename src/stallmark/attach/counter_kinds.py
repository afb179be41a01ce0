"""The kinds of counters of other tools, told from their names: those of Perfmon, sysstat and arrays."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

KINDS = ("read_latency", "write_latency", "IOPS", "throughput", "queue", "cache_hits")
"""Kinds that the report draws, one chart each, in this order."""

_OTHERWISE = {  # where a tool counts reads and writes apart
    "IOPS": ("read_IOPS", "write_IOPS"),
    "throughput": ("read_throughput", "write_throughput"),
}

_NOT = re.compile(
    # Of the host's memory, processes and network, and of the server's own pages, not of its storage.
    r"^(memory|process|network|system|paging file|cache (copy|data|mdl|pin)|sqlserver:|mssql\$)(?!.*cache hit ratio$)"
    # Extremes, and parts of a latency.
    r"|\b(peak|max(imum)?|min(imum)?|split|qos|reduction|queue us|san us|ratio base)\b",
    re.I,
)
_QUANTITIES = tuple(
    (name, re.compile(pattern, re.I))
    for name, pattern in (
        ("latency", r"sec/(read|write|transfer)$|(?<![df]_)await$|\bus/op|^usec_per_"),
        ("latency", r"latency|(response|service)[ _]?time"),
        ("cache_hits", r"\bhits?\b"),
        ("queue", r"queue[ _](length|depth)|\b(aqu|avgqu)-sz$"),
        ("throughput", r"bytes/sec$|\b[rw]?[km]?b/s|\b[rw]kb$|data rate|transfer rate|throughput|bandwidth"),
        ("IOPS", r"(reads|writes|transfers)/sec$|^[rw]/s$|\bop/s|iops|\bio rate|(read|write)s?_per_sec$|(?<!d)tps$"),
    )
)  # fmt: skip
_READ = re.compile(r"\bread|[_/]read|\brtps$|^r_await$|^r/s$|\br[km]b", re.I)
_WRITE = re.compile(r"\bwrite|[_/]write|\bwtps$|^w_await$|^w/s$|\bw[km]b", re.I)
_SCALES = {  # to milliseconds, and to 10^6 bytes per second where the unit leaves no doubt
    "s": ("ms", 1000.0),
    "us": ("ms", 0.001),
    "B/s": ("MB/s", 1e-6),
    "KiB/s": ("MB/s", 1024e-6),
    "MiB/s": ("MB/s", 1024**2 * 1e-6),
}
_TOTAL = re.compile(r"|_?total|\(total\)|all", re.I)  # or no instance at all


@dataclass(frozen=True)
class Sampled:
    """A counter's samples, ordered by time."""

    source: str
    counter: str
    instance: str
    unit: str
    t: np.ndarray
    values: np.ndarray
    summed: tuple[str, ...] = ()  # counters that this one is the sum of

    @property
    def label(self) -> str:
        return f"{self.instance} {self.counter}".strip()


def kind_of(counter: str) -> str:
    """Return the kind of a counter: one of KINDS, or "latency", "read_IOPS", "write_throughput" and the like. Empty
    where it is not known."""
    if _NOT.search(counter):
        return ""
    quantity = next((name for name, pattern in _QUANTITIES if pattern.search(counter)), "")
    if quantity in ("", "cache_hits"):
        return quantity
    read, write = bool(_READ.search(counter)), bool(_WRITE.search(counter))
    return quantity if read == write else f"{'read' if read else 'write'}_{quantity}"


def choose(counters: Sequence[Sampled]) -> list[tuple[str, Sampled]]:
    """Return at most one counter of each kind, of the instance that did most I/O, in the units they are drawn in."""
    by_kind: dict[str, list[Sampled]] = {}
    for counter in counters:
        by_kind.setdefault(kind_of(counter.counter), []).append(counter)
    busiest = _busiest(by_kind)

    def best(kind: str) -> Sampled | None:
        return _of(by_kind.get(kind, []), busiest)

    chosen = [(kind, best(kind) or _sum(*map(best, _OTHERWISE.get(kind, ())))) for kind in KINDS]
    if not any(one for kind, one in chosen if kind.endswith("latency")):
        chosen.insert(0, ("latency", best("latency")))
    return [(kind, _in_common_units(one)) for kind, one in chosen if one is not None]


def _busiest(by_kind: dict[str, list[Sampled]]) -> tuple[str, str] | None:
    """Return the source and instance with most I/O; sums over all instances only where there is nothing else."""
    amounts: dict[tuple[str, str], float] = {}
    for kind, parts in _OTHERWISE.items():
        for counter in (counter for one in (kind, *parts) for counter in by_kind.get(one, [])):
            key = counter.source, counter.instance
            amounts[key] = amounts.get(key, 0.0) + float(counter.values.mean())
        if amounts:
            break
    single = {key: amount for key, amount in amounts.items() if not _TOTAL.fullmatch(key[1])}
    return max(single or amounts, key=lambda key: amounts[key]) if amounts else None


def _of(counters: Sequence[Sampled], busiest: tuple[str, str] | None) -> Sampled | None:
    def order(counter: Sampled) -> tuple[bool, bool]:
        return (counter.source, counter.instance) != busiest, bool(_TOTAL.fullmatch(counter.instance))

    return min(counters, key=order, default=None)


def _sum(reads: Sampled | None = None, writes: Sampled | None = None) -> Sampled | None:
    if reads is None or writes is None:
        return reads or writes
    same = (reads.source, reads.instance, reads.unit) == (writes.source, writes.instance, writes.unit)
    if not same or not np.array_equal(reads.t, writes.t):
        return reads
    names = (reads.counter, writes.counter)
    return replace(reads, counter=" + ".join(names), values=reads.values + writes.values, summed=names)


def _in_common_units(counter: Sampled) -> Sampled:
    unit, scale = _SCALES.get(counter.unit, (counter.unit, 1.0))
    return replace(counter, unit=unit, values=counter.values * scale)
