"""The tables of causes: the division of response time, laws, associations with throughput, predictions, and how two
sides differ."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.bottleneck.summary import PARTS, Associated, StepCause
from stallmark.analysis.cause.summary import Cause, Evidence
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding
from stallmark.format import percent
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Table
from stallmark.report.text import cause as words
from stallmark.report.text import sentence
from stallmark.report.text.laws import law_words
from stallmark.report.text.terms import PART_NAMES
from stallmark.stats.thresholds import ASSOCIATION_BIN_S, CONFIDENCE


def where(experiment: ExperimentSummary) -> Table | None:
    """Return the response time by part; None where no step's is known."""
    labels = step_labels(experiment)
    known = [(step, step.cause.budget) for step in experiment.steps if step.cause and step.cause.budget]
    parts = [name for name in PARTS if any(budget.parts_ms[name] > 0 for _, budget in known)]
    rows: list[Sequence[str | Cell]] = []
    for step, budget in known:
        star = "" if budget.device_known else "*"
        rows.append(
            [
                labels[step.key] + star,
                format.number(budget.response_ms),
                *(f"{format.number(budget.parts_ms[name])} ({format.share(budget.share(name))})" for name in parts),
                format.count(budget.transactions),
                format.count(budget.looks),
            ]
        )
    if not rows:
        return None
    notes = [words.RESPONSE_DIVIDED] + [words.DEVICE_NOT_KNOWN] * (not all(budget.device_known for _, budget in known))
    header = ["step", "response ms", *(PART_NAMES[name] for name in parts), "transactions", "looks at sessions"]
    return Table(header, rows, frozenset({0}), notes)


def what_if(experiment: ExperimentSummary) -> Table | None:
    """Return predicted throughput for other read times; None where nothing can be predicted."""
    labels = step_labels(experiment)
    known = [(step, step.cause) for step in experiment.steps if step.cause and step.cause.predictions]
    if not known:
        return None
    times = [one.read_ms for one in known[0][1].predictions]
    rows: list[Sequence[str | Cell]] = [
        [labels[step.key], *_measured(cause), *(_predicted(cause, ms) for ms in times)] for step, cause in known
    ]
    header = ["step", "read ms measured", "by", "TPS measured", *(f"{format.number(ms)} ms" for ms in times)]
    return Table(
        header, rows, frozenset({0, 2}), [words.PREDICTED], [("", 1), ("As it was", 3), ("If reads took", len(times))]
    )


def _measured(cause: StepCause) -> list[str]:
    demands = cause.demands
    assert demands is not None
    return [format.number(demands.read_ms), demands.read_source, format.number(demands.tps)]


def _predicted(cause: StepCause, read_ms: float) -> str:
    found = next(one for one in cause.predictions if one.read_ms == read_ms)
    return f"{format.number(found.tps)} ({format.number(found.low)}–{format.number(found.high)})"


def notes(experiment: ExperimentSummary) -> list[tuple[str, Finding]]:
    """Return the reasons why something could not be computed, once each, with the steps they hold for."""
    labels = step_labels(experiment)
    found: dict[Finding, list[str]] = {}
    for step in experiment.steps:
        for note in step.cause.notes if step.cause else ():
            found.setdefault(note, []).append(labels[step.key])
    every = len(experiment.steps)
    return [("all steps" if len(steps) == every else ", ".join(steps), note) for note, steps in found.items()]


def laws(experiment: ExperimentSummary) -> Table | None:
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    known = [(step, law) for step in experiment.steps if step.cause for law in step.cause.laws]
    for step, law in known:
        name, left, right, unit = law_words(law)
        closed = {True: Cell("closes", "good"), False: Cell("does not close", "bad"), None: Cell("open", "apart")}
        rows.append(
            [
                labels[step.key],
                name,
                f"{left}: {format.number(law.left_value)}",
                f"{right}: {format.number(law.right_value)}",
                unit,
                format.signed(law.gap),
                f"±{format.share(law.tolerance)}",
                closed[law.closed],
                sentence(law.finding),
            ]
        )
    if not rows:
        return None
    header = ["step", "law", "one side", "other side", "unit", "apart", "allowed", "", "in words"]
    return Table(header, rows, frozenset({0, 1, 2, 3, 4, 7, 8}), [words.LAWS_NOTE])


