"""The loads of a run that has several, in its manifest."""

from collections.abc import Mapping, Sequence
from typing import Literal

from stallmark.record.direct_io import DirectIo
from stallmark.record.manifest.course import LeftWaiting
from stallmark.record.manifest.part import ManifestPart
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.manifest.workload import Workload


def application(kind: Literal["users", "streams"], load: str) -> str:
    """Return the name by which the server knows the sessions of a load, where a run may have several."""
    return f"stallmark-{'stream' if kind == 'streams' else 'user'}-{load}"


class RawPlan(ManifestPart):
    """The reads and writes of a raw load. `blocks`: the share of the I/Os by their size in bytes. `rate_iops` and
    `rate_bytes` are per second and cell; where both are None it goes as fast as the storage lets it."""

    pattern: str
    operation: Literal["read", "write"]
    order: Literal["random", "sequential"]
    blocks: dict[int, float]
    outstanding: int
    rate_iops: float | None = None
    rate_bytes: float | None = None
    size_bytes: int
    folder: str | None = None
    emulated: bool = False
    direct_io: DirectIo | None = None


class Load(ManifestPart):
    """A load of a run. `counts`: its users, its streams of queries, or the cells of its raw I/O, in each of the run's
    steps; 0 where it rests. Each of at most `cells` copies has a part of the data of its own. `rate` is of transactions
    or queries per second, in an open loop."""

    name: str
    kind: Literal["users", "streams", "raw"]
    counts: tuple[int, ...]
    cells: int = 1
    workload: Workload | None = None
    arrivals: Literal["closed", "fixed", "poisson"] = "closed"
    rate: float | None = None
    think_ms: float | None = None
    timeout_s: float | None = None
    service_level: ServiceLevelObjective | None = None
    thresholds: tuple[str, ...] = ()
    raw: RawPlan | None = None
    ended_s: int | None = None
    """The whole seconds after which it ended although the run went on, or was to; null where it did not."""
    ended_because: str | None = None
    left_waiting: LeftWaiting = LeftWaiting()
    unfinished: int = 0
    """The transactions of its users that did not end even when cancelled."""
    given_up: int = 0
    """The queries under way that were given up, since the number of their streams changed or the run ended."""


def ended_early(loads: Sequence[Load]) -> str | None:
    """Return which loads ended before the run did, and why; None where none did."""
    return (
        "; ".join(
            f"{load.name} ended early, after {load.ended_s} s: {load.ended_because}"
            for load in loads
            if load.ended_because
        )
        or None
    )


def cut_short(loads: Sequence[Load], ended: Mapping[str, tuple[int, str]]) -> tuple[Load, ...]:
    """Return the loads with those marked that ended early: by name, after how many whole seconds and why."""
    marked = {name: {"ended_s": after_s, "ended_because": why} for name, (after_s, why) in ended.items()}
    return tuple(load.changed(**marked.get(load.name, {})) for load in loads)
