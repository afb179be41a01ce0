"""The tables and the chart of a sizing."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from stallmark import format
from stallmark.analysis.points import group as group_points
from stallmark.record.devices import array_name
from stallmark.record.manifest.storage import Device
from stallmark.report.figures import (
    COLOURS,
    NEUTRAL,
    Figure,
    KeyItem,
    Look,
    from_zero,
    looks,
    note,
    rounded,
    side_by_side,
    values_axis,
)
from stallmark.report.table import Cell, Columns, Rows, Table, group, if_known, number, word
from stallmark.report.text import ceiling
from stallmark.sizing import wording as words
from stallmark.sizing.candidate import CandidateAnswer
from stallmark.sizing.manifest import Matched, Replay, ReplayLevel, Stream, Window
from stallmark.sizing.reach import Method, Point, Reach
from stallmark.sizing.summary import SizingSummary
from stallmark.stats.thresholds import MATCHED_WITHIN

# The tables of a sizing.

_MB = 1e6
COST = 1000
_KINDS = {"carries": "good", "carries_not": "bad", "open": "apart", "unknown": "none"}
_SCALES = {"read_bytes": _MB, "log_bytes": _MB}
STREAMS = ("reads", "writes", "log")


def candidates(found: SizingSummary) -> Table:
    """Return the candidates, and the hardware of today below them."""
    today, need = found.today, found.need.multiple
    return Rows([*found.candidates, *([today] if today else [])]).table(
        word("candidate", lambda answer: Cell(f"{answer.name} (today)", "quiet") if answer is today else answer.name),
        word("answer", lambda answer: "" if answer is today else _standing(answer)),
        number("headroom", _headroom),
        if_known(
            number("interval", lambda one: None if one.low is None else words.span(one.low, one.high), importance=1),
            number("cost", lambda answer: answer.sizing.candidate.cost, _plain, importance=2),
            number("TPS", lambda answer: answer.per_s, importance=3),
            number("pool", lambda answer: answer.memory_bytes, format.size, importance=4),
            number("W", lambda answer: answer.sizing.candidate.watts, _plain, importance=5),
            number("U", lambda answer: answer.sizing.candidate.rack_units, _plain, importance=6),
            number(f"TPS per {COST:,} cost", _per_cost, importance=7),
            number("TPS/W", lambda answer: answer.per_s_of(answer.sizing.candidate.watts), importance=8),
            number("TPS/U", lambda answer: answer.per_s_of(answer.sizing.candidate.rack_units), importance=9),
            number("replay", lambda answer: _reach(answer.replay, need), importance=10),
            number("stand-in", lambda answer: _reach(answer.stand_in, need), importance=11),
        ),
    )


def _standing(answer: CandidateAnswer) -> Cell:
    return Cell(words.STANDINGS[answer.standing], _KINDS[answer.standing])


def _headroom(answer: CandidateAnswer) -> Cell:
    return Cell(format.NONE if answer.middle is None else words.in_times(answer.middle), "main")


def _per_cost(answer: CandidateAnswer) -> float | None:
    per_cost = answer.per_s_of(answer.sizing.candidate.cost)
    return None if per_cost is None else per_cost * COST


def _reach(one: Reach | None, need: float) -> str:
    if one is None or not one.known:
        return format.NONE
    return words.span(one.low / need, None if one.high is None else one.high / need)


def _plain(value: float | None) -> str:
    return format.NONE if value is None else format.exact(value)


def windows(found: SizingSummary) -> Table:
    """Return the windows of the demand: the I/O of each as a mean, and its highest interval."""
    demand, first = found.demand, next(iter(found.demand.windows), None)
    return Rows(demand.windows).table(
        word(
            f"from, {format.zone()}", lambda window: f"{format.minute(window.begin)} ({words.BECAUSE[window.because]})"
        ),
        number("seen", lambda window: window.seconds, format.seconds, importance=6),
        _stream_in_windows("reads/s", "reads", "read_bytes", 1),
        _stream_in_windows("writes/s", "writes", "write_bytes", 2),
        _stream_in_windows("log writes/s", "log_writes", "log_bytes", 3, known=demand.log_known),
        number(
            "most I/Os/s", lambda window: max(p.reads + p.writes + p.log_writes for p in window.pieces), importance=5
        ),
        number("ms/read then", lambda window: demand.read_ms if window is first else window.read_ms, importance=7),
    )


def _stream_in_windows(title: str, ios: str, size: str, importance: int, *, known: bool = True) -> Columns[Window]:
    """Return the columns of a stream: I/Os per second, their size and their bytes."""
    return group(
        "",
        number(title, lambda window: window.mean(ios) if known else None),
        number("KiB", lambda window: _kib(window.mean(size), window.mean(ios)) if known else None, importance=4),
        number("MB/s", lambda window: window.mean(size) / _MB if known else None, importance=importance),
    )


def _kib(size: float, ios: float) -> float | None:
    return size / ios / 1024 if ios else None


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


# The chart of a sizing: the time of reads over the load, with the need.

_DASHES: dict[Method, str] = {"replay": "solid", "stand_in": "dot"}
_LIMIT = COLOURS[1]


def latency_figure(found: SizingSummary) -> Figure | None:
    """Return the mean time of reads at every level of every candidate; None where none is known."""
    made, _ = side_by_side([1.0], 0.0, 380, margin={"t": 28})
    shown = [*found.candidates, *([found.today] if found.today else [])]
    drawn: list[tuple[str, Method, Point]] = []
    key = []
    for one, look in zip(shown, looks([one.name for one in shown]).values(), strict=True):
        for reach in filter(None, (one.replay, one.stand_in)):
            points = sorted((point for point in reach.points if point.read_ms is not None), key=lambda p: p.level)
            if points:
                drawn += [(one.name, reach.method, point) for point in points]
                made.add_traces(_traces(one, reach, points, look, found.need.multiple))
                label = f"{one.name}, {words.METHODS[reach.method]}"
                key.append(KeyItem(label, look.colour, _DASHES[reach.method], look.symbol))
    if not drawn:
        return None
    if (today_ms := found.demand.read_ms) is not None:
        made.add_trace(_in_production(today_ms, found.need.multiple))
        key.append(KeyItem(words.IN_PRODUCTION, NEUTRAL, None, "star"))
    limit = found.service_level.read_ms
    times = [ms for ms in (found.demand.read_ms, *(point.read_ms for *_, point in drawn)) if ms is not None]
    axis, scale = values_axis(max([*times, limit or 0.0]), times)
    if limit is not None:
        made.add_shape(type="line", xref="paper", x0=0, x1=1, y0=limit, y1=limit,
                       line={"color": _LIMIT, "width": 1.25, "dash": "dash"})  # fmt: skip
        key.append(KeyItem(f"limit, {limit:g} ms", _LIMIT, "dash"))
    made.add_shape(type="line", yref="paper", y0=0, y1=1, x0=1, x1=1, line={"color": NEUTRAL, "width": 1.5})
    note(made, words.NEED_MARK, x=1, xref="x", yshift=-4, xshift=3, yanchor="top")
    furthest = max([1.0, *(point.level for *_, point in drawn)]) / found.need.multiple
    made.update_layout(
        xaxis={"range": from_zero(max(furthest, 1.0)), "title": {"text": "load, as a multiple of the need"}}, yaxis=axis
    )
    note(made, f"mean read time, ms{scale}", yshift=8)
    return Figure(
        id="latency",
        title="Read time over the load",
        unit="ms",
        emulated=found.emulated,
        summary="; ".join(f"{one.name}: {words.STANDINGS[one.standing]}" for one in found.candidates),
        method=words.CHART,
        chart=made,
        header=["candidate", "by", "× the need", "read ms", "verdict"],
        rows=[
            [name, words.METHODS[method], format.short(point.level / found.need.multiple), format.number(point.read_ms),
             ceiling.level_verdict(point.verdict)]
            for name, method, point in drawn
        ],
        key=key,
        wide=True,
    )  # fmt: skip


def _in_production(read_ms: float, need: float) -> go.Scatter:
    """Return the time of reads in the profile's busiest window, on the hardware of then."""
    return go.Scatter(
        mode="markers",
        name=words.IN_PRODUCTION,
        x=rounded([1 / need]),
        y=rounded([read_ms]),
        marker={"size": 11, "color": NEUTRAL, "symbol": "star"},
    )


def _traces(one: CandidateAnswer, reach: Reach, points: list[Point], look: Look, need: float) -> list[go.Scatter]:
    """Return the line of a candidate by one method, through the means of its levels, and a mark for each time that a
    level was tried: an empty one where it did not hold."""
    of_level = [[point.read_ms or 0.0 for point in same] for same in group_points(points, lambda point: point.level)]
    line = go.Scatter(
        mode="lines",
        x=rounded(level / need for level in dict.fromkeys(point.level for point in points)),
        y=rounded(sum(times) / len(times) for times in of_level),
        line={"color": look.colour, "width": 1.5, "dash": _DASHES[reach.method]},
        hoverinfo="skip",
    )
    marks = go.Scatter(
        mode="markers",
        name=f"{one.name}, {words.METHODS[reach.method]}",
        x=rounded(point.level / need for point in points),
        y=rounded(point.read_ms for point in points),
        marker={
            "size": 9,
            "color": look.colour,
            "symbol": [look.symbol if point.verdict == "held" else f"{look.symbol}-open" for point in points],
        },
        cliponaxis=False,
    )
    return [line, marks]
