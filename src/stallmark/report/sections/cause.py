"""Where the time went: the users' time by wait class and what moved with throughput, the response time by part, laws,
predictions, and how two sides differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stallmark import format
from stallmark.analysis.cause_evidence import Cause, Evidence
from stallmark.analysis.compare.summary import PairComparison
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.step_summary import PARTS, Associated, Association, Demands, StepCause, StepSummary
from stallmark.format import coefficient, percent
from stallmark.report.columns import by_reason, panels, step_labels, step_rows
from stallmark.report.document import Block, Fold, Grid, Section, Title, Words, table_blocks
from stallmark.report.figures import (
    NEUTRAL,
    WAITS,
    Drawing,
    Figure,
    KeyItem,
    bars,
    looks,
    note,
    places,
    plain,
    rounded,
    scatter,
    stacked,
)
from stallmark.report.table import Cell, Rows, Table, fields, group, named_rows, number, numbers, word
from stallmark.report.text import PART_NAMES, reading, sentence
from stallmark.report.text import cause as words
from stallmark.report.text.device import law_words
from stallmark.report.text.reading import Panel
from stallmark.stats.inference import Correlation
from stallmark.stats.thresholds import ASSOCIATION_BIN_S, CONFIDENCE

ROW, HEAD, FOOT = 26, 30, 42  # px: a row, a panel's title, the axis below


def wait_figure(experiment: ExperimentSummary) -> Figure | None:
    """Return stacked shares of the users' sampled time; None when no step was sampled."""
    steps = [s for s in experiment.steps if s.waits.share]
    if not steps:
        return None
    labels = step_labels(experiment)
    parts = panels(steps)
    seen = {name for s in steps for name, share in (s.waits.share or {}).items() if share}
    # Rare classes are omitted unless observed, so that the key stays short.
    order = [name for name in WAITS if name not in reading.WAITS_EXPLAINED or name in seen]
    made = _rows_chart(parts, labels, barmode="stack", bargap=0.24, hovermode="y unified")
    ticks = {"tickvals": [0, 25, 50, 75, 100], "ticktext": ["0", "25", "50", "75", "100 %"]}
    made.change(xaxis={"range": [0, 100]} | ticks)
    for place, panel in zip(places(len(parts)), parts, strict=True):
        for name in order:
            values = [100 * (s.waits.share or {}).get(name, 0.0) for s in panel.steps]
            made.add(
                bars(
                    orientation="h",
                    name=WAITS[name].name,
                    x=rounded(values),
                    y=list(range(len(panel.steps))),
                    text=[f"{v:.0f}" if v >= 5 else "" for v in values],
                    textposition="inside",
                    insidetextanchor="middle",
                    textangle=0,
                    constraintext="none",
                    hovertemplate="%{x:.1f} %",
                    marker={"color": WAITS[name].colour},
                    yaxis=f"y{place}",
                )
            )
    return Figure(
        id="waits",
        title="Where the users’ time went",
        unit="share of the users’ sampled time",
        emulated=any(p.emulated for p in parts),
        summary=_wait_summary(steps, labels),
        method=reading.WAITS
        + "".join(f"{text} " for name, text in reading.WAITS_EXPLAINED.items() if name in order)
        + reading.WAITS_ARE_NO_CAUSE,
        chart=made,
        header=["step", *(WAITS[n].name for n in order), "most frequent waits"],
        rows=[
            [
                labels[s.key],
                *(format.share((s.waits.share or {}).get(n, 0.0)) for n in order),
                ", ".join(f"{event} {format.share(part)}" for event, part in s.waits.top[:4]) or format.NONE,
            ]
            for s in steps
        ],
        key=[KeyItem(WAITS[n].name, WAITS[n].colour, None, "bar") for n in order],
        wide=True,
    )


def correlation_figures(experiment: ExperimentSummary) -> list[Figure]:
    """Return one figure per pair of series, a row per step with its 95 % interval."""
    pairs = dict.fromkeys((c.left, c.right, c.right_unit) for s in experiment.steps for c in s.bottleneck.correlations)
    return [_correlation(experiment, pair, number) for number, pair in enumerate(pairs)]


