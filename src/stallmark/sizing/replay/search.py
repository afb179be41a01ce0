"""The search for the highest multiple of a profile's I/O at which storage keeps a service level."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from stallmark.errors import StallmarkError
from stallmark.record.devices import array_name
from stallmark.record.manifest.storage import EmulatedArray, ServiceLevelObjective
from stallmark.record.manifest.workload import LimitSeen
from stallmark.record.probe import DirectIo, coarser
from stallmark.sizing.manifest import Decides, Piece, Replay, ReplayLevel, Stream, StreamName, Window, WindowSeen
from stallmark.sizing.replay.play import STREAMS, WARM_UP_S, Issued, Player, Span, due, length_s, pieces_of, spans_of
from stallmark.stats.ceiling_search import LevelResult, Next, SearchSpec, Verdict, enough, judge, search
from stallmark.storage.direct_io import direct_io, least_direct_bytes
from stallmark.storage.emulator import EmulatedArrays
from stallmark.storage.probe.measurement import describe_device, refuse_bare, refuse_memory
from stallmark.storage.probe.probe_file import make_probe_file, refuse_little_space, remove_leftovers
from stallmark.storage.probe.tool import Tool, find_tool

# A level of a replay against the service level, from each of its I/Os.

LATE_S = 1.0
"""The delay from due to issued above which an I/O is late: until then all threads were busy with others."""
BACKLOG = 0.05
"""The share of a stream's I/Os that are late from which on they are a backlog. Where all that is due can be done, few
wait for a second."""

Played = Mapping[StreamName, Issued]
"""A level as it was played, once."""


def has_backlog(played: Sequence[Issued]) -> bool:
    """Return whether ever more of a stream's I/Os waited to be issued."""
    return sum(len(stream.late_s) for stream in played) * BACKLOG < sum(_late(one) for one in played)


def judge_level(
    tried: Next,
    played: Sequence[Played],
    spans: Sequence[Span],
    asked: ServiceLevelObjective,
    decides: Decides,
    grouped: float,
) -> ReplayLevel:
    """Return the level with its verdict. `spans`: of the windows in one play; `grouped`: log writes in one.

    Each window must hold: a mean over all would hide a backup behind the many small reads of the day. A backlog of any
    stream in any window breaks the level. Otherwise the reads of the worst window decide: their mean, or the
    percentile. Too few reads are undecided, and no reads hold.
    """
    plays = {name: [without_warm_up(play[name]) for play in played] for name in played[0]}
    windows = [_window(span, plays, asked) for span in spans]
    limits = _worst([window.limits for window in windows])
    backlog = any(window.behind for window in windows)
    [verdict] = [Verdict(limit.verdict) for limit in limits if (limit.percentile is None) == (decides == "mean")] or [
        Verdict.HELD
    ]
    return ReplayLevel(
        level=tried.level,
        tried=tried.reason.value,
        verdict=(Verdict.BROKE if backlog else verdict).value,
        backlog=backlog,
        limits=limits,
        seconds=sum(span.seconds for span in spans) * len(played),
        streams=tuple(_stream(name, parts, grouped if name == "log" else 1.0) for name, parts in plays.items()),
        windows=tuple(windows),
    )


def cut_to_window(span: Span, issued: Issued) -> Issued:
    """Return the I/Os due in a window, timed as if it were the first."""
    begin = WARM_UP_S + span.start
    part = issued.part((issued.due.times_s >= begin) & (issued.due.times_s < begin + span.seconds))
    return replace(part, due=replace(part.due, times_s=part.due.times_s - span.start), stop_s=part.stop_s - span.start)


def _window(span: Span, streams: Mapping[StreamName, Sequence[Issued]], asked: ServiceLevelObjective) -> WindowSeen:
    in_window = {name: [cut_to_window(span, part) for part in parts] for name, parts in streams.items()}
    limits = () if asked.read_ms is None or not _count(in_window["reads"]) else _limits(in_window["reads"], asked)
    behind = {name: sum(map(_late, parts)) / _count(parts) for name, parts in in_window.items() if has_backlog(parts)}
    return WindowSeen(begin=span.window.begin, because=span.window.because, limits=limits, behind=behind)


def _worst(windows: Sequence[tuple[LimitSeen, ...]]) -> tuple[LimitSeen, ...]:
    """Return each limit as it was in the window in which it is nearest to break, or broke most."""
    order = (Verdict.HELD.value, Verdict.UNDECIDED.value, Verdict.BROKE.value)
    return tuple(
        max(same, key=lambda limit: (limit.value is not None, order.index(limit.verdict), limit.value or 0.0))
        for same in zip(*filter(None, windows), strict=True)
    )