def associations(experiment: ExperimentSummary) -> Table | None:
    """Return the series that moved with throughput, and the read time in any case, of steps with enough seconds."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    others = 0
    for step in experiment.steps:
        for one in step.cause.associations if step.cause else ():
            if not one.shown and one.series != Associated.READ_TIME:
                others += 1
                continue
            rows.append(
                [
                    labels[step.key],
                    *words.series_words(one),
                    _with_interval(one.r, one.low, one.high),
                    f"{format.count(one.n)} of {format.seconds(one.bin_s)}",
                    Cell("moves with it", "good") if one.shown else "not shown",
                    _with_interval(one.lag_s, one.lag_low_s, one.lag_high_s),
                    _with_interval(one.elasticity, one.elasticity_low, one.elasticity_high),
                    format.count(one.elasticity_n) if one.elasticity_n else format.NONE,
                    _signed(one.expected),
                ]
            )
    if not rows and not others:
        return None
    header = [
        *("step", "series", "unit", "strength", "changes", "", "lag s", "elasticity"),
        *(f"changes of {format.seconds(ASSOCIATION_BIN_S)}", "expected"),
    ]
    left_out = words.further_series(others)
    return Table(header, rows, frozenset({0, 1, 2, 5}), [words.ASSOCIATED] + [left_out] * (others > 0))


def parts(cause: Cause) -> Table | None:
    """Return the response time of two sides, and its parts."""
    return _evidence(cause.parts, with_share=True) if cause.parts else None


def evidence(cause: Cause) -> Table | None:
    return _evidence(cause.evidence, with_share=False) if cause.evidence else None


def _evidence(some: Sequence[Evidence], with_share: bool) -> Table:
    rows: list[Sequence[str | Cell]] = []
    for one in some:
        name, unit, method = words.evidence_words(one)
        row = [
            name,
            unit,
            format.number(one.a),
            format.number(one.b),
            _signed(one.change),
            format.NONE if one.low is None else f"{_signed(one.low)} to {_signed(one.high)}",
            f"{one.runs_a} and {one.runs_b}",
        ]
        rows.append([*row, format.signed(one.share)] if with_share else [*row, method])
    last = "share of the change" if with_share else "method"
    header = ["", "unit", "A", "B", "change", f"{percent(CONFIDENCE)} interval", "runs", last]
    note = [words.CHANGED, words.evidence_method(some[0])] if with_share else []
    return Table(header, rows, frozenset({0, 1} if with_share else {0, 1, 7}), note)


def tests(cause: Cause) -> Table | None:
    """Return the predictions of one side's model next to the other side's figures."""
    rows: list[Sequence[str | Cell]] = [
        [
            one.model_of,
            one.variant,
            format.number(one.read_ms),
            f"{format.number(one.predicted)} ({format.number(one.low)}–{format.number(one.high)})",
            format.number(one.measured),
            format.signed(one.error),
            "within its range" if one.held else Cell("outside its range", "apart"),
            format.count(one.runs),
        ]
        for one in cause.predictions
    ]
    if not rows:
        return None
    header = ["model of", "asked about", "read ms of that", "predicted TPS", "measured TPS", "error", "", "runs"]
    note = words.TESTS_OF_MODELS
    return Table(header, rows, frozenset({0, 1, 6}), [note])


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return format.NONE
    return f"{_signed(value)} ({_signed(low)} to {_signed(high)})"


def _signed(value: float | None) -> str:
    if value is None:
        return format.NONE
    text = format.number(abs(value))
    return text if value == 0 or text == "0" else f"{'+' if value > 0 else '−'}{text}"