def _correlation(experiment: ExperimentSummary, pair: tuple[str, str, str], number: int) -> Figure:
    labels = step_labels(experiment)
    seen = looks([s.variant for s in experiment.steps])
    by_step: dict[str, Correlation] = {
        s.key: c for s in experiment.steps for c in s.bottleneck.correlations if (c.left, c.right, c.right_unit) == pair
    }
    # Steps that are too short have no correlation.
    steps = [s for s in experiment.steps if s.key in by_step]
    parts = panels(steps)
    made = _rows_chart(parts, labels, hovermode="closest")
    ticks = {"tickvals": [-1, -0.5, 0, 0.5, 1], "ticktext": ["−1", "−0.5", "0", "0.5", "1"]}
    made.change(xaxis={"range": [-1.05, 1.05], "zeroline": True} | ticks)
    for place, panel in zip(places(len(parts)), parts, strict=True):
        values = [by_step[s.key] for s in panel.steps]
        made.add(
            scatter(
                mode="markers",
                name="r",
                x=[round(c.r, 3) for c in values],
                y=list(range(len(values))),
                error_x={
                    "symmetric": False,
                    "array": [round(c.high - c.r, 3) for c in values],
                    "arrayminus": [round(c.r - c.low, 3) for c in values],
                    "color": NEUTRAL,
                    "thickness": 2,
                    "width": 0,
                },
                marker={
                    "size": 9,
                    "color": [seen[s.variant].colour for s in panel.steps],
                    "symbol": [seen[s.variant].symbol for s in panel.steps],
                },
                text=[f"r {coefficient(c.r)} [{coefficient(c.low)}, {coefficient(c.high)}], n {c.n:,}" for c in values],
                yaxis=f"y{place}",
            )
        )
    left, right, unit = pair
    return Figure(
        id=f"correlation-{number}",
        title=f"{left[:1].upper()}{left[1:]} against {right}, {unit}",
        unit=reading.CORRELATION_UNIT,
        emulated=any(p.emulated for p in parts),
        summary=" ".join(
            reading.correlation(step=labels[s.key], r=c.r, low=c.low, high=c.high)
            for s in steps
            for c in [by_step[s.key]]
        ),
        method=reading.correlation_method(unit=unit),
        chart=made,
        header=["step", "r", "95 % low", "95 % high", "n", "unit"],
        rows=[
            [labels[s.key], coefficient(c.r), coefficient(c.low), coefficient(c.high), format.count(c.n), unit]
            for s in steps
            for c in [by_step[s.key]]
        ],
    )


def _rows_chart(parts: Sequence[Panel], labels: dict[str, str], **layout: Any) -> Drawing:
    """Return an empty chart with panels below each other, a row of equal height per step, first step uppermost."""
    plots = [(HEAD if panel.title else 8, len(panel.steps) * ROW) for panel in parts]
    made, tops = stacked(plots, 0, FOOT, left=10, right=30, **layout)
    for place, top, panel in zip(places(len(parts)), tops, parts, strict=True):
        count = len(panel.steps)
        rows = {"range": [count - 0.5, -0.5], "tickvals": list(range(count)), "showgrid": False, "zeroline": False}
        names = [plain(labels[step.key], 24) for step in panel.steps]
        made.change(**{f"yaxis{place}": rows | {"ticktext": names}})
        if panel.title:
            note(made, panel.title, 40, bold=True, y=top, yshift=3)
    return made


def _wait_summary(steps: Sequence[StepSummary], labels: dict[str, str]) -> str:
    parts = []
    for step in steps:
        share = step.waits.share or {}
        first, second = sorted(share, key=lambda n: -share[n])[:2]
        parts.append(
            f"{labels[step.key]}: {WAITS[first].name} {format.share(share[first])}, "
            f"{WAITS[second].name} {format.share(share[second])}"
        )
    return "; ".join(parts) + "."


def waits_section(experiment: ExperimentSummary) -> Section:
    waits, moved = wait_figure(experiment), correlation_figures(experiment)
    correlations = [Words(reading.CORRELATION, "lead"), Grid(moved)] if moved else []
    blocks = [*([waits] if waits else []), *correlations]
    return Section("waiting", "Waits of the users", blocks)


def streams_section(experiment: ExperimentSummary) -> Section:
    waits = wait_figure(experiment)
    blocks = [Words(reading.STREAM_WAITS, "lead"), waits] if waits else []
    return Section("waiting", "Waits of the streams", blocks)


