"""The tables of the server's detailed counters: PostgreSQL's by process, and SQL Server's by file, volume, wait,
duration of an I/O, and procedure.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from stallmark import format
from stallmark.analysis.environment_cautions import Pair, Rates, pairs
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.io_latency import IoLatencySummary
from stallmark.analysis.read.server_io import AUTOVACUUM, FileSummary, ProcessIo
from stallmark.analysis.read.server_state import (
    OF_MEMORY,
    OF_REPLICAS,
    OF_THE_REST,
    LogState,
    PoolContent,
    ReplicaState,
    ServerState,
)
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.server_views import ProcedureSummary, VolumeSummary
from stallmark.analysis.read.statements import QueryStoreSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.report.columns import step_labels, step_rows
from stallmark.report.document import Block, Section, Words, table_blocks
from stallmark.report.figures import WAITS
from stallmark.report.sections.transactions import statements
from stallmark.report.table import (
    PERCENTILES,
    Cell,
    Columns,
    Table,
    fields,
    group,
    named_rows,
    number,
    numbers,
    percentile,
    percentile_notes,
    word,
)
from stallmark.report.text import reading, sentence
from stallmark.report.text import server as words

# The tables that compare the server's counters with the device's own.


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
            # A pair without reads on either side would be a row of zeros.
            if writes or pair.server.reads or pair.device.reads
        ),
    )
    if writes:
        return rows.table_if_any(
            word("files", lambda pair: pair.files),
            _agreement_rates("Writes/s", lambda io: io.writes),
            _agreement_rates("MB/s", lambda io: io.write_bytes / 1e6),
            _both("Mean write ms", lambda io: io.write_ms),
            _agreement_rates("Syncs/s", lambda io: io.syncs)[:2],
            _both("Mean sync ms", lambda io: io.sync_ms),
        )
    return rows.table_if_any(
        word("files", lambda pair: pair.files),
        _agreement_rates("Reads/s", lambda io: io.reads),
        _agreement_rates("MB/s", lambda io: io.read_bytes / 1e6),
        _both("Mean read ms", lambda io: io.read_ms),
        _both("Mean of intervals ms", lambda io: io.read_interval_mean_ms),
    )


def _both(title: str, value: Callable[[IoSummary], float | None]) -> Columns[Pair]:
    return group(
        title, number("server", lambda pair: value(pair.server)), number("device", lambda pair: value(pair.device))
    )


def _agreement_rates(title: str, amount: Callable[[IoSummary], float | None]) -> Columns[Pair]:
    return group(
        title,
        number("server", lambda pair: format.with_uncertainty(pair.rates(amount).server, pair.server.uncertainty)),
        number("device", lambda pair: format.with_uncertainty(pair.rates(amount).device, pair.device.uncertainty)),
        number("Δ", lambda pair: _difference(pair.rates(amount))),
    )


def _difference(rates: Rates) -> Cell:
    return Cell(format.signed(rates.apart), "" if rates.agree else "apart")


def agreement_section(experiment: ExperimentSummary) -> Section:
    reads, writes = agreement(experiment, writes=False), agreement(experiment, writes=True)
    blocks: list[Block] = [Words(reading.NO_AGREEMENT)]
    if reads:
        blocks = [
            Words(reading.AGREEMENT, "lead"),
            *table_blocks(reads, "Reads, server and device", "Reads"),
            *table_blocks(writes, "Writes and syncs, server and device", "Writes and syncs"),
            Words(reading.RATES, "footnote"),
        ]
    return Section("agreement", _TITLE, blocks, "")


def reads_section(experiment: ExperimentSummary) -> Section:
    reads = agreement(experiment, writes=False)
    return Section(
        "agreement", _TITLE, table_blocks(reads, "Reads, server and device", lead=reading.AGREEMENT_OF_QUERIES), ""
    )


_TITLE = "Server and device counters"


T = TypeVar("T")
FILE_KINDS = {"data": "data", "wal": "log", "temp": "tempdb", "foreign": "another database"}


def files(experiment: ExperimentSummary) -> Table | None:
    """Return the I/O by file; None for servers that do not count by file."""
    return step_rows(experiment, lambda step: step.server.files).table_if_any(
        word("file", lambda file: file.name),
        word("kind", _file_kind),
        _rates("Reads", lambda io: (io.reads, io.read_bytes, io.read_ms)),
        _rates("Writes", lambda io: (io.writes, io.write_bytes, io.write_ms)),
        number("times grown", lambda file: file.growths, format.count),
        notes=[words.FILES],
    )


def _file_kind(file: FileSummary) -> str | Cell:
    kind = FILE_KINDS.get(file.kind, file.kind)
    return Cell(kind, "apart") if file.kind == "foreign" else kind


def _rates(title: str, counts: Callable[[IoSummary], tuple[int, int, float | None]]) -> Columns[FileSummary]:
    """Return the columns of reads or of writes, from their number, bytes and mean time."""

    def column(name: str, write: Callable[[IoSummary, int, int, float | None], str]) -> Columns[FileSummary]:
        def cell(file: FileSummary) -> str:
            return write(file.io, *counts(file.io)) if file.io and file.io.seconds else format.NONE

        return number(name, cell)

    return group(
        title,
        column("per s", lambda io, count, size, ms: format.with_uncertainty(count / io.seconds, io.uncertainty)),
        column("MB/s", lambda io, count, size, ms: format.with_uncertainty(size / io.seconds / 1e6, io.uncertainty)),
        column("KiB each", lambda io, count, size, ms: format.number(size / count / 1024 if count else None)),
        column("mean ms", lambda io, count, size, ms: format.number(ms)),
    )


_PROCESSES = {"client backend": "sessions", AUTOVACUUM: "autovacuum"}


def processes(experiment: ExperimentSummary) -> Table | None:
    """Return the I/O on data files by process, or None if the server counts it only in total."""
    return step_rows(experiment, lambda step: step.server.processes or []).table_if_any(
        word("process", lambda process: _PROCESSES.get(process.process, process.process)),
        fields(ProcessIo),
        notes=[words.PROCESSES],
    )


def volumes(experiment: ExperimentSummary) -> Table | None:
    """Return queue, rates and times of every volume, or None if the driver did not run on the server's Windows."""
    rows = step_rows(experiment, lambda step: step.server.volumes)
    return rows.table_if_any(fields(VolumeSummary), notes=[words.VOLUMES])


