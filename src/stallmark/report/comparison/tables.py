"""The evidence of a comparison as tables: what was checked, and every run with its figures."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.format import percent
from stallmark.report.columns import counted, data_rate
from stallmark.report.table import Cell, Rows, Table, number, word
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
    return Rows([check for check in pair.checks if holding or not check.passed]).table(
        word("check", lambda check: CHECKS[check.kind][0]),
        word("what must hold", lambda check: CHECKS[check.kind][1]),
        word("", lambda check: WORDS[check.passed]),
        word("found", lambda check: sentence(check.found)),
        notes=[sentence(check.reason) for check in pair.failed if check.reason],
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
    return Rows(pair.transactions).table(
        word("transaction", lambda types: format.spoken(types.transaction)),
        number("rate", lambda types: words.change(types.rate)),
        number("interval", lambda types: words.reach(types.rate), importance=2),
        number("mean latency", lambda types: words.change(types.latency)),
        number("interval", lambda types: words.reach(types.latency), importance=1),
    )


def intent(found: ComparisonSummary) -> Table:
    """Return how every side was configured, where variants may differ."""
    return Rows(found.sides).table(
        word("side", lambda side: side.name),
        word("made with", lambda side: ", ".join(map(sentence, side.differs)) or "the record does not tell"),
    )


def runs(experiment: ExperimentSummary, found: ComparisonSummary) -> Table:
    """Return every run as a row, in the order in which they were made."""
    names = {folder: side.name for side in found.sides for folder in side.runs}
    names |= {folder: f"{names[folder]} (again)" for side in found.sides for folder in side.again if folder in names}
    made = [(run, step) for run in experiment.runs if name_of(run) in names for step in run.steps]
    made.sort(key=lambda row: (row[0].started, row[1].key))
    return Rows(made).table(
        word("run", lambda row: name_of(row[0])),
        word("side", lambda row: names[name_of(row[0])]),
        number("users", lambda row: str(row[1].users), when=len({(step.step, step.users) for _, step in made}) > 1),
        number(f"began ({format.zone()})", lambda row: format.second(row[0].started)),
        number("measured", lambda row: row[1].interval.measured_s, format.seconds),
        number("TPS", lambda row: row[1].result_tps),
        number("mean ms", lambda row: row[1].latency.mean_ms),
        number("p99 ms", lambda row: row[1].latency.percentiles_ms.get("p99")),
        number("reads/tx", lambda row: counted(row[1].storage.reads_per_transaction, row[1].storage.data)),
        number("read ms", lambda row: row[1].storage.data.read_ms if row[1].storage.data else None),
        number("IOPS", lambda row: data_rate(row[1], "iops")),
        number("MB/s", lambda row: data_rate(row[1], "mb_per_s")),
        number("CPU", lambda row: row[1].server.cpu_busy_share, format.share),
        notes=[words.RUNS],
    )
