"""The search for the highest multiple of a profile's I/O that storage sustains within a service level."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.devices import array_name
from stallmark.record.files import refuse_unwritable
from stallmark.record.manifest.storage import DirectIo, EmulatedArray, ServiceLevelObjective, coarser
from stallmark.record.manifest.workload import LimitSeen
from stallmark.sizing.manifest import Piece, Replay, ReplayLevel, Stream, StreamName, Window, WindowSeen
from stallmark.sizing.replay_io import STREAMS, WARM_UP_S, Issued, Player, Span, due_ios, length_s, pieces_of, spans_of
from stallmark.stats.ceiling_search import LevelResult, Next, SearchSpec, Verdict, enough, judge, search
from stallmark.storage.direct_io import direct_io, least_direct_bytes
from stallmark.storage.emulator.arrays import EmulatedArrays
from stallmark.storage.probe import describe_device, refuse_bare, refuse_memory
from stallmark.storage.probe_file import make_probe_file, refuse_little_space, remove_leftovers
from stallmark.storage.programs import Tool, find_tool

# A level of a replay against the service level, from each of its I/Os.

LATE_S = 1.0
"""An I/O that is issued this much after it was due is late: all threads were busy with others."""
BACKLOG = 0.05
"""The share of late I/Os above which a stream has a backlog. If storage keeps up, few I/Os wait for a second."""

Played = Mapping[StreamName, Issued]
"""The I/Os of one play of a level, by stream."""


def has_backlog(played: Sequence[Issued]) -> bool:
    """Return True if a growing number of a stream's I/Os waited to be issued."""
    return sum(len(issued.late_s) for issued in played) * BACKLOG < sum(_late_ios(issued) for issued in played)


def judge_level(
    tried: Next, played: Sequence[Played], spans: Sequence[Span], asked: ServiceLevelObjective, grouped: float
) -> ReplayLevel:
    """Return the level with its verdict. `spans` are those of the windows in one play; `grouped` is the number of log
    writes in one.

    Each window must hold: a mean over all would hide a backup behind the many small reads of the day. A backlog of any
    stream in any window breaks the level. Otherwise the mean of reads decides, in the worst window; their percentile is
    noted. With too few reads the level is undecided; with none due it holds.
    """
    streams = {name: [without_warm_up(play[name]) for play in played] for name in played[0]}
    windows = [_window(span, streams, asked) for span in spans]
    limits = _worst_limits([window.limits for window in windows])
    # A growing backlog breaks a level even if the reads that ended were fast.
    backlog = any(window.behind for window in windows)
    mean = _limit_of_mean(limits)
    return ReplayLevel(
        level=tried.level,
        tried=tried.reason.value,
        verdict=Verdict.BROKE.value if backlog else mean.verdict if mean else Verdict.HELD.value,
        backlog=backlog,
        limits=limits,
        seconds=sum(span.seconds for span in spans) * len(played),
        streams=tuple(_stream(name, parts, grouped if name == "log" else 1.0) for name, parts in streams.items()),
        windows=tuple(windows),
    )


def part_in_window(span: Span, issued: Issued) -> Issued:
    """Return the I/Os that are due in a window, with moments as if it were the first."""
    begin = WARM_UP_S + span.start
    part = issued.part((issued.due.moments_s >= begin) & (issued.due.moments_s < begin + span.seconds))
    return replace(
        part, due=replace(part.due, moments_s=part.due.moments_s - span.start), stop_s=part.stop_s - span.start
    )


def _window(span: Span, streams: Mapping[StreamName, Sequence[Issued]], asked: ServiceLevelObjective) -> WindowSeen:
    in_window = {name: [part_in_window(span, part) for part in parts] for name, parts in streams.items()}
    limits = (
        () if asked.read_ms is None or not _io_count(in_window["reads"]) else _judge_reads(in_window["reads"], asked)
    )
    behind = {
        name: sum(map(_late_ios, parts)) / _io_count(parts) for name, parts in in_window.items() if has_backlog(parts)
    }
    return WindowSeen(begin=span.window.begin, because=span.window.because, limits=limits, behind=behind)


