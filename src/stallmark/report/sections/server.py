"""The tables of the server's detailed counters: PostgreSQL's by process, and SQL Server's by file, volume, wait,
duration of an I/O, and procedure."""

from collections.abc import Callable, Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import Finding
from stallmark.analysis.read.process_io import AUTOVACUUM
from stallmark.analysis.read.server_summary import IoLatencySummary, IoSummary, LogState, ServerState
from stallmark.report.columns import counted
from stallmark.report.labels import step_labels
from stallmark.report.sections.waits import WAIT_NAMES
from stallmark.report.table import PERCENTILES, Cell, Table, percentile, percentile_notes, shown
from stallmark.report.text import sentence
from stallmark.report.text import server as words

FILE_KINDS = {"data": "data", "wal": "log", "temp": "tempdb", "foreign": "another database"}


def files(experiment: ExperimentSummary) -> Table | None:
    """Return the I/O by file; None for servers that do not count by file."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = []
    for step in experiment.steps:
        for file in step.server.files:
            io, kind = file.io, FILE_KINDS.get(file.kind, file.kind)
            rows.append(
                [
                    labels[step.key],
                    file.name,
                    Cell(kind, "apart") if file.kind == "foreign" else kind,
                    *_rates(io, io.reads if io else 0, io.read_bytes if io else 0, io.read_ms if io else None),
                    *_rates(io, io.writes if io else 0, io.write_bytes if io else 0, io.write_ms if io else None),
                    format.count(file.growths),
                ]
            )
    if not rows:
        return None
    each = ["per s", "MB/s", "KiB each", "mean ms"]
    return Table(
        ["step", "file", "of", *each, *each, "times grown"],
        rows,
        frozenset({0, 1, 2}),
        [words.FILES],
        [("", 3), ("Reads", 4), ("Writes", 4), ("", 1)],
    )


def _rates(io: IoSummary | None, count: int, size_bytes: int, mean_ms: float | None) -> list[str | Cell]:
    if io is None or not io.seconds:
        return [format.NONE] * 4
    each = size_bytes / count / 1024 if count else None
    rates = (count / io.seconds, size_bytes / io.seconds / 1e6)
    return [*(counted(value, io) for value in rates), format.number(each), format.number(mean_ms)]


_PROCESSES = {"client backend": "sessions", AUTOVACUUM: "autovacuum"}


def processes(experiment: ExperimentSummary) -> Table | None:
    """Return the I/O on data files by process; None for servers that do not tell them apart."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            _PROCESSES.get(one.process, one.process),
            *(format.count(one.reads), format.share(one.read_share)),
            *(format.count(one.writes), format.share(one.write_share)),
        ]
        for step in experiment.steps
        for one in step.server.processes or []
    ]
    if not rows:
        return None
    return Table(
        ["step", "process", *("count", "share") * 2],
        rows,
        frozenset({0, 1}),
        [words.PROCESSES],
        [("", 2), ("Reads", 2), ("Writes", 2)],
    )


def volumes(experiment: ExperimentSummary) -> Table | None:
    """Return queue, rates and times of every volume; None where the driver did not run on the server's Windows."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            one.volume,
            *map(format.number, (one.queue, one.reads_per_s, one.read_ms, one.writes_per_s, one.write_ms)),
        ]
        for step in experiment.steps
        for one in step.server.volumes
    ]
    if not rows:
        return None
    header = ["step", "volume", "queue", "reads/s", "ms per read", "writes/s", "ms per write"]
    note = words.VOLUMES
    return Table(header, rows, frozenset({0, 1}), [note])


def memory(experiment: ExperimentSummary) -> Table | None:
    """Return the state of the buffer pool, and the I/O on its behalf; None where the server does not report it."""
    return _states(
        experiment,
        [
            *("page life s", "by node s", "lookups/s", "reads/s", "ahead", "lazy writes/s", "checkpoint/s"),
            *("background/s", "free list stalls/s", "total", "target", "pool", "stolen"),
        ],
        lambda state: [
            format.number(state.page_life_s),
            ", ".join(format.number(life) for life in state.node_life_s.values()) or format.NONE,
            format.number(state.page_lookups_per_s),
            format.number(state.page_reads_per_s),
            format.share(state.read_ahead_share),
            format.number(state.lazy_writes_per_s),
            format.number(state.checkpoint_pages_per_s),
            format.number(state.background_pages_per_s),
            format.number(state.free_list_stalls_per_s),
            format.size(state.memory_bytes),
            format.size(state.memory_target_bytes),
            format.size(state.pool_bytes),
            format.size(state.stolen_bytes),
        ],
        words.MEMORY,
        [("", 1), ("Buffer pool, pages", 9), ("Memory", 4)],
    )


def logs(experiment: ExperimentSummary) -> Table | None:
    """Return the state of the log of each of our databases; None where one alone is ours."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [labels[step.key], database, *_log(log)]
        for step in experiment.steps
        if step.server.state
        for database, log in step.server.state.logs.items()
    ]
    return Table(["step", "database", *_LOG], rows, frozenset({0, 1}), [words.LOGS]) if rows else None


