"""The tables that compare the server's counters with the device's own."""

from collections.abc import Callable

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.server_cautions import Pair, Rates, pairs
from stallmark.report.columns import counted
from stallmark.report.document import Block, Section, Words, shown
from stallmark.report.labels import step_labels
from stallmark.report.table import Cell, Columns, Table, group, named_rows, number, word
from stallmark.report.text import reading


def agreement(experiment: ExperimentSummary, *, writes: bool) -> Table | None:
    """Return the server's counts next to the device's, of writes or of reads; None when no step has both."""
    labels = step_labels(experiment)
    rows = named_rows(
        "step",
        (
            (labels[step.key], pair)
            for run in experiment.runs
            for step in run.steps
            for pair in pairs(run, step)
            if writes or pair.server.reads or pair.device.reads
        ),
    )
    if writes:
        return rows.table_if_any(
            word("files", lambda pair: pair.files),
            _rates("Writes/s", lambda io: io.writes),
            _rates("MB/s", lambda io: io.write_bytes / 1e6),
            _both("Mean write ms", lambda io: io.write_ms),
            _rates("Syncs/s", lambda io: io.syncs)[:2],
            _both("Mean sync ms", lambda io: io.sync_ms),
        )
    return rows.table_if_any(
        word("files", lambda pair: pair.files),
        _rates("Reads/s", lambda io: io.reads),
        _rates("MB/s", lambda io: io.read_bytes / 1e6),
        _both("Mean read ms", lambda io: io.read_ms),
        _both("Mean of intervals ms", lambda io: io.read_interval_mean_ms),
    )


def _both(title: str, value: Callable[[IoSummary], float | None]) -> Columns[Pair]:
    return group(
        title, number("server", lambda pair: value(pair.server)), number("device", lambda pair: value(pair.device))
    )


def _rates(title: str, amount: Callable[[IoSummary], float | None]) -> Columns[Pair]:
    return group(
        title,
        number("server", lambda pair: counted(pair.rates(amount).server, pair.server)),
        number("device", lambda pair: counted(pair.rates(amount).device, pair.device)),
        number("Δ", lambda pair: _apart(pair.rates(amount))),
    )


def _apart(rates: Rates) -> Cell:
    return Cell(format.signed(rates.apart), "" if rates.agree else "apart")


def section(experiment: ExperimentSummary) -> Section:
    reads, writes = agreement(experiment, writes=False), agreement(experiment, writes=True)
    blocks: list[Block] = [Words(reading.NO_AGREEMENT)]
    if reads:
        blocks = [
            Words(reading.AGREEMENT, "lead"),
            *shown(reads, "Reads, server and device", "Reads"),
            *shown(writes, "Writes and syncs, server and device", "Writes and syncs"),
            Words(reading.RATES, "footnote"),
        ]
    return Section("agreement", _TITLE, blocks, "")


def reads_section(experiment: ExperimentSummary) -> Section:
    reads = agreement(experiment, writes=False)
    return Section("agreement", _TITLE, shown(reads, "Reads, server and device", lead=reading.AGREEMENT_OF_QUERIES), "")


_TITLE = "Server’s counters beside the device’s own"