def _worst_limits(windows: Sequence[tuple[LimitSeen, ...]]) -> tuple[LimitSeen, ...]:
    """Return each limit from the window that is nearest to breaking, or furthest beyond."""
    order = (Verdict.HELD.value, Verdict.UNDECIDED.value, Verdict.BROKE.value)
    return tuple(
        max(same, key=lambda limit: (limit.value is not None, order.index(limit.verdict), limit.value or 0.0))
        for same in zip(*filter(None, windows), strict=True)
    )


def _limit_of_mean(limits: Sequence[LimitSeen]) -> LimitSeen | None:
    return next((limit for limit in limits if limit.percentile is None), None)


def decide_by_values(level: ReplayLevel) -> ReplayLevel:
    """Return an undecided level with the verdict of its measured values, if it has any."""
    if (mean := _limit_of_mean(level.limits)) is None or mean.value is None:
        return level
    return level.changed(verdict=(Verdict.HELD if mean.value <= mean.limit else Verdict.BROKE).value)


def without_warm_up(issued: Issued) -> Issued:
    return issued.part(issued.due.moments_s >= WARM_UP_S)


def _io_count(parts: Sequence[Issued]) -> int:
    return sum(len(part.ms) for part in parts)


def _late_ios(issued: Issued) -> int:
    return int((issued.late_s > LATE_S).sum())


def _judge_reads(reads: Sequence[Issued], asked: ServiceLevelObjective) -> tuple[LimitSeen, ...]:
    """Return the limit on reads, on their mean and on their percentile, second by second."""
    assert asked.read_ms is not None
    allowed = 1 - float(asked.percentile.removeprefix("p")) / 100
    done, spent, slow = (
        np.concatenate(series) for series in zip(*(_seconds(part, asked.read_ms) for part in reads), strict=True)
    )
    mean = judge(spent.tolist(), done.tolist(), asked.read_ms)
    share = judge(slow.tolist(), done.tolist(), allowed, enough(allowed))
    return (
        LimitSeen(of="reads", limit_ms=asked.read_ms, **mean.figures()),
        LimitSeen(of="reads", percentile=asked.percentile, limit_ms=asked.read_ms, **share.figures()),
    )