_LOG = ("flushes/s", "KiB each", "ms each", "waits/s", "ms each", "used", "grown", "kept by")


def _log(log: LogState) -> list[str]:
    return [
        format.number(log.flushes_per_s),
        format.number(None if log.bytes_per_flush is None else log.bytes_per_flush / 1024),
        format.number(log.write_ms),
        format.number(log.waits_per_s),
        format.number(log.wait_ms),
        format.share(log.used_share),
        format.count(log.growths),
        (log.kept_by or format.NONE).replace("_", " ").lower(),
    ]


def log_and_tempdb(experiment: ExperimentSummary) -> Table | None:
    """Return the state of log, tempdb and schedulers; None where the server does not report it."""
    return _states(
        experiment,
        [*(*_LOG, "tempdb used"), *("I/Os pending", "tasks runnable", "deadlocks", "blocked", "grants pending")],
        lambda state: [
            *_log(state.log),
            format.size(state.tempdb_used_bytes),
            format.number(state.pending_ios),
            format.number(state.runnable_tasks),
            format.count(state.deadlocks),
            format.number(state.blocked),
            format.count(state.grants_pending),
        ],
        words.LOG_AND_TEMPDB,
        [("", 1), ("Logs of our databases" if logs(experiment) else "Log of our database", 8), ("", 3), ("Server", 3)],
    )


def replicas(experiment: ExperimentSummary) -> Table | None:
    """Return the other replicas of our database; None where there are none."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            replica.name,
            "synchronous" if replica.synchronous else "asynchronous",
            format.share(replica.synchronized_share),
            format.size(_whole(replica.send_queue_bytes)),
            format.size(replica.most_send_queue_bytes),
            format.size(_whole(replica.redo_queue_bytes)),
            format.size(replica.most_redo_queue_bytes),
            format.number(step.server.state.delayed_per_s),
            format.number(step.server.state.commit_delay_ms),
        ]
        for step in experiment.steps
        if step.server.state
        for replica in step.server.state.replicas
    ]
    if not rows:
        return None
    return Table(
        ["step", "replica", "commits", "synchronized", *("mean", "most") * 2, "delayed/s", "ms each"],
        rows,
        frozenset({0, 1, 2}),
        [words.REPLICAS],
        [("", 4), ("Not sent", 2), ("Not redone", 2), ("Commits", 2)],
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _states(
    experiment: ExperimentSummary,
    header: list[str],
    cells: Callable[[ServerState], list[str]],
    note: str,
    groups: list[tuple[str, int]],
) -> Table | None:
    """Return a row for each step that has any of these figures; None where no step has."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [labels[step.key], *cells(step.server.state)] for step in experiment.steps if step.server.state
    ]
    rows = [row for row in rows if any(str(cell) != format.NONE for cell in row[1:])]
    return Table(["step", *header], rows, frozenset({0}), [note], groups) if rows else None


def pool_contents(experiment: ExperimentSummary) -> Table | None:
    """Return the pages in the buffer pool; None where no sample of it fell into a measured interval."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            content.database,
            content.page_type.replace("_", " ").lower(),
            format.size(content.size_bytes),
            format.size(content.dirty_bytes),
            format.number(content.read_ms),
        ]
        for step in experiment.steps
        if step.server.state
        for content in step.server.state.contents
    ]
    if not rows:
        return None
    return Table(
        ["step", "database", "pages", "in the pool", "dirty", "mean read ms"],
        rows,
        frozenset({0, 1, 2}),
        [words.POOL_CONTENTS],
    )


def server_waits(experiment: ExperimentSummary) -> Table | None:
    """Return the server's waits by type; None where the server does not count them."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            wait.wait_type,
            WAIT_NAMES[wait.wait_class].replace("WAL", "log"),
            format.count(wait.waits),
            format.number(wait.resource_ms / wait.seconds),
            format.number(wait.signal_ms / wait.seconds),
            format.number(wait.resource_ms / wait.waits),
        ]
        for step in experiment.steps
        for wait in step.waits.server_waits
    ]
    if not rows:
        return None
    return Table(
        ["step", "wait", "class", "waits", "resource ms/s", "signal ms/s", "mean resource ms"],
        rows,
        frozenset({0, 1, 2}),
        [words.SERVER_WAITS],
    )