def response_times(experiment: ExperimentSummary) -> Table | None:
    """Return the response time by part, or None if it is known for no step."""
    labels = step_labels(experiment)
    known = [(labels[step.key], step.budget) for step in experiment.steps if step.budget]
    parts = [name for name in PARTS if any(budget.parts_ms[name] > 0 for _, budget in known)]
    marked = [(step + "*" * (not budget.device_known), budget) for step, budget in known]
    return named_rows("step", marked).table_if_any(
        number("response ms", lambda budget: budget.response_ms),
        numbers(
            parts,
            PART_NAMES.__getitem__,
            lambda budget, name: f"{format.number(budget.parts_ms[name])} ({format.share(budget.share(name))})",
        ),
        number("transactions", lambda budget: budget.transactions, format.count),
        number("samples of sessions", lambda budget: budget.looks, format.count),
        notes=[
            words.RESPONSE_DIVIDED,
            *[words.DEVICE_NOT_KNOWN] * (not all(budget.device_known for _, budget in known)),
        ],
    )


def predicted_throughput(experiment: ExperimentSummary) -> Table | None:
    """Return predicted throughput for other read times, or None if nothing can be predicted."""
    rows = step_rows(experiment, lambda step: [step.cause] if step.cause and step.cause.predictions else [])
    times = [prediction.read_ms for cause in rows.items[:1] for prediction in cause.predictions]
    return rows.table_if_any(
        fields(Demands, lambda cause: cause.demands),
        group("If reads took", numbers(times, lambda ms: f"{format.number(ms)} ms", _predicted)),
        notes=[words.PREDICTED],
    )


def _predicted(cause: StepCause, read_ms: float) -> str:
    prediction = next(prediction for prediction in cause.predictions if prediction.read_ms == read_ms)
    return f"{format.number(prediction.tps)} ({format.number(prediction.low)}–{format.number(prediction.high)})"


def laws(experiment: ExperimentSummary) -> Table | None:
    return step_rows(experiment, lambda step: step.cause.laws if step.cause else []).table_if_any(
        word("law", lambda law: law_words(law)[0]),
        word("one side", lambda law: f"{law_words(law)[1]}: {format.number(law.left_value)}"),
        word("other side", lambda law: f"{law_words(law)[2]}: {format.number(law.right_value)}"),
        word("unit", lambda law: law_words(law)[3]),
        number("difference", lambda law: law.gap, format.signed),
        number("allowed", lambda law: f"±{format.share(law.tolerance)}"),
        word("", lambda law: _CLOSED[law.closed]),
        word("in words", lambda law: sentence(law.finding)),
        notes=[words.LAWS_NOTE],
    )


_CLOSED = {True: Cell("closes", "good"), False: Cell("does not close", "bad"), None: Cell("open", "apart")}


def associations(experiment: ExperimentSummary) -> Table | None:
    """Return the series that moved with throughput, and the read time in any case, of steps with enough seconds."""
    every = [series for step in experiment.steps for series in (step.cause.associations if step.cause else [])]
    if not every:
        return None
    rows = step_rows(experiment, lambda step: filter(_is_listed, step.cause.associations if step.cause else []))
    others = len(every) - len(rows.items)
    return rows.table(
        word("series", lambda series: words.series_words(series)[0]),
        word("unit", lambda series: words.series_words(series)[1]),
        number("strength", lambda series: _with_interval(series.r, series.low, series.high)),
        number("changes", lambda series: f"{format.count(series.n)} of {format.seconds(series.bin_s)}"),
        word("", lambda series: Cell("moves with it", "good") if series.is_associated else "not shown"),
        number("lag s", lambda series: _with_interval(series.lag_s, series.lag_low_s, series.lag_high_s)),
        number(
            "elasticity",
            lambda series: _with_interval(series.elasticity, series.elasticity_low, series.elasticity_high),
        ),
        number(
            f"changes of {format.seconds(ASSOCIATION_BIN_S)}", lambda series: series.elasticity_n or None, format.count
        ),
        number("expected", lambda series: series.expected, _signed),
        notes=[words.ASSOCIATED] + [words.further_series(count=others)] * (others > 0),
    )


