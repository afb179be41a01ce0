"""The tables of a sizing."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.sizing.candidate import CandidateAnswer
from stallmark.analysis.sizing.reach import Reach
from stallmark.analysis.sizing.summary import SizingSummary
from stallmark.record.devices import array_name
from stallmark.record.manifest.storage import Device
from stallmark.record.sizing.manifest import Matched, Replay, ReplayLevel, Stream, Window
from stallmark.report.table import Cell, Table
from stallmark.report.text import ceiling
from stallmark.report.text import sizing as words
from stallmark.stats.thresholds import MATCHED_WITHIN

_MB = 1e6
COST = 1000
_KINDS = {"carries": "good", "carries_not": "bad", "open": "apart", "unknown": "none"}
_SCALES = {"read_bytes": _MB, "log_bytes": _MB}
STREAMS = ("reads", "writes", "log")
_STREAMS = (("reads", "read_bytes"), ("writes", "write_bytes"), ("log_writes", "log_bytes"))


def candidates(found: SizingSummary) -> Table:
    """Return the candidates, and the hardware of today below them."""
    rows = [_candidate(one, found) for one in found.candidates]
    if found.today:
        name, _, *figures = _candidate(found.today, found)
        rows.append([Cell(f"{name} (today)", "quiet"), "", *figures])
    header = ["candidate", "answer", "headroom", "interval", "cost", "TPS", "pool", "W", "U"]
    header += [f"TPS per {COST:,} cost", "TPS/W", "TPS/U", "replay", "stand-in"]
    leaves = {3: 1, 4: 2, 5: 3, 6: 4, 7: 5, 8: 6, 9: 7, 10: 8, 11: 9, 12: 10, 13: 11}
    known = [at for at in range(len(header)) if at not in leaves or any(str(row[at]) != format.NONE for row in rows)]
    return Table(
        [header[at] for at in known],
        [[row[at] for at in known] for row in rows],
        words=frozenset({0, 1}),
        importance={place: leaves[at] for place, at in enumerate(known) if at in leaves},
    )


def _candidate(one: CandidateAnswer, found: SizingSummary) -> list[str | Cell]:
    own, pool_bytes = one.sizing.candidate, one.memory_bytes
    per_cost = one.per_s_of(own.cost)
    return [
        one.name,
        Cell(words.STANDINGS[one.standing], _KINDS[one.standing]),
        Cell(format.NONE if one.middle is None else words.in_times(one.middle), "main"),
        format.NONE if one.low is None else words.span(one.low, one.high),
        _plain(own.cost),
        format.number(one.per_s),
        format.NONE if pool_bytes is None else format.size(round(pool_bytes)),
        _plain(own.watts),
        _plain(own.rack_units),
        format.number(None if per_cost is None else per_cost * COST),
        format.number(one.per_s_of(own.watts)),
        format.number(one.per_s_of(own.rack_units)),
        _reach(one.replay, found.need.multiple),
        _reach(one.stand_in, found.need.multiple),
    ]


def _reach(one: Reach | None, need: float) -> str:
    if one is None or not one.known:
        return format.NONE
    return words.span(one.low / need, None if one.high is None else one.high / need)


def _plain(value: float | None) -> str:
    return format.NONE if value is None else format.exact(value)


def windows(found: SizingSummary) -> Table:
    """Return the windows of the demand: the I/O of each as a mean, and its highest interval."""
    rows: list[Sequence[str | Cell]] = []
    for one in found.demand.windows:
        peak = max(piece.reads + piece.writes + piece.log_writes for piece in one.pieces)
        rows.append(
            [
                f"{format.minute(one.begin)} ({words.BECAUSE[one.because]})",
                format.seconds(one.seconds),
                *(cell for ios, size in _STREAMS for cell in _stream_of(one, ios, size, found.demand.log_known)),
                format.number(peak),
                format.number(found.demand.read_ms if one is found.demand.windows[0] else one.read_ms),
            ]
        )
    header = [f"from, {format.zone()}", "seen"]
    for name in ("reads/s", "writes/s", "log writes/s"):
        header += [name, "KiB", "MB/s"]
    importance = {1: 6, 3: 4, 4: 1, 6: 4, 7: 2, 9: 4, 10: 3, 11: 5, 12: 7}
    return Table([*header, "most I/Os/s", "ms/read then"], rows, importance=importance)


def _stream_of(window: Window, ios: str, size: str, log_known: bool) -> list[str]:
    """Return the I/Os per second, their size and the bytes of a stream in a window."""
    if ios == "log_writes" and not log_known:
        return [format.NONE] * 3
    per_s, bytes_per_s = window.mean(ios), window.mean(size)
    return [format.number(per_s), _kib(bytes_per_s, per_s), format.number(bytes_per_s / _MB)]


def _kib(size: float, ios: float) -> str:
    return format.number(size / ios / 1024) if ios else format.NONE


def matched(found: SizingSummary) -> Table:
    """Return what the stand-in was to do per second, and what it did on each candidate."""
    of: dict[str, dict[str, Matched]] = {
        one.name: {str(each.name): each for each in one.sizing.stand_in.matched}
        for one in found.candidates
        if one.sizing.stand_in
    }
    rows: list[Sequence[str | Cell]] = []
    for name, title in words.QUANTITIES.items():
        each = [quantities.get(name) for quantities in of.values()]
        wanted = next((one.wanted for one in each if one and one.wanted is not None), None)
        reached = [one.reached if one else None for one in each]
        rows.append([title, _scaled(name, wanted), *(_reached(name, wanted, one) for one in reached)])
    return Table(["quantity", "profile", *of], rows) if of else Table([], [])


def _scaled(name: str, value: float | None) -> str:
    return format.number(None if value is None else value / _SCALES.get(name, 1.0))


def _reached(name: str, wanted: float | None, reached: float | None) -> str | Cell:
    text = _scaled(name, reached)
    ratio = format.difference(wanted, reached)
    if ratio is None:
        return text
    return Cell(f"{text} ({format.signed(ratio)})", "apart" if abs(ratio) > MATCHED_WITHIN else "")


def levels(found: SizingSummary) -> list[tuple[str, Table]]:
    """Return the levels of each candidate's replay."""
    return [(one.name, _levels(one.sizing.replay)) for one in found.candidates if one.sizing.replay]


