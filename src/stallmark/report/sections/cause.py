"""The tables of causes: the division of response time, laws, associations with throughput, predictions, and how two
sides differ."""

from collections.abc import Iterator, Sequence

from stallmark import format
from stallmark.analysis.bottleneck.summary import PARTS, Associated, Association, Demands, StepCause
from stallmark.analysis.cause.evidence import Cause, Evidence
from stallmark.analysis.compare.summary import PairComparison
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.format import percent
from stallmark.report.columns import by_reason, step_labels, step_rows
from stallmark.report.document import Block, Fold, Section, Title, Words, table_blocks
from stallmark.report.table import Cell, Rows, Table, group, named_rows, number, numbers, word
from stallmark.report.text import PART_NAMES, sentence
from stallmark.report.text import cause as words
from stallmark.report.text.device import law_words
from stallmark.stats.thresholds import ASSOCIATION_BIN_S, CONFIDENCE


def response_times(experiment: ExperimentSummary) -> Table | None:
    """Return the response time by part, or None if it is known for no step."""
    labels = step_labels(experiment)
    known = [(labels[step.key], step.cause.budget) for step in experiment.steps if step.cause and step.cause.budget]
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
        group(
            "As measured",
            number("read ms", lambda cause: _demands(cause).read_ms),
            word("counted by", lambda cause: _demands(cause).read_source),
            number("TPS", lambda cause: _demands(cause).tps),
        ),
        group("If reads took", numbers(times, lambda ms: f"{format.number(ms)} ms", _predicted)),
        notes=[words.PREDICTED],
    )


def _demands(cause: StepCause) -> Demands:
    assert cause.demands is not None
    return cause.demands


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
        notes=[words.ASSOCIATED] + [words.further_series(others)] * (others > 0),
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
