"""The evidence of a comparison as tables: what was checked, and every run with its figures."""

from collections.abc import Sequence

from stallmark import format
from stallmark.analysis.compare.sides import name_of
from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison
from stallmark.analysis.summary import ExperimentSummary, StepSummary
from stallmark.report.labels import EMULATED
from stallmark.report.table import Cell, Table
from stallmark.report.text import sentence
from stallmark.report.text.comparison import CHECKS

WORDS = {True: Cell("holds", "good"), False: Cell("FAILED", "bad"), None: Cell("not known", "none")}


def checks(pair: PairComparison) -> Table:
    return Table(
        header=["check", "what must hold", "", "found"],
        rows=[[*CHECKS[one.kind], WORDS[one.passed], sentence(one.found)] for one in pair.checks],
        words=frozenset({0, 1, 2, 3}),
        notes=[sentence(one.reason) for one in pair.failed if one.reason],
    )


def intent(found: ComparisonSummary) -> Table:
    """What every side was made with, where variants may differ."""
    return Table(
        header=["side", "made with"],
        rows=[
            [side.name, ", ".join(map(sentence, side.differs)) or "the record does not tell"] for side in found.sides
        ],
        words=frozenset({0, 1}),
    )


def runs(experiment: ExperimentSummary, found: ComparisonSummary) -> Table:
    """Every run a row, in the order in which they were made."""
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
    header = ["run", "side", *(("users",) if several else ()), "began (UTC)", "measured", *_TITLES]
    rows: list[Sequence[str | Cell]] = []
    for started, run, step in steps:
        side = side_of[run]
        name = f"{side.name} (again)" if run in again else side.name
        name += f" ({EMULATED})" if side.emulated else ""
        users = [str(step.users)] if several else []
        began = started.replace("T", " ")[:19]
        rows.append([run, name, *users, began, format.seconds(step.measured_s), *_figures(step)])
    return Table(
        header=header,
        rows=rows,
        words=frozenset({0, 1}),
        notes=[
            "Each figure is over the run’s measured interval. Latency in ms from scheduled to ended; read time in ms "
            "is volume-weighted (stall ÷ reads) over data files; MB/s is 10⁶ bytes."
        ],
    )


_TITLES = ("TPS", "mean ms", "p99 ms", "reads/tx", "read ms", "IOPS", "MB/s", "CPU")


def _figures(step: StepSummary) -> list[str]:
    io = step.data_io
    return [
        format.number(step.result_tps),
        format.number(step.latency_mean_ms),
        format.number(step.latency_ms.get("p99")),
        format.number(step.reads_per_transaction),
        format.number(io.read_ms if io else None),
        format.number(io.iops if io else None),
        format.number(io.mb_per_s if io else None),
        format.share(step.cpu_busy_share),
    ]