def memory(experiment: ExperimentSummary) -> Table | None:
    """Return the state of the buffer pool, and the I/O on its behalf, or None if the server does not report it."""
    return _states(experiment, words.MEMORY, fields(ServerState, groups=OF_MEMORY))


def logs(experiment: ExperimentSummary) -> Table | None:
    """Return the state of the log of each of our databases, or None if one alone is ours."""
    rows = step_rows(experiment, lambda step: (step.server.state.logs if step.server.state else {}).items())
    return rows.table_if_any(
        word("database", lambda row: row[0]), fields(LogState, lambda row: row[1]), notes=[words.LOGS]
    )


def log_and_tempdb(experiment: ExperimentSummary) -> Table | None:
    """Return the state of log, tempdb and schedulers, or None if the server does not report it."""
    title = "Logs of the measured databases" if logs(experiment) else "Log of the measured database"
    log: Columns[ServerState] = fields(LogState, lambda state: state.log)
    return _states(experiment, words.LOG_AND_TEMPDB, group(title, log), fields(ServerState, groups=OF_THE_REST))


def _states(experiment: ExperimentSummary, note: str, *columns: Columns[ServerState]) -> Table | None:
    """Return a row for each step that has any of these figures, or None if no step has."""
    made = step_rows(experiment, lambda step: filter(None, [step.server.state])).table(*columns, notes=[note])
    # A state may have values in the other table only.
    rows = [row for row in made.rows if any(str(cell) != format.NONE for cell in row[1:])]
    return replace(made, rows=rows) if rows else None


def replicas(experiment: ExperimentSummary) -> Table | None:
    """Return the other replicas of our database, or None without replicas."""
    return step_rows(experiment, _replicas).table_if_any(
        fields(ReplicaState, lambda row: row[1]),
        fields(ServerState, lambda row: row[0], OF_REPLICAS),
        notes=[words.REPLICAS],
    )


def _replicas(step: StepSummary) -> list[tuple[ServerState, ReplicaState]]:
    state = step.server.state
    return [(state, replica) for replica in state.replicas] if state else []


def pool_contents(experiment: ExperimentSummary) -> Table | None:
    """Return the pages in the buffer pool, or None if no sample was taken within a measured interval."""
    rows = step_rows(experiment, lambda step: step.server.state.contents if step.server.state else [])
    return rows.table_if_any(fields(PoolContent), notes=[words.POOL_CONTENTS])


def server_waits(experiment: ExperimentSummary) -> Table | None:
    """Return the server's waits by type, or None if the server does not count them."""
    return step_rows(experiment, lambda step: step.waits.server_waits).table_if_any(
        word("wait", lambda wait: wait.wait_type),
        # Only SQL Server counts waits by type, and its WAL is called the log.
        word("class", lambda wait: WAITS[wait.wait_class].name.replace("WAL", "log")),
        number("waits", lambda wait: wait.waits, format.count),
        number("resource ms/s", lambda wait: wait.resource_ms / wait.seconds),
        number("signal ms/s", lambda wait: wait.signal_ms / wait.seconds),
        number("mean resource ms", lambda wait: wait.resource_ms / wait.waits),
        notes=[words.SERVER_WAITS],
    )