def nearest(level: ReplayLevel, decides: Decides) -> ReplayLevel:
    """Return an undecided level with the verdict of its values, where there are any."""
    for limit in level.limits:
        if (limit.percentile is None) == (decides == "mean") and limit.value is not None:
            return level.changed(verdict=(Verdict.HELD if limit.value <= limit.limit else Verdict.BROKE).value)
    return level


def without_warm_up(issued: Issued) -> Issued:
    return issued.part(issued.due.times_s >= WARM_UP_S)


def _count(parts: Sequence[Issued]) -> int:
    return sum(len(part.ms) for part in parts)


def _late(issued: Issued) -> int:
    return int((issued.late_s > LATE_S).sum())


def _limits(reads: Sequence[Issued], asked: ServiceLevelObjective) -> tuple[LimitSeen, ...]:
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
    """Return three series by second: the I/Os due, the ms until they had ended, and those that took longer than
    allowed.
    """
    second, ms = issued.due.times_s.astype(np.int64) - int(WARM_UP_S), issued.since_due_ms
    length = int(second.max(initial=-1)) + 1
    return (
        np.bincount(second, minlength=length),
        np.bincount(second, ms, minlength=length),
        np.bincount(second, (ms > limit_ms) | ~issued.completed, minlength=length),
    )


def _stream(name: StreamName, parts: Sequence[Issued], grouped: float) -> Stream:
    ms = np.concatenate([part.since_due_ms for part in parts])
    behind = np.concatenate([part.late_s[part.completed] for part in parts])
    return Stream(
        name=name,
        wanted=_count(parts),
        ios=sum(int(part.completed.sum()) for part in parts),
        bytes=sum(int(part.due.bytes[part.completed].sum()) for part in parts),
        late=sum(_late(part) for part in parts),
        mean_ms=float(ms.mean()) if len(ms) else None,
        histogram=_histogram(ms),
        grouped=grouped,
        behind_ms=float(np.median(behind)) * 1000 if len(behind) else None,
    )


def _histogram(ms: np.ndarray) -> tuple[tuple[float, int], ...]:
    values, counts = np.unique(np.round(ms, 3), return_counts=True)
    return coarser(list(zip(values.tolist(), counts.tolist(), strict=True)))


# The search for the highest multiple of a profile's I/O at which storage keeps a service level.

Progress = Callable[[Next, float], None]
"""A function that is called repeatedly with the level under way and its seconds so far."""
_OTHERWISE_MS = 20.0
"""The time of reads that threads are reckoned by where the service level has no limit on it."""
_GROUPED = 0.75
"""The share of a log device's flush rate that is requested if it cannot do all flushes."""
_SEEN = 0.9
"""Share of the I/Os that an emulated array must have counted, or they went elsewhere."""
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
    keep: Callable[[Replay], None] = lambda replay: None,
    decides: Decides = "mean",
    seed: int = 1,
) -> Replay:
    """Search the highest multiple of the windows' I/O at which the service level holds, on files of these sizes in the
    folders `data` and `log`, and return what was seen; `keep` is given it after each level, too.

    Levels of `asked` are multiples. With `devices` the folders must be on emulated arrays that are engaged. A level is
    played again where it is undecided, and both count. Raise StallmarkError if there can be no replay.
    """
    pieces = pieces_of(windows, played)
    tool = _tool(pieces)
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
        under_data, under_log = _device(data_file.path, devices, False), _device(log_file.path, devices, True)
        replay = Replay(
            tool=tool.version,
            how=tool.how,
            emulated=under_data[1] or under_log[1],
            devices={"data": under_data[0], "log": under_log[0]},
            file_bytes=data_bytes,
            log_file_bytes=log_bytes,
            played=played,
            decides=decides,
            low=asked.low,
            high=asked.high,
            tolerance=asked.tolerance,
            direct_io={} if devices else _tried(data, log),
        )
        spans = spans_of(windows, played)
        levels = _Levels(pieces, spans, player, sector, devices, service_level, decides, progress, seed)
        while isinstance(
            then := search(asked, [LevelResult(level.level, Verdict(level.verdict)) for level in replay.levels]), Next
        ):
            replay = replay.changed(levels=(*replay.levels, levels.measure(then)))
            keep(replay)
        replay = replay.changed(outcome=then.outcome.value, holds=then.holds, breaks=then.breaks)
        keep(replay)
        return replay


def level_s(windows: Sequence[Window], played: float) -> float:
    """Return the duration of a level that is played once."""
    return length_s(pieces_of(windows, played))