def _is_listed(series: Association) -> bool:
    return series.is_associated or series.series == Associated.READ_TIME


def parts(cause: Cause) -> Table | None:
    """Return the response time of two sides, and its parts."""
    return _evidence(cause.parts, with_share=True) if cause.parts else None


def evidence(cause: Cause) -> Table | None:
    return _evidence(cause.evidence, with_share=False) if cause.evidence else None


def _evidence(rows: Sequence[Evidence], with_share: bool) -> Table:
    return Rows(rows).table(
        word("", lambda row: words.evidence_words(row)[0]),
        word("unit", lambda row: words.evidence_words(row)[1]),
        number("A", lambda row: row.a),
        number("B", lambda row: row.b),
        number("change", lambda row: row.change, _signed),
        number(
            f"{percent(CONFIDENCE)} interval",
            lambda row: format.NONE if row.low is None else f"{_signed(row.low)} to {_signed(row.high)}",
        ),
        number("runs", lambda row: f"{row.runs_a} and {row.runs_b}"),
        number("share of the change", lambda row: row.share, format.signed, when=with_share),
        word("method", lambda row: words.evidence_words(row)[2], when=not with_share),
        notes=[words.CHANGED, words.evidence_method(rows[0])] if with_share else [],
    )


def tests(cause: Cause) -> Table | None:
    """Return the predictions of one side's model next to the other side's figures."""
    return Rows(cause.predictions).table_if_any(
        word("model of", lambda test: test.model_of),
        word("applied to", lambda test: test.variant),
        number("its read ms", lambda test: test.read_ms),
        number(
            "predicted TPS",
            lambda test: f"{format.number(test.predicted)} ({format.number(test.low)}–{format.number(test.high)})",
        ),
        number("measured TPS", lambda test: test.measured),
        number("error", lambda test: test.error, format.signed),
        word("", lambda test: "within its range" if test.is_within_range else Cell("outside its range", "apart")),
        number("runs", lambda test: test.runs, format.count),
        notes=[words.TESTS_OF_MODELS],
    )


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return format.NONE
    return f"{_signed(value)} ({_signed(low)} to {_signed(high)})"


def _signed(value: float | None) -> str:
    if value is None:
        return format.NONE
    text = format.number(abs(value))
    # What is nearly nothing, "<0.0001", has no direction.
    return text if value == 0 or text.startswith("<") else f"{'+' if value > 0 else '−'}{text}"


def causes_section(experiment: ExperimentSummary) -> Section:
    """Return the division of every step's response time, and the predictions for faster reads."""
    moved = table_blocks(associations(experiment), "Strength, lag and elasticity against throughput")
    obeyed = table_blocks(laws(experiment), "Little’s law and the utilisation law")
    blocks: list[Block] = [
        *table_blocks(response_times(experiment), "Response time by part, ms per transaction"),
        *(
            Words(f"{steps}: {sentence(note)}", "footnote")
            for steps, note in by_reason(experiment, lambda step: step.cause.notes if step.cause else (), "all steps")
        ),
        *table_blocks(predicted_throughput(experiment), "Predicted throughput by read time", "What if reads took …"),
        *([Fold("What moved with throughput", moved)] if moved else []),
        *([Fold("Laws of operational analysis", obeyed)] if obeyed else []),
    ]
    title = "Where the response time went"
    return Section("causes", title, blocks, "by part; what faster reads would give")


def differences_section(pairs: Sequence[PairComparison]) -> Section:
    """Return the causes of the differences between two sides."""
    blocks = [block for pair in pairs if pair.cause for block in _difference_blocks(pair, pair.cause)]
    return Section("why", "Why", blocks)


def _difference_blocks(pair: PairComparison, cause: Cause) -> Iterator[Block]:
    yield Title(f"{pair.b} (B) against {pair.a} (A)")
    yield Words(sentence(cause.finding), "lead")
    yield from (Words(sentence(caution), "footnote") for caution in cause.cautions)
    yield from table_blocks(parts(cause), "Response time by part, A and B, ms per transaction")
    if checked := table_blocks(evidence(cause), "I/O and CPU of A and B"):
        yield Fold("I/O, CPU and other evidence", checked)
    if tested := table_blocks(tests(cause), "Predictions next to measurements"):
        yield Fold("Tests of the models", tested)
