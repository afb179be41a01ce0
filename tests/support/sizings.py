"""Folders of sizings, of known truth: a replay and a stand-in that hold up to one multiple and break at the next.

write_sizing_of(folder, profile, name="B", replay=(1.5, 1.6), stand_in=(1.25, 1.38), cost=42_000)
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stallmark.record.manifest import read_manifest
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.manifest.workload import LevelSeen, LimitSeen, Search
from stallmark.sizing.demand import demand_of
from stallmark.sizing.manifest import (
    Demand,
    Matched,
    Peak,
    Piece,
    Replay,
    ReplayLevel,
    Sizing,
    StandIn,
    Stream,
    Window,
    write_sizing,
)
from support.manifests import changed, on
from support.synthetic_loads import QUIET, LoadsStep, make_loads_run

GIB = 1 << 30
PER_S = {"reads": 1000.0, "writes": 200.0, "log": 300.0}
PEAKS = {"ios_per_s": 1500.0, "reads_per_s": 1000.0, "read_bytes_per_s": 8.192e6}
STARTED = "2026-03-04T08:00:00+00:00"
OLTP = ServiceLevelObjective(name="oltp", read_ms=20, ideal_ms=10, percentile="p95")
Ends = tuple[float | None, float | None]
DISKS = {"spindles": 8, "read_ms": 8.0}
FLASH = {"name": "nvme0n1", "model": "ACME 9000"}


def a_demand(profile: str = "0" * 16, **fields: Any) -> Demand:
    """A demand of 1,000 reads, 200 writes and 300 writes of the log per second."""
    piece = Piece(seconds=15, reads=1000, read_bytes=8.192e6, writes=200, write_bytes=3.2768e6, log_writes=300,
                  log_bytes=2.4e6)  # fmt: skip
    window = Window(begin=1_772_464_200, because="ios_per_s", pieces=(piece,) * 60)
    peaks = tuple(Peak(measure=name, begin=window.begin, per_s=per_s, played=per_s) for name, per_s in PEAKS.items())
    known = {
        "peaks": peaks,
        "transactions": 400.0,
        "cpu_cores": 3.0,
        "cores": 8,
        "pool_bytes": 20 * GIB,
        "database_bytes": 100 * GIB,
    }
    return Demand(**{"profile": profile, "windows": (window,), "read_ms": 6.0} | known | fields)


def read_ms_at(level: float, breaks: float | None, light_ms: float = 4.0) -> float:
    """The mean time of reads: `light_ms` without load, 20.5 ms at the level that breaks."""
    return light_ms + (20.5 - light_ms) * (level / (breaks or 100.0)) ** 2


def levels_of(ends: Ends, extra: Sequence[float] = ()) -> list[float]:
    """The levels that a search tries: doubled from 0.5, then its two ends."""
    holds, breaks = ends
    top = breaks or holds or 1.0
    doubled = [level for level in (0.5, 1.0, 2.0, 4.0) if level < top and level not in ends]
    return sorted({*doubled, *extra, *(one for one in ends if one is not None)})


def seen_at(level: float, ends: Ends, limit_ms: float, light_ms: float = 4.0) -> dict[str, Any]:
    value = read_ms_at(level, ends[1], light_ms)
    verdict = "broke" if value > limit_ms else "held"
    reads = LimitSeen(of="reads", limit_ms=limit_ms, limit=limit_ms, value=value, low=value * 0.99, high=value * 1.01,
                      seen=90_000, verdict=verdict)  # fmt: skip
    return {"level": level, "tried": "double", "verdict": verdict, "limits": (reads,)}


def a_replay(ends: Ends = (1.5, 1.6), *, outcome: str | None = "found", limit_ms: float = 20.0,
             light_ms: float = 4.0, behind: Mapping[str, float] | None = None, **fields: Any) -> Replay:  # fmt: skip
    """A replay with its levels. `behind`: the share of the I/Os of a stream that came late at the level that broke."""
    levels = []
    for level in levels_of(ends):
        facts = seen_at(level, ends, limit_ms, light_ms)
        late = (behind or {}) if level == ends[1] else {}
        if late:
            facts |= {"backlog": True, "verdict": "broke"}
        ms = {"reads": facts["limits"][0].value, "writes": 1.0, "log": 0.5}
        streams = [_stream(name, per_s * level, ms[name], late.get(name, 0.0)) for name, per_s in PER_S.items()]
        levels.append(ReplayLevel(**facts, seconds=300, streams=tuple(streams)))
    known = {
        "tool": "fio 3.33",
        "how": "libaio, direct",
        "emulated": False,
        "devices": {"data": "nvme0n1", "log": None},
    }
    known |= {"file_bytes": 100 * GIB, "log_file_bytes": GIB, "played": 1.0, "low": 0.5, "high": 16, "tolerance": 0.05}
    known |= {"levels": tuple(levels), "outcome": outcome, "holds": ends[0], "breaks": ends[1]}
    return Replay(**known | fields)


def by_percentile(replay: Replay, slower: float = 0.1) -> Replay:
    """The replay with the p95 of its reads noted: a share of `slower` ones takes twice their mean."""
    levels = []
    for level in replay.levels:
        mean = level.limits[0]
        share = slower if 2 * (mean.value or 0.0) > mean.limit_ms else 0.0
        seen = LimitSeen(of="reads", percentile="p95", limit_ms=mean.limit_ms, limit=0.05, value=share, seen=9e4,
                         verdict="broke" if share > 0.05 else "held")  # fmt: skip
        levels.append(level.changed(limits=(mean, seen)))
    return replay.changed(levels=tuple(levels))


def _stream(name: str, per_s: float, mean_ms: float, late: float) -> Stream:
    ios = round(per_s * 300)
    histogram = ((mean_ms * 0.8, ios * 9 // 10), (mean_ms * 2.0, ios // 10))
    facts = {"wanted": ios, "ios": ios, "late": round(ios * late), "bytes": ios * 8192}
    return Stream(name=name, mean_ms=mean_ms, histogram=histogram, **facts)


def write_stand_in(
    folder: Path,
    ends: Ends,
    demand: Demand | None = None,
    *,
    repeats: Sequence[Ends] = (),
    outcome: str | None = "found",
    limit_ms: float = 20.0,
    device: Mapping[str, Any] = FLASH,
    does: float = 1.0,
    cold: float = 1.0,
) -> None:
    """Write the experiment of a stand-in: one run for its two ends, and one for each repeat. `does`: the share of the
    demand's I/Os of data that it did at level 1; `cold`: so many times as much at levels below half of the highest."""
    busiest, per_s = (demand or a_demand()).windows[0], does / 260
    truth = replace(
        QUIET,
        reads_per_transaction=per_s * busiest.mean("reads"),
        writes_per_transaction=per_s * busiest.mean("writes"),
        extends_per_second=0.0,
    )
    for number, one in enumerate((ends, *repeats), 1):
        tried = levels_of(one)
        did = [level * (cold if level < tried[-1] / 2 else 1.0) for level in tried]
        steps = [
            LoadsStep(f"{level:g}×", {"bank": 200 * at, "mail": 60 * at}) for level, at in zip(tried, did, strict=True)
        ]
        run = make_loads_run(folder / f"{number:02d}", steps, "stand-in", number, number, truth, device=device)
        planned = read_manifest(run).steps
        seen = [LevelSeen(**seen_at(level, one, limit_ms)) for level in tried]
        found = Search(
            load=None, of="load", low=0.5, high=16, tolerance=0.05, outcome=outcome, holds=one[0], breaks=one[1]
        )
        changed(
            run, search=found, steps=[step.changed(searched=level) for step, level in zip(planned, seen, strict=True)]
        )