@dataclass
class _Levels:
    """The levels of a replay, measured one after the other."""

    pieces: Sequence[Piece]
    spans: Sequence[Span]
    player: Player
    sector: int
    devices: EmulatedArrays | None
    service_level: ServiceLevelObjective
    decides: Decides
    progress: Progress
    seed: int
    plays: int = 0
    flushes: dict[float, float] = field(default_factory=dict)
    """The most writes of the log per second, by the multiple at which they were found to be too many."""

    def measure(self, tried: Next) -> ReplayLevel:
        played = [self._play(tried)]
        log = without_warm_up(played[0]["log"])
        behind = [(part, span.seconds) for span in self.spans if has_backlog([part := cut_to_window(span, log)])]
        if behind and tried.level not in self.flushes:
            ended = max(part.completed.sum() / seconds for part, seconds in behind)
            self.flushes[tried.level] = _GROUPED * max(1.0, ended)
            played = [self._play(tried)]
        level = self._judge(tried, played)
        if level.verdict == Verdict.UNDECIDED:
            played.append(self._play(tried))
            level = nearest(self._judge(tried, played), self.decides)
        return level

    def _judge(self, tried: Next, played: Sequence[Played]) -> ReplayLevel:
        wanted = sum(piece.seconds * piece.log_writes for piece in self.pieces) * tried.level
        done = len(without_warm_up(played[0]["log"]).ms)
        grouped = wanted / done if self._most_flushes(tried) < np.inf and done else 1.0
        return judge_level(tried, played, self.spans, self.service_level, self.decides, max(1.0, grouped))

    def _most_flushes(self, tried: Next) -> float:
        return min((most for level, most in self.flushes.items() if level <= tried.level), default=np.inf)

    def _play(self, tried: Next) -> Played:
        self.plays += 1
        rng = np.random.default_rng([self.seed, self.plays])  # other places each time: the last are in caches
        streams = {
            name: due(
                self.pieces, name, tried.level, self.sector, rng, self._most_flushes(tried) if name == "log" else np.inf
            )
            for name in STREAMS
        }
        before = _raw_ios(self.devices)
        played = self.player.play(streams, length_s(self.pieces), rng, lambda over: self.progress(tried, over))
        self._refuse_elsewhere(_raw_ios(self.devices) - before, played)
        return played

    def _refuse_elsewhere(self, seen: int, played: Played) -> None:
        done = sum(int(played[name].completed.sum()) for name in ("reads", "writes"))
        if self.devices is not None and seen < _SEEN * done:
            raise StallmarkError(
                f"The emulated array saw {seen:,} of the {done:,} I/Os of its replay, so that the real one was "
                f"measured: the two must not be mixed up; {self.player.data.place} is not on the emulated array: name "
                "one that is."
            )


def _raw_ios(devices: EmulatedArrays | None) -> int:
    return sum(counters.raw_reads + counters.raw_writes for counters in devices.counters().values()) if devices else 0


def _tool(pieces: Sequence[Piece]) -> Tool:
    if sys.platform == "win32":
        raise StallmarkError("A profile's I/O cannot be replayed on Windows: replay it on Linux, on the same storage.")
    if not any(piece.reads or piece.writes or piece.log_writes for piece in pieces):
        raise StallmarkError("The profile has no I/O, so that there is none to replay: take one of a server at work.")
    return find_tool("fio", emulated=True)  # a thread for each I/O under way, on real storage as well


def _refuse_folders(needed: dict[Path, int], devices: EmulatedArrays | None) -> None:
    """Raise StallmarkError for folders that cannot take files, before one is written for nothing. Files of replays that
    were killed are removed."""
    rooms: dict[int, tuple[Path, int]] = {}
    for folder, size in needed.items():
        existing = folder if folder.exists() else folder.parent
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            raise StallmarkError(
                f"{folder} is no folder that can be written to, and the replay needs one: name another."
            )
        if devices is None:
            refuse_memory(folder)
        remove_leftovers(folder)
        _, before = rooms.get(existing.stat().st_dev, (existing, 0))
        rooms[existing.stat().st_dev] = existing, before + size
    for folder, size in rooms.values():
        refuse_little_space(folder, size)


def _tried(data: Path, log: Path) -> dict[Literal["data", "log"], DirectIo]:
    folders: dict[Literal["data", "log"], Path] = {"data": data, "log": log}
    return {name: tried for name, folder in folders.items() if (tried := direct_io(folder)) is not None}


def _device(file: Path, devices: EmulatedArrays | None, of_log: bool) -> tuple[str | None, bool]:
    """Return the device under a file in words, and whether it is emulated."""
    if devices is None:
        return describe_device(file)
    names = list(devices.counters())
    name = LOG_ARRAY if of_log and LOG_ARRAY in names else next(other for other in names if other != LOG_ARRAY)
    model = devices.model(name)
    return array_name(EmulatedArray(**asdict(model))) if model else None, model is not None