def _levels(replay: Replay) -> Table:
    header = ["level", "tried", "verdict"]
    for name in ("read", "write", "log write"):
        header += [f"{name}s/s due", "done", f"ms/{name}", "p95", "p99"]
    return Table(header, [_level(one) for one in replay.levels], words=frozenset({0, 1, 2}))


def _level(one: ReplayLevel) -> list[str | Cell]:
    verdict = ceiling.level_verdict(one.verdict) + (", behind" if one.backlog else "")
    streams: dict[str, Stream] = {stream.name: stream for stream in one.streams}
    row: list[str | Cell] = [words.in_times(one.level), ceiling.tried(one.tried)]
    row.append(Cell(verdict, "bad") if one.verdict == "broke" else verdict)
    for name in STREAMS:
        row += _stream(streams.get(name), one.seconds)
    return row


def _stream(one: Stream | None, seconds: float) -> list[str]:
    if one is None or not seconds:
        return [format.NONE] * 5
    rates = [format.number(one.wanted / seconds), format.number(one.ios / seconds)]
    return [*rates, format.number(one.mean_ms), *(format.number(percentile(one, share)) for share in (0.95, 0.99))]


def percentile(one: Stream, share: float) -> float | None:
    """Return the time that a share of the I/Os did not exceed; None where too few were seen beyond it."""
    total = sum(count for _, count in one.histogram)
    if total * (1 - share) < 10:
        return None
    seen = 0
    for ms, count in one.histogram:
        seen += count
        if seen >= share * total:
            return ms
    return None


def facts(found: SizingSummary) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what is known of each candidate's machine, storage and replay."""
    return [(one.name, _facts(one)) for one in (*found.candidates, *([found.today] if found.today else []))]


def _facts(one: CandidateAnswer) -> list[tuple[str, str]]:
    sizing, replay = one.sizing, one.sizing.replay
    data, log = sizing.devices.of("data"), sizing.devices.of("wal")
    pairs = [
        ("measured", format.moment(sizing.started)),
        ("engine", sizing.engine),
        ("cores of the load machine", format.count(sizing.machine.cores)),
        ("its memory", format.size(sizing.machine.memory_bytes)),
        ("data on", _on(data)),
        ("log on", _on(log)),
        ("replay", f"{replay.tool}, {replay.how}" if replay else format.NONE),
        ("its file", format.size(replay.file_bytes) if replay else format.NONE),
        ("stand-in", _rates(one) or format.NONE),
        ("record", one.folder.name),
    ]
    return [(name, value) for name, value in pairs if value != format.NONE]


def _on(device: Device) -> str:
    emulated = device.emulated_array
    return array_name(emulated) if emulated else device.model or device.name or format.NONE


def _rates(one: CandidateAnswer) -> str:
    rates = one.sizing.stand_in.rates if one.sizing.stand_in else {}
    return ", ".join(f"{name} {format.number(rate)}/s" for name, rate in rates.items() if rate)