def write_sizing_of(
    folder: Path,
    profile: Path | Demand,
    name: str = "B",
    *,
    replay: Ends | Replay | None = (1.5, 1.6),
    stand_in: Ends | None = None,
    matched: Mapping[str, tuple[float | None, float | None]] | None = None,
    emulated: bool = False,
    memory_bytes: int | None = None,
    cost: float | None = None,
    watts: float | None = None,
    rack_units: float | None = None,
    pool_share: float | None = 0.2,
    **fields: Any,
) -> Path:
    """Write the folder of a candidate that was measured for a profile. `matched`: wanted and reached, by quantity;
    without `stand_in` no ceiling was searched for."""
    folder.mkdir(parents=True)
    demand = profile if isinstance(profile, Demand) else demand_of(profile)
    if isinstance(replay, tuple):
        replay = a_replay(replay, emulated=emulated)
    device = DISKS if emulated else FLASH
    if stand_in:
        write_stand_in(folder / "ceiling", stand_in, demand, device=device)
    quantities = matched or {"reads": (1000.0, 1020.0), "writes": (200.0, 205.0), "log_bytes": (2.4e6, 2.3e6)}
    described = StandIn(
        rates={"bank": 200.0, "mail": 60.0},
        matched=tuple(Matched(name=one, wanted=want, reached=got) for one, (want, got) in quantities.items()),
        pool_share=pool_share,
        data_bytes=100 * GIB,
        pool_bytes=20 * GIB,
        calibration="calibration",
        trial="trial",
        ceiling="ceiling" if stand_in else None,
    )
    candidate = {"name": name, "memory_bytes": memory_bytes, "cost": cost, "watts": watts, "rack_units": rack_units}
    facts = {"status": "complete", "stallmark": "0.1.0", "started": STARTED, "candidate": candidate, "demand": demand}
    facts |= {"service_level": OLTP, "engine": "postgresql", "replay": replay, "devices": on(device)}
    facts |= {
        "stand_in": described if stand_in or matched else None,
        "machine": {"cores": 16, "memory_bytes": 128 * GIB},
    }
    write_sizing(folder, Sizing.model_validate(facts | fields))
    return folder