def procedures(experiment: ExperimentSummary) -> Table | None:
    """Return the reads and writes by procedure; None where the server does not count by procedure."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            procedure.name,
            format.count(procedure.executions),
            format.share(procedure.coverage),
            format.number(procedure.physical_reads),
            format.number(procedure.logical_reads),
            format.number(procedure.logical_writes),
            format.number(procedure.elapsed_ms),
        ]
        for step in experiment.steps
        for procedure in step.server.procedures
    ]
    if not rows:
        return None
    each = ["physical reads", "logical reads", "logical writes", "ms"]
    return Table(
        ["step", "procedure", "executions", "covered", *each],
        rows,
        frozenset({0, 1}),
        [words.PROCEDURES],
        [("", 4), ("Per execution", 4)],
    )


def io_latency(experiment: ExperimentSummary) -> Table | None:
    """Return percentiles of the time of I/Os; None where the histograms were not asked for."""
    labels = step_labels(experiment)
    found = [(step, one) for step in experiment.steps for one in step.server.io_latency]
    if not found:
        return None
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            _io_name(one),
            format.count(one.ios),
            format.share(one.coverage),
            *(_duration(one.latency_ms.get(name), one.resolution_ms, one.doubt) for name in PERCENTILES),
        ]
        for step, one in found
    ]
    notes = [
        words.io_latency(
            sorted({_RESOLUTIONS[one.resolution_ms] for _, one in found if one.resolution_ms}) or ["their unit"]
        ),
        *dict.fromkeys(
            f"{format.NONE}? {labels[step.key]}, {_io_name(one)}: {sentence(one.doubt)}"
            for step, one in found
            if one.doubt
        ),
        *percentile_notes(value for _, one in found if not one.doubt for value in shown(one.latency_ms)),
    ]
    return Table(
        ["step", "I/O", "counted", "covered", *PERCENTILES],
        rows,
        frozenset({0, 1}),
        notes,
        [("", 4), ("Milliseconds", len(PERCENTILES))],
    )


def _io_name(one: IoLatencySummary) -> str:
    return one.operation if one.database is None else f"{one.operation} of {one.database}"


_RESOLUTIONS = {1.0: "milliseconds", 0.001: "microseconds"}


def _duration(value: float | None, resolution: float | None, doubt: Finding | None) -> Cell | str:
    if doubt:
        return Cell(f"{format.NONE}?", "none")
    if value is None or resolution is None:
        return percentile(None)
    whole = f"{value:,.0f}" if resolution == 1 else format.number(value)
    return whole if value else f"< {resolution:g}"


def query_store(experiment: ExperimentSummary) -> Table | None:
    """Return the figures of Query Store by procedure; None where it was not asked for."""
    labels = step_labels(experiment)
    rows: list[Sequence[str | Cell]] = [
        [
            labels[step.key],
            procedure.name,
            f"{'' if procedure.whole else '≥ '}{format.count(procedure.executions)}",
            *(
                format.number(value)
                for value in (
                    procedure.physical_reads,
                    procedure.logical_reads,
                    procedure.logical_writes,
                    procedure.worker_ms,
                    procedure.elapsed_ms,
                )
            ),
            ", ".join(f"{category} {format.number(ms)}" for category, ms in procedure.waits) or format.NONE,
        ]
        for step in experiment.steps
        for procedure in step.server.query_store
    ]
    if not rows:
        return None
    each = ["physical reads", "logical reads", "logical writes", "CPU ms", "ms"]
    return Table(
        ["step", "procedure", "statements", *each, "longest waits, ms/s"],
        rows,
        frozenset({0, 1, 8}),
        [words.QUERY_STORE],
        [("", 3), ("Per statement executed", 5), ("", 1)],
    )
