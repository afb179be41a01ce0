"""The report of a sizing: sections, tables, a chart, the parts that a terminal shows, and its JSON. The answer comes
first, for the person who signs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stallmark import format
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.metrics import group as group_points
from stallmark.record.devices import array_name
from stallmark.record.manifest.storage import Device
from stallmark.report.document import (
    Document,
    Facts,
    Note,
    Notes,
    Pairs,
    Section,
    Shown,
    Title,
    Words,
    bullets,
    table_blocks,
)
from stallmark.report.figures import (
    COLOURS,
    NEUTRAL,
    Figure,
    KeyItem,
    Look,
    Trace,
    from_zero,
    limit_line,
    looks,
    note,
    rounded,
    scatter,
    side_by_side,
    values_axis,
)
from stallmark.report.kinds import RecordKind
from stallmark.report.renderers import in_json
from stallmark.report.sections import findings_section
from stallmark.report.table import Cell, Columns, Rows, Table, group, if_known, number, word
from stallmark.report.text import ceiling, sentence
from stallmark.report.text.device import EMULATED
from stallmark.sizing import wording as words
from stallmark.sizing.candidate import CandidateAnswer
from stallmark.sizing.manifest import Matched, Replay, ReplayLevel, Stream, Window
from stallmark.sizing.reach import Method, Point, Reach
from stallmark.sizing.summary import SizingSummary, summarise_candidate
from stallmark.stats.thresholds import MATCHED_WITHIN

_STYLES = {"carries": "good", "carries_not": "bad", "open": "apart", "unknown": "apart"}
_FIGURES = ("standing", "low", "high", "middle", "emulated", "memory_bytes", "per_s", "replay", "stand_in")


def sizing_document(sizing: SizingSummary) -> Document:
    headline = [
        text
        for text in (
            words.service_level(sizing.service_level),
            words.need(sizing.need.per_s, sizing.need.multiple),
            f"profile of {format.duration(sizing.profile.end - sizing.profile.begin)}" if sizing.profile else "",
        )
        if text
    ]
    answers = [sentence(answer) for answer in sizing.answers]
    chart = latency_figure(sizing)
    candidates = candidates_table(sizing)
    # A peak that was not played makes the answer open, so it is marked.
    played = [Note(Cell("•", _mark(finding)), sentence(finding)) for finding in sizing.played]
    return Document(
        title=words.TITLE,
        kind="sizing",
        question=words.QUESTION,
        headline=headline,
        banner=words.EMULATED_CANDIDATES if sizing.emulated else None,
        answer=answers[0],
        lead=[
            *(Words(answer, "answer") for answer in answers[1:]),
            *table_blocks(candidates, "Candidates"),
            *([Title(words.PLAYED), *bullets(sizing.played)] if sizing.played else []),
            *([chart] if chart else []),
            Words(words.CANDIDATES, "footnote"),
        ],
        cautions=sizing.cautions,
        sections=list(_sections(sizing)),
        brief=[
            [Words(", ".join(headline), "quiet"), *([Words(EMULATED, "emulated")] if sizing.emulated else [])],
            [
                Words(answer, _STYLES[candidate.standing])
                for candidate, answer in zip(sizing.candidates, answers, strict=True)
            ],
            [Shown(candidates)],
            [Title(words.PLAYED), Notes(played)] if played else [],
            bullets([*sizing.findings, *sizing.memory]),
            *([Shown(table)] for table in (windows_table(sizing), quantities_table(sizing)) if table.rows),
            bullets(sizing.cautions, "apart"),
            [Title(words.NOT_TESTED), *bullets(sizing.untested)],
        ],
    )


def _mark(finding: Finding) -> str:
    return "" if finding.severity is Severity.INFO else "apart"


def _sections(sizing: SizingSummary) -> Iterator[Section]:
    yield Section("untested", words.NOT_TESTED, [Words(words.UNTESTED, "lead"), *bullets(sizing.untested)])
    if sizing.findings:
        yield findings_section(sizing.findings)
    matched = quantities_table(sizing)
    reached = table_blocks(
        matched if matched.rows else None, "Required and reached", "Required and reached", words.MATCHED
    )
    windows = Shown(windows_table(sizing), "The demand")
    yield Section("demand", "The demand", [Words(words.DEMAND, "lead"), windows, *reached])
    if sizing.memory:
        yield Section("memory", "Memory", bullets(sizing.memory))
    if levels := level_tables(sizing):
        blocks = [block for name, table in levels for block in table_blocks(table, f"Levels of {name}", name)]
        lead = Words(words.LEVELS, "lead")
        yield Section("levels", "Levels of the replay", [lead, *blocks], "every tried load")
    facts = Facts([Pairs(pairs, name) for name, pairs in facts_of_candidates(sizing)])
    yield Section("environment", "Environment", [facts], "servers and records")


def sizing_in_json(sizing: SizingSummary) -> dict[str, Any]:
    """Return everything that the report shows."""
    return {
        "kind": "sizing",
        "need": in_json(sizing.need),
        "demand": in_json(sizing.demand),
        "service_level": in_json(sizing.service_level),
        "carried": sizing.any_carries,
        "candidates": [
            _candidate(candidate) | {"answer": in_json(finding)}
            for candidate, finding in zip(sizing.candidates, sizing.answers, strict=True)
        ],
        "today": _candidate(sizing.today) if sizing.today else None,
        "profile": str(sizing.profile.folder) if sizing.profile else None,
        "findings": in_json(sizing.findings),
        "memory": in_json(sizing.memory),
        "cautions": in_json(sizing.cautions),
        "played": in_json(sizing.played),
        "untested": in_json(sizing.untested),
    }


SIZING = RecordKind(summarise_candidate, sizing_document, sizing_in_json, alone=words.ALONE)


def _candidate(answer: CandidateAnswer) -> dict[str, Any]:
    own = answer.sizing.candidate
    units = {"cost": own.cost, "watts": own.watts, "rack_units": own.rack_units}
    return {
        "name": answer.name,
        "folder": str(answer.folder),
        "status": answer.sizing.status,
        **{name: in_json(getattr(answer, name)) for name in _FIGURES},
        **units,
        **{f"per_s_per_{name}": answer.per_s_of(unit) for name, unit in units.items()},
        "matched": in_json(answer.sizing.stand_in.matched) if answer.sizing.stand_in else None,
    }


# The tables of a sizing.

_MB = 1e6
COST = 1000
_KINDS = {"carries": "good", "carries_not": "bad", "open": "apart", "unknown": "none"}
_SCALES = {"read_bytes": _MB, "log_bytes": _MB}
STREAMS = ("reads", "writes", "log")


def candidates_table(summary: SizingSummary) -> Table:
    """Return the table of candidates, with today's hardware below them."""
    today, need = summary.today, summary.need.multiple
    return Rows([*summary.candidates, *([today] if today else [])]).table(
        word("candidate", lambda answer: Cell(f"{answer.name} (today)", "quiet") if answer is today else answer.name),
        word("answer", lambda answer: "" if answer is today else _standing(answer)),
        number("headroom", _headroom),
        if_known(
            number(
                "interval",
                lambda answer: None if answer.low is None else words.span(answer.low, answer.high),
                importance=1,
            ),
            number("cost", lambda answer: answer.sizing.candidate.cost, _plain, importance=2),
            number("TPS", lambda answer: answer.per_s, importance=3),
            number("pool", lambda answer: answer.memory_bytes, format.size, importance=4),
            number("power W", lambda answer: answer.sizing.candidate.watts, _plain, importance=5),
            number("rack U", lambda answer: answer.sizing.candidate.rack_units, _plain, importance=6),
            number(f"TPS per {COST:,} cost", _per_cost, importance=7),
            number("TPS/W", lambda answer: answer.per_s_of(answer.sizing.candidate.watts), importance=8),
            number("TPS/U", lambda answer: answer.per_s_of(answer.sizing.candidate.rack_units), importance=9),
            number("replay", lambda answer: _reach_range(answer.replay, need), importance=10),
            number("stand-in", lambda answer: _reach_range(answer.stand_in, need), importance=11),
        ),
    )