def _seconds(issued: Issued, limit_ms: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of I/Os due in each second, their total ms, and the number that took longer than allowed."""
    second, ms = issued.due.moments_s.astype(np.int64) - int(WARM_UP_S), issued.since_due_ms
    length = int(second.max(initial=-1)) + 1
    return (
        np.bincount(second, minlength=length),
        np.bincount(second, ms, minlength=length),
        np.bincount(second, (ms > limit_ms) | ~issued.has_ended, minlength=length),
    )


def _stream(name: StreamName, parts: Sequence[Issued], grouped: float) -> Stream:
    ms = np.concatenate([part.since_due_ms for part in parts])
    behind = np.concatenate([part.late_s[part.has_ended] for part in parts])
    return Stream(
        name=name,
        wanted=_io_count(parts),
        ios=sum(int(part.has_ended.sum()) for part in parts),
        bytes=sum(int(part.due.bytes[part.has_ended].sum()) for part in parts),
        late=sum(_late_ios(part) for part in parts),
        mean_ms=float(ms.mean()) if len(ms) else None,
        histogram=_histogram(ms),
        grouped=grouped,
        behind_ms=float(np.median(behind)) * 1000 if len(behind) else None,
    )


def _histogram(ms: np.ndarray) -> tuple[tuple[float, int], ...]:
    values, counts = np.unique(np.round(ms, 3), return_counts=True)
    return coarser(list(zip(values.tolist(), counts.tolist(), strict=True)))


# The search.

Progress = Callable[[Next, float], None]
"""A function that is called repeatedly with the current level and its elapsed seconds."""
_OTHERWISE_MS = 20.0
"""The read time that determines the number of threads if the service level has no limit on reads."""
_GROUPED = 0.75
"""The share of a log device's measured flush rate that is requested from a device too slow for all flushes."""
_SEEN = 0.9
"""Minimum share of the I/Os that an emulated array must have counted, or they went elsewhere."""
LOG_ARRAY = "wal"


def replay(
    windows: Sequence[Window],
    asked: SearchSpec,
    service_level: ServiceLevelObjective,
    *,
    data: Path,
    log: Path,
    data_bytes: int,
    log_bytes: int,
    played: float = 1.0,
    devices: EmulatedArrays | None = None,
    progress: Progress = lambda level, seconds: None,
    keep: Callable[[Replay], None] = lambda result: None,
) -> Replay:
    """Search the highest multiple of the windows' I/O at which the service level holds, and return the replay.

    The files have the given sizes in the folders `data` and `log`. Levels of `asked` are multiples. `keep` receives the
    replay after each level. With `devices` the folders must be on emulated arrays that are engaged. An undecided level
    is played again, and both plays count. Raise StallmarkError if no replay is possible.
    """
    pieces = pieces_of(windows, played)
    tool = _find_fio(pieces)
    refuse_bare(devices)
    _refuse_folders({data: data_bytes, log: log_bytes} if data != log else {data: data_bytes + log_bytes}, devices)
    with ExitStack() as files:
        data_file = files.enter_context(make_probe_file(data, data_bytes))
        log_file = files.enter_context(make_probe_file(log, log_bytes))
        player = Player(
            tool.program,
            data_file,
            log_file,
            devices.environment(of_raw_load=True) if devices else {},
            contiguous=devices is None,
            limit_ms=service_level.read_ms or _OTHERWISE_MS,
        )
        sector = max(least_direct_bytes(file.path) for file in (data_file, log_file))
        under_data, under_log = (
            _device_under(data_file.path, devices, False),
            _device_under(log_file.path, devices, True),
        )
        result = Replay(
            tool=tool.version,
            how=tool.how,
            emulated=under_data[1] or under_log[1],
            devices={"data": under_data[0], "log": under_log[0]},
            file_bytes=data_bytes,
            log_file_bytes=log_bytes,
            played=played,
            low=asked.low,
            high=asked.high,
            tolerance=asked.tolerance,
            direct_io={} if devices else _direct_io_outcomes(data, log),
        )
        spans = spans_of(windows, played)
        levels = _Levels(pieces, spans, player, sector, devices, service_level, progress)
        # The search answers with the next level until it has an outcome.
        while isinstance(
            then := search(asked, [LevelResult(level.level, Verdict(level.verdict)) for level in result.levels]), Next
        ):
            result = result.changed(levels=(*result.levels, levels.measure(then)))
            keep(result)
        result = result.changed(outcome=then.outcome.value, holds=then.holds, breaks=then.breaks)
        keep(result)
        return result


@dataclass
class _Levels:
    """The levels of a replay, measured one after the other."""

    pieces: Sequence[Piece]
    spans: Sequence[Span]
    player: Player
    sector: int
    devices: EmulatedArrays | None
    service_level: ServiceLevelObjective
    progress: Progress
    plays: int = 0
    flushes: dict[float, float] = field(default_factory=dict)
    """The maximum log writes per second, by the multiple at which the log first fell behind."""

    def measure(self, tried: Next) -> ReplayLevel:
        played = [self._play(tried)]
        log = without_warm_up(played[0]["log"])
        behind = [(part, span.seconds) for span in self.spans if has_backlog([part := part_in_window(span, log)])]
        # The log device cannot do all flushes: group the writes, as a server groups commits, and play again.
        if behind and tried.level not in self.flushes:
            ended = max(part.has_ended.sum() / seconds for part, seconds in behind)
            self.flushes[tried.level] = _GROUPED * max(1.0, ended)
            played = [self._play(tried)]
        level = self._judge(tried, played)
        if level.verdict == Verdict.UNDECIDED:
            played.append(self._play(tried))
            level = decide_by_values(self._judge(tried, played))
        return level

    def _judge(self, tried: Next, played: Sequence[Played]) -> ReplayLevel:
        wanted = sum(piece.seconds * piece.log_writes for piece in self.pieces) * tried.level
        done = len(without_warm_up(played[0]["log"]).ms)
        grouped = wanted / done if self._most_flushes(tried) < np.inf and done else 1.0
        return judge_level(tried, played, self.spans, self.service_level, max(1.0, grouped))

    def _most_flushes(self, tried: Next) -> float:
        return min((most for level, most in self.flushes.items() if level <= tried.level), default=np.inf)

    def _play(self, tried: Next) -> Played:
        self.plays += 1
        # New offsets each time, because the last ones are in caches.
        rng = np.random.default_rng([1, self.plays])
        streams = {
            name: due_ios(
                self.pieces, name, tried.level, self.sector, rng, self._most_flushes(tried) if name == "log" else np.inf
            )
            for name in STREAMS
        }
        before = _raw_ios(self.devices)
        played = self.player.play(streams, length_s(self.pieces), rng, lambda over: self.progress(tried, over))
        self._refuse_elsewhere(_raw_ios(self.devices) - before, played)
        return played

    def _refuse_elsewhere(self, seen: int, played: Played) -> None:
        done = sum(int(played[name].has_ended.sum()) for name in ("reads", "writes"))
        if self.devices is not None and seen < _SEEN * done:
            raise StallmarkError(
                f"The emulated array saw {seen:,} of the {done:,} I/Os of its replay, so that the real one was "
                f"measured: the two must not be mixed up; {self.player.data.place} is not on the emulated array: name "
                "one that is."
            )


def _raw_ios(devices: EmulatedArrays | None) -> int:
    return sum(counters.raw_reads + counters.raw_writes for counters in devices.counters().values()) if devices else 0


def _find_fio(pieces: Sequence[Piece]) -> Tool:
    if sys.platform == "win32":
        raise StallmarkError("A profile's I/O cannot be replayed on Windows: replay it on Linux, on the same storage.")
    if not any(piece.reads or piece.writes or piece.log_writes for piece in pieces):
        raise StallmarkError("The profile has no I/O to replay: take the profile of a busy server.")
    # A thread for each I/O in flight, on real storage as well as on an emulated array.
    return find_tool("fio", emulated=True)


def _refuse_folders(needed: dict[Path, int], devices: EmulatedArrays | None) -> None:
    """Raise StallmarkError for folders that cannot take the files, before one is written in vain. Remove files of
    killed replays."""
    rooms: dict[int, tuple[Path, int]] = {}
    for folder, size in needed.items():
        refuse_unwritable(folder, "name another for the replay")
        if devices is None:
            refuse_memory(folder)
        remove_leftovers(folder)
        existing = folder if folder.exists() else folder.parent
        # Two files on one file system need the space of both.
        _, before = rooms.get(existing.stat().st_dev, (existing, 0))
        rooms[existing.stat().st_dev] = existing, before + size
    for folder, size in rooms.values():
        refuse_little_space(folder, size)


def _direct_io_outcomes(data: Path, log: Path) -> dict[Literal["data", "log"], DirectIo]:
    folders: dict[Literal["data", "log"], Path] = {"data": data, "log": log}
    return {name: tried for name, folder in folders.items() if (tried := direct_io(folder)) is not None}


def _device_under(file: Path, devices: EmulatedArrays | None, of_log: bool) -> tuple[str | None, bool]:
    """Return a description of the device under a file, and whether it is emulated."""
    if devices is None:
        return describe_device(file)
    names = list(devices.counters())
    name = LOG_ARRAY if of_log and LOG_ARRAY in names else next(array for array in names if array != LOG_ARRAY)
    model = devices.model(name)
    return array_name(EmulatedArray(**asdict(model))) if model else None, model is not None
