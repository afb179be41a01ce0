"""The tables of a sizing."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.sizing.candidate import CandidateAnswer
from stallmark.analysis.sizing.reach import Reach
from stallmark.analysis.sizing.summary import SizingSummary
from stallmark.record.devices import array_name
from stallmark.record.manifest.storage import Device
from stallmark.record.sizing import Matched, Replay, ReplayLevel, Stream, Window
from stallmark.report.table import Cell, Columns, Rows, Table, group, if_known, number, word
from stallmark.report.text import ceiling
from stallmark.report.text import sizing as words
from stallmark.stats.thresholds import MATCHED_WITHIN

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
