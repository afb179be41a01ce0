"""The evidence of a comparison as tables: what was checked, and every run with its figures."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import percent
from stallmark.report.columns import counted, rate
from stallmark.report.table import Cell, Table
from stallmark.report.text import comparison as words
from stallmark.report.text import sentence
from stallmark.report.text.checks import CHECKS
from stallmark.stats.thresholds import CONFIDENCE

WORDS = {True: Cell("holds", "good"), False: Cell("FAILED", "bad"), None: Cell("not known", "none")}


def held(pair: PairComparison) -> str:
    """Return how many checks hold."""
    return words.held(sum(one.passed is True for one in pair.checks), len(pair.checks))


def brief(found: ComparisonSummary) -> str:
    """Return how many checks of all pairs hold, in a line."""
    passed = [one.passed is True for pair in found.pairs for one in pair.checks]
    return f"{sum(passed)} of {len(passed)} checks hold; every run"


def checks(pair: PairComparison, holding: bool = True) -> Table:
    """Return the checks of a pair, those that hold only with `holding`."""
    return Table(
        header=["check", "what must hold", "", "found"],
        rows=[
            [*CHECKS[one.kind], WORDS[one.passed], sentence(one.found)]
            for one in pair.checks
            if holding or not one.passed
        ],
        words=frozenset({0, 1, 2, 3}),
        notes=[sentence(one.reason) for one in pair.failed if one.reason],
    )


def figures(pair: PairComparison) -> Table:
    """Return every figure of both sides, with B's ratio to A's; narrow terminals drop its p."""
    rows: list[Sequence[str | Cell]] = [
        [Cell(text, "main" if one is pair.primary else "quiet" if one.shown is False else "") for text in _cells(one)]
        for one in (pair.primary, *pair.others)
        if one.a is not None or one.b is not None
    ]
    header = [f"A: {pair.a}\nB: {pair.b}", "A", "B", "B to A", "interval", "p"]
    return Table(header, rows, importance={5: 1})


def every_figure(pair: PairComparison) -> Table:
    """Return the figures of both sides with those of each type of transaction, for a ticket."""
    rows: list[Sequence[str | Cell]] = [
        [Cell(name, "main"), *cells] if one is pair.primary else [name, *cells]
        for one in (pair.primary, *pair.others)
        for name, *cells in [_cells(one)]
        if one.a is not None
    ]
    for types in pair.transactions:
        for one in (types.rate, types.latency):
            if one.a is not None:
                rows.append([f"{format.spoken(types.transaction)}: {one.name}, {one.unit}", *_cells(one)[1:]])
    return Table(["", pair.a, pair.b, "change", f"{percent(CONFIDENCE)} interval", "p"], rows)


def _cells(one: Ratio) -> list[str]:
    figures = words.value(one, one.a), words.value(one, one.b), words.change(one), words.reach(one)
    return [words.named(one), *figures, words.p_value(one.p_adjusted)]


def transactions(pair: PairComparison) -> Table:
    """Return how rate and latency of each type of transaction changed from A to B."""
    rows: list[Sequence[str | Cell]] = [
        [
            format.spoken(one.transaction),
            *(text for found in (one.rate, one.latency) for text in (words.change(found), words.reach(found))),
        ]
        for one in pair.transactions
    ]
    return Table(["transaction", "rate", "interval", "mean latency", "interval"], rows, importance={2: 2, 4: 1})


def intent(found: ComparisonSummary) -> Table:
    """Return how every side was configured, where variants may differ."""
    return Table(
        header=["side", "made with"],
        rows=[
            [side.name, ", ".join(map(sentence, side.differs)) or "the record does not tell"] for side in found.sides
        ],
        words=frozenset({0, 1}),
    )


def runs(experiment: ExperimentSummary, found: ComparisonSummary) -> Table:
    """Return every run as a row, in the order in which they were made."""
    side_of = {folder: side for side in found.sides for folder in side.runs}
    again = {folder for side in found.sides for folder in side.again}
    steps = sorted(
        (
            (run.started, name, step)
            for run in experiment.runs
            if (name := name_of(run)) in side_of
            for step in run.steps
        ),
        key=lambda row: (row[0], row[2].key),
    )
    several = len({(step.step, step.users) for *_, step in steps}) > 1
    header = ["run", "side", *(("users",) if several else ()), f"began ({format.zone()})", "measured", *_TITLES]
    rows: list[Sequence[str | Cell]] = []
    for started, run, step in steps:
        side = side_of[run]
        name = f"{side.name} (again)" if run in again else side.name
        users = [str(step.users)] if several else []
        began = format.second(started)
        rows.append([run, name, *users, began, format.seconds(step.interval.measured_s), *_figures(step)])
    return Table(header=header, rows=rows, words=frozenset({0, 1}), notes=[words.RUNS])


_TITLES = ("TPS", "mean ms", "p99 ms", "reads/tx", "read ms", "IOPS", "MB/s", "CPU")


def _figures(step: StepSummary) -> list[str]:
    io = step.storage.data
    return [
        format.number(step.result_tps),
        format.number(step.latency.mean_ms),
        format.number(step.latency.percentiles_ms.get("p99")),
        counted(step.storage.reads_per_transaction, io),
        format.number(io.read_ms if io else None),
        counted(rate(io, "iops"), io),
        counted(rate(io, "mb_per_s"), io),
        format.share(step.server.cpu_busy_share),
    ]