def _standing(answer: CandidateAnswer) -> Cell:
    return Cell(words.STANDINGS[answer.standing], _KINDS[answer.standing])


def _headroom(answer: CandidateAnswer) -> Cell:
    return Cell(format.NONE if answer.middle is None else words.in_times(answer.middle), "main")


def _per_cost(answer: CandidateAnswer) -> float | None:
    per_cost = answer.per_s_of(answer.sizing.candidate.cost)
    return None if per_cost is None else per_cost * COST


def _reach_range(reach: Reach | None, need: float) -> str:
    if reach is None or not reach.is_known:
        return format.NONE
    return words.span(reach.low / need, None if reach.high is None else reach.high / need)


def _plain(value: float | None) -> str:
    return format.NONE if value is None else format.exact(value)


def windows_table(summary: SizingSummary) -> Table:
    """Return the windows of the demand: the mean I/O of each, and its highest interval."""
    demand, first = summary.demand, next(iter(summary.demand.windows), None)
    return Rows(demand.windows).table(
        word(
            f"from, {format.zone()}", lambda window: f"{format.minute(window.begin)} ({words.BECAUSE[window.because]})"
        ),
        number("observed", lambda window: window.seconds, format.seconds, importance=6),
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


def quantities_table(summary: SizingSummary) -> Table:
    """Return the target quantities of the stand-in per second, and the measured ones on each candidate."""
    by_candidate: dict[str, dict[str, Matched]] = {
        answer.name: {str(quantity.name): quantity for quantity in answer.sizing.stand_in.matched}
        for answer in summary.candidates
        if answer.sizing.stand_in
    }
    rows: list[Sequence[str | Cell]] = []
    for name, title in words.QUANTITIES.items():
        compared = [quantities.get(name) for quantities in by_candidate.values()]
        wanted = next((quantity.wanted for quantity in compared if quantity and quantity.wanted is not None), None)
        reached = [quantity.reached if quantity else None for quantity in compared]
        rows.append([title, _scaled(name, wanted), *(_reached_cell(name, wanted, value) for value in reached)])
    return Table(["quantity", "profile", *by_candidate], rows) if by_candidate else Table([], [])


def _scaled(name: str, value: float | None) -> str:
    return format.number(None if value is None else value / _SCALES.get(name, 1.0))


def _reached_cell(name: str, wanted: float | None, reached: float | None) -> str | Cell:
    text = _scaled(name, reached)
    ratio = format.difference(wanted, reached)
    if ratio is None:
        return text
    return Cell(f"{text} ({format.signed(ratio)})", "apart" if abs(ratio) > MATCHED_WITHIN else "")


def level_tables(summary: SizingSummary) -> list[tuple[str, Table]]:
    """Return the levels of each candidate's replay."""
    return [(answer.name, _levels(answer.sizing.replay)) for answer in summary.candidates if answer.sizing.replay]


def _levels(replay: Replay) -> Table:
    header = ["level", "tried", "verdict"]
    for name in ("read", "write", "log write"):
        header += [f"{name}s/s due", "done", f"ms/{name}", "p95", "p99"]
    return Table(header, [_level(level) for level in replay.levels], words=frozenset({0, 1, 2}))


def _level(level: ReplayLevel) -> list[str | Cell]:
    verdict = ceiling.level_verdict(level.verdict) + (", behind" if level.backlog else "")
    streams: dict[str, Stream] = {stream.name: stream for stream in level.streams}
    row: list[str | Cell] = [words.in_times(level.level), ceiling.tried(level.tried)]
    row.append(Cell(verdict, "bad") if level.verdict == "broke" else verdict)
    for name in STREAMS:
        row += _stream(streams.get(name), level.seconds)
    return row


def _stream(stream: Stream | None, seconds: float) -> list[str]:
    if stream is None or not seconds:
        return [format.NONE] * 5
    rates = [format.number(stream.wanted / seconds), format.number(stream.ios / seconds)]
    return [
        *rates,
        format.number(stream.mean_ms),
        *(format.number(percentile(stream, share)) for share in (0.95, 0.99)),
    ]


def percentile(stream: Stream, share: float) -> float | None:
    """Return the time that a share of the I/Os did not exceed, or None with fewer than ten I/Os beyond it."""
    total = sum(count for _, count in stream.histogram)
    if total * (1 - share) < 10:
        return None
    seen = 0
    for ms, count in stream.histogram:
        seen += count
        if seen >= share * total:
            return ms
    return None


def facts_of_candidates(summary: SizingSummary) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the known facts of each candidate's machine, storage and replay."""
    return [
        (answer.name, _facts(answer)) for answer in (*summary.candidates, *([summary.today] if summary.today else []))
    ]


def _facts(answer: CandidateAnswer) -> list[tuple[str, str]]:
    sizing, replay = answer.sizing, answer.sizing.replay
    data, log = sizing.devices.for_role("data"), sizing.devices.for_role("wal")
    pairs = [
        ("measured", format.moment(sizing.started)),
        ("engine", sizing.engine),
        ("cores of the load machine", format.count(sizing.machine.cores)),
        ("memory of the load machine", format.size(sizing.machine.memory_bytes)),
        ("data on", _device_name(data)),
        ("log on", _device_name(log)),
        ("replay", f"{replay.tool}, {replay.how}" if replay else format.NONE),
        ("file of the replay", format.size(replay.file_bytes) if replay else format.NONE),
        ("stand-in", _rates(answer) or format.NONE),
        ("record", answer.folder.name),
    ]
    return [(name, value) for name, value in pairs if value != format.NONE]


def _device_name(device: Device) -> str:
    emulated = device.emulated_array
    return array_name(emulated) if emulated else device.model or device.name or format.NONE


def _rates(answer: CandidateAnswer) -> str:
    rates = answer.sizing.stand_in.rates if answer.sizing.stand_in else {}
    return ", ".join(f"{name} {format.number(rate)}/s" for name, rate in rates.items() if rate)


# The chart of a sizing: the time of reads over the load, with the need.

_DASHES: dict[Method, str] = {"replay": "solid", "stand_in": "dot"}
_LIMIT = COLOURS[1]


def latency_figure(summary: SizingSummary) -> Figure | None:
    """Return the mean read time at every level of every candidate, or None if no time is known."""
    made, _ = side_by_side([1.0], 0.0, 380, margin={"t": 28})
    shown = [*summary.candidates, *([summary.today] if summary.today else [])]
    drawn: list[tuple[str, Method, Point]] = []
    key = []
    for answer, look in zip(shown, looks([answer.name for answer in shown]).values(), strict=True):
        for reach in filter(None, (answer.replay, answer.stand_in)):
            points = sorted((point for point in reach.points if point.read_ms is not None), key=lambda p: p.level)
            if points:
                drawn += [(answer.name, reach.method, point) for point in points]
                made.add(*_traces(answer, reach, points, look, summary.need.multiple))
                label = f"{answer.name}, {words.METHODS[reach.method]}"
                key.append(KeyItem(label, look.colour, _DASHES[reach.method], look.symbol))
    if not drawn:
        return None
    if (today_ms := summary.demand.read_ms) is not None:
        made.add(_in_production(today_ms, summary.need.multiple))
        key.append(KeyItem(words.IN_PRODUCTION, NEUTRAL, None, "star"))
    limit = summary.service_level.read_ms
    times = [ms for ms in (summary.demand.read_ms, *(point.read_ms for *_, point in drawn)) if ms is not None]
    axis, scale = values_axis(max([*times, limit or 0.0]), times)
    if limit is not None:
        made.add_shapes(limit_line(limit, _LIMIT))
        key.append(KeyItem(f"limit, {limit:g} ms", _LIMIT, "dash"))
    line = {"color": NEUTRAL, "width": 1.5}
    made.add_shapes({"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": 1, "x1": 1, "line": line})
    note(made, words.NEED_MARK, x=1, xref="x", yshift=-4, xshift=3, yanchor="top")
    furthest = max([1.0, *(point.level for *_, point in drawn)]) / summary.need.multiple
    made.change(
        xaxis={"range": from_zero(max(furthest, 1.0)), "title": {"text": "load, as a multiple of the need"}}, yaxis=axis
    )
    note(made, f"mean read time, ms{scale}", yshift=8)
    return Figure(
        id="latency",
        title="Read time over the load",
        unit="ms",
        emulated=summary.emulated,
        summary="; ".join(f"{answer.name}: {words.STANDINGS[answer.standing]}" for answer in summary.candidates),
        method=words.CHART,
        chart=made,
        header=["candidate", "by", "× the need", "read ms", "verdict"],
        rows=[
            [name, words.METHODS[method], format.short(point.level / summary.need.multiple),
             format.number(point.read_ms), ceiling.level_verdict(point.verdict)]
            for name, method, point in drawn
        ],
        key=key,
        wide=True,
    )  # fmt: skip


def _in_production(read_ms: float, need: float) -> Trace:
    """Return the read time in the profile's busiest window, on the recorded hardware."""
    return scatter(
        mode="markers",
        name=words.IN_PRODUCTION,
        x=rounded([1 / need]),
        y=rounded([read_ms]),
        marker={"size": 11, "color": NEUTRAL, "symbol": "star"},
    )


def _traces(answer: CandidateAnswer, reach: Reach, points: list[Point], look: Look, need: float) -> list[Trace]:
    """Return the line of a candidate by one method, through the means of its levels, and a mark for each try of a
    level.

    The mark is empty if the level did not hold.
    """
    of_level = [[point.read_ms or 0.0 for point in same] for same in group_points(points, lambda point: point.level)]
    line = scatter(
        mode="lines",
        x=rounded(level / need for level in dict.fromkeys(point.level for point in points)),
        y=rounded(sum(times) / len(times) for times in of_level),
        line={"color": look.colour, "width": 1.5, "dash": _DASHES[reach.method]},
        hoverinfo="skip",
    )
    marks = scatter(
        mode="markers",
        name=f"{answer.name}, {words.METHODS[reach.method]}",
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