def procedures(experiment: ExperimentSummary) -> Table | None:
    """Return the reads and writes by procedure, or None if the server does not count by procedure."""
    rows = step_rows(experiment, lambda step: step.server.procedures)
    return rows.table_if_any(fields(ProcedureSummary), notes=[words.PROCEDURES])


def io_latency(experiment: ExperimentSummary) -> Table | None:
    """Return percentiles of the time of I/Os, or None if the histograms were not asked for."""
    rows = step_rows(experiment, lambda step: step.server.io_latency)
    units = sorted({_RESOLUTIONS[histogram.resolution_ms] for histogram in rows.items if histogram.resolution_ms})
    return rows.table_if_any(
        word("I/O", _io_name),
        number("counted", lambda histogram: histogram.ios, format.count),
        number("covered", lambda histogram: histogram.coverage, format.share),
        group("Milliseconds", numbers(PERCENTILES, str, _duration)),
        notes=[
            words.io_latency(units or ["their unit"]),
            *dict.fromkeys(
                f"{format.NONE}? {step}, {_io_name(histogram)}: {sentence(histogram.doubt)}"
                for step, histogram in zip(rows.names, rows.items, strict=True)
                if histogram.doubt
            ),
            *percentile_notes(histogram.latency_ms for histogram in rows.items if not histogram.doubt),
        ],
    )


def _io_name(histogram: IoLatencySummary) -> str:
    return histogram.operation if histogram.database is None else f"{histogram.operation} of {histogram.database}"


_RESOLUTIONS = {1.0: "milliseconds", 0.001: "microseconds"}


def _duration(histogram: IoLatencySummary, name: str) -> Cell | str:
    value = histogram.latency_ms.get(name)
    if histogram.doubt:
        return Cell(f"{format.NONE}?", "none")
    if value is None or histogram.resolution_ms is None:
        return percentile(None)
    # Durations are whole numbers of the unit: digits below it would be invented.
    whole = f"{value:,.0f}" if histogram.resolution_ms == 1 else format.number(value)
    return whole if value else f"< {histogram.resolution_ms:g}"


def query_store(experiment: ExperimentSummary) -> Table | None:
    """Return the figures of Query Store by procedure, or None if it was not asked for."""
    return step_rows(experiment, lambda step: step.server.query_store).table_if_any(
        word("procedure", lambda procedure: procedure.name),
        number(
            "statements", lambda procedure: f"{'' if procedure.whole else '≥ '}{format.count(procedure.executions)}"
        ),
        fields(QueryStoreSummary),
        word(
            "longest waits, ms/s",
            lambda procedure: ", ".join(f"{kind} {format.number(ms)}" for kind, ms in procedure.waits) or format.NONE,
        ),
        notes=[words.QUERY_STORE],
    )


def server_section(experiment: ExperimentSummary) -> Section:
    """Return the server's counters that the page shows nowhere else."""
    blocks = [
        *table_blocks(processes(experiment), "Reads and writes of data files, by process", "Processes"),
        *table_blocks(files(experiment), "Reads, writes and their mean times, by file", "Files"),
        *table_blocks(volumes(experiment), "Queue, rates and times by volume", "Volumes, as Windows counts them"),
        *table_blocks(
            io_latency(experiment), "Percentiles of the durations of reads and log writes", "Durations of single I/Os"
        ),
        *table_blocks(memory(experiment), "Buffer pool and memory", "Buffer pool and memory"),
        *table_blocks(
            pool_contents(experiment), "Pages in the buffer pool, by database and kind", "Contents of the buffer pool"
        ),
        *table_blocks(log_and_tempdb(experiment), "Log, tempdb and pending work", "Log, tempdb and pending work"),
        *table_blocks(logs(experiment), "Flushes, waits and use of each log", "The log of each database"),
        *table_blocks(replicas(experiment), "Other replicas of the database", "Replicas"),
        *table_blocks(server_waits(experiment), "Waits of all tasks, by type", "Longest waits of the server"),
        *table_blocks(procedures(experiment), "Reads, writes and time, by procedure", "Procedures"),
        *table_blocks(statements(experiment), "Statements by reads, CPU and waiting", "Top statements"),
        *table_blocks(query_store(experiment), "Statements by procedure, as Query Store counted them", "Query Store"),
    ]
    return Section("server", "Further counters of the server", blocks, "")
