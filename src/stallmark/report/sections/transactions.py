"""The tables of the users' work: by transaction type and statement, errors, and blocked sessions with their
blockers."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.queries import in_order
from stallmark.analysis.read.server_views import RowWait, TransactionReads
from stallmark.analysis.read.statements import PAGES, OwnStatementSummary, StatementSummary
from stallmark.analysis.read.transactions import ErrorSummary, TransactionSummary
from stallmark.analysis.read.waits import BlockedPair, DeadlockShape
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity_gates import GateKind
from stallmark.format import display_name
from stallmark.report.columns import step_labels, step_rows
from stallmark.report.document import Block, Fold, Grid, Section, Shown, Title, Words, folds, table_blocks
from stallmark.report.sections.axis import transaction_figures
from stallmark.report.table import (
    PERCENTILES,
    Cell,
    Rows,
    Table,
    fields,
    group,
    if_known,
    named_rows,
    number,
    numbers,
    percentile,
    percentile_notes,
    percentiles,
    word,
)
from stallmark.report.text import queries as query_words
from stallmark.report.text import reading, sentence
from stallmark.report.text import server as words
from stallmark.report.text import validity as gate_words

# The tables by transaction type: counts and latencies of each step, and the 90th percentiles of all steps.

OfStep = tuple[TransactionSummary, StepSummary]


def by_step(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return a table for each step, with its name; one table for all steps if there is one type of transaction."""
    labels, steps = step_labels(experiment), experiment.steps
    several = len({kind.name for step in steps for kind in step.transactions}) > 1
    # One type has one row per step, so a single table compares the steps.
    if not several:
        return [("", _table([(kind, step) for step in steps for kind in step.transactions], steps, labels))]
    return [
        (labels[step.key], _table([(kind, step) for kind in (*step.transactions, _all(step))], [step], {}))
        for step in steps
    ]


def _table(rows: Sequence[OfStep], steps: Sequence[StepSummary], labels: Mapping[str, str]) -> Table:
    """Return a table without its empty columns: shares without a deck, limits without a limit."""
    return Rows(rows).table(
        if_known(word("step", lambda row: labels[row[1].key], when=bool(labels))),
        word("transaction", lambda row: display_name(row[0].name)),
        number("count", lambda row: row[0].done_count, format.count),
        if_known(
            group(
                "Share of users’",
                number("achieved", _share),
                number("deck", lambda row: row[0].deck_share, format.share),
            ),
            number("per s", lambda row: row[0].tps),
            group(
                "Latency, ms",
                number("mean", lambda row: row[0].latency_mean_ms),
                percentiles(lambda row: row[0].latency_ms, ["p50"]),
                number("p90", lambda row: _p90(row[0])),
                number("limit", lambda row: None if row[0].limit_s is None else row[0].limit_s * 1000),
                percentiles(lambda row: row[0].latency_ms, PERCENTILES[2:]),
            ),
            group("Not committed", fields(TransactionSummary, lambda row: row[0]), word("errors", _errors)),
        ),
        notes=percentile_notes(kind.latency_ms for step in steps for kind in step.transactions),
    )


def _all(step: StepSummary) -> TransactionSummary:
    """Return the transactions of a step together, as if they were of one type."""
    load, latency = step.throughput, step.latency
    return TransactionSummary(
        "all",
        load.committed,
        load.rolled_back,
        load.failed,
        load.retries,
        load.tps,
        latency.mean_ms,
        latency.percentiles_ms,
        service_ms={},
    )


def _share(row: OfStep) -> Cell | str:
    """Return the share of the users' transactions, marked if the step's mix is not that of the deck."""
    kind, step = row
    # By chance or not: the mark follows the verdict of the gate, not the deviation alone.
    off_mix = any(gate.kind == GateKind.MIX and gate.passed is False for gate in step.validity.gates)
    share = format.share(kind.share)
    return Cell(share, "apart") if off_mix and kind.share is not None else share


def _errors(row: OfStep) -> str:
    kind, step = row
    errors: dict[str, int] = {}
    for error in step.validity.errors:
        if error.transaction == kind.name:
            errors[error.error_class] = errors.get(error.error_class, 0) + error.attempts
    return ", ".join(f"{name} {n:,}" for name, n in errors.items()) or format.NONE


def _p90(transaction: TransactionSummary) -> Cell | str:
    """Return the 90th percentile, marked if more transactions than allowed took longer than the limit."""
    written = percentile(transaction.latency_ms.get("p90"))
    return Cell(str(written), "bad") if transaction.slow else written


def limits(experiment: ExperimentSummary) -> Table | None:
    """Return the 90th percentile of each type in every step, against its limit, or None if no type has one."""
    labels, steps = step_labels(experiment), experiment.steps
    kinds = {t.name: t for s in steps for t in s.transactions if t.limit_s is not None}

    def p90(kind: TransactionSummary, step: StepSummary) -> Cell | str:
        return next((_p90(own) for own in step.transactions if own.name == kind.name), format.NONE)

    return Rows(list(kinds.values())).table_if_any(
        word("transaction", lambda kind: display_name(kind.name)),
        number("limit", lambda kind: (kind.limit_s or 0) * 1000),
        numbers(steps, lambda step: labels[step.key], p90),
        notes=[
            gate_words.P90_LIMITS,
            *percentile_notes((t.latency_ms for s in steps for t in s.transactions if t.limit_s), ["p90"]),
        ],
    )


def reads(experiment: ExperimentSummary) -> Table | None:
    """Return physical reads per transaction of each type in every step, or None if they are not known."""
    labels, steps = step_labels(experiment), [step for step in experiment.steps if step.reads]

    def mean(name: str, step: StepSummary) -> Cell | str:
        return next((_mean(own, own.reads) for own in step.reads if own.transaction == name), format.NONE)

    names = dict.fromkeys(own.transaction for step in steps for own in step.reads)
    return Rows(list(names)).table_if_any(
        word("transaction", display_name), numbers(steps, lambda step: labels[step.key], mean), notes=_too_few(steps)
    )


def reads_by_step(experiment: ExperimentSummary) -> list[tuple[str, Table]]:
    """Return a table of reads, with its name, for each step in which they are known."""
    labels = step_labels(experiment)
    return [(labels[step.key], _reads(step)) for step in experiment.steps if step.reads]


def _reads(step: StepSummary) -> Table:
    sampled = all(own.sampled for own in step.reads)
    return Rows(step.reads).table(
        word("transaction", lambda own: display_name(own.transaction)),
        number("counted", lambda own: own.counted, format.count),
        group(
            "Per transaction",
            number("physical reads", lambda own: _mean(own, own.reads)),
            number("KiB read", lambda own: _mean(own, own.read_bytes / 1024)),
            number("ms reading", lambda own: _mean(own, own.read_ms)),
            number("found in the pool", lambda own: _mean(own, own.hits)),
        ),
        number("of all reads", lambda own: _mean(own, own.share, format.share)),
        notes=[words.READS_SAMPLED if sampled else words.READS_BY_PROCEDURE, *_too_few([step])],
    )


def _mean(
    read: TransactionReads, value: float | None, write: Callable[[float | None], str] = format.number
) -> Cell | str:
    """Return a mean per transaction, or a dash if too few transactions were sampled."""
    return Cell(f"{format.NONE}*", "none") if read.too_few else write(value)


def _too_few(steps: Sequence[StepSummary]) -> list[str]:
    few = any(read.too_few for step in steps for read in step.reads)
    return [words.TOO_FEW] if few else []


def statement_times(step: StepSummary) -> Table | None:
    """Return the statements of SQL of a user's own in a step, or None if it had none."""
    return Rows(list(enumerate(step.own_statements, 1))).table_if_any(
        word("#", lambda row: str(row[0])),
        word("file, line", lambda row: f"{row[1].transaction}.sql, {row[1].line}"),
        word("statement", lambda row: format.shorten(row[1].text)),
        fields(OwnStatementSummary, lambda row: row[1], ("",)),
        group(
            "Latency, ms",
            number("mean", lambda row: row[1].latency_mean_ms),
            percentiles(lambda row: row[1].latency_ms),
        ),
        if_known(fields(OwnStatementSummary, lambda row: row[1], (PAGES,))),
        notes=[reading.STATEMENTS, *percentile_notes(statement.latency_ms for statement in step.own_statements)],
    )


def _statement_blocks(experiment: ExperimentSummary) -> list[Block]:
    labels = step_labels(experiment)
    tables = [(labels[step.key], table) for step in experiment.steps if (table := statement_times(step))]
    if not tables:
        return []
    if len(experiment.steps) == 1:
        return [Title("Statements"), Shown(tables[0][1], "Statements, in the order of their files")]
    return [Title("Statements"), *folds(tables, "Statements", "Statements of")]


def service_times(experiment: ExperimentSummary) -> Table:
    return step_rows(experiment, lambda step: step.transactions).table(
        word("transaction", lambda kind: display_name(kind.name)),
        percentiles(lambda kind: kind.service_ms),
        notes=percentile_notes(kind.service_ms for step in experiment.steps for kind in step.transactions),
    )


def streams(experiment: ExperimentSummary) -> Table | None:
    """Return a column for each step that had concurrent streams, or None if none had."""
    labels = step_labels(experiment)
    steps = [(step, step.streams) for step in experiment.steps if step.streams]
    if not steps:
        return None
    names = sorted({query.name for _, streams in steps for query in streams.queries}, key=in_order)
    rows: list[Sequence[str | Cell]] = [
        ["streams", *(format.count(streams.streams) for _, streams in steps)],
        ["queries per hour", *(format.number(streams.per_hour) for _, streams in steps)],
        ["failed", *(format.count(streams.failed) for _, streams in steps)],
    ]
    for name in names:
        results = [next((query for query in streams.queries if query.name == name), None) for _, streams in steps]
        rows.append(
            [
                name,
                *(f"{format.number(result.seconds)} ({result.done})" if result else format.NONE for result in results),
            ]
        )
    return Table(["", *(labels[step.key] for step, _ in steps)], rows, notes=[query_words.CONCURRENT_STREAMS])


def transactions_section(experiment: ExperimentSummary) -> Section:
    several = len(experiment.steps) > 1
    tables = by_step(experiment)
    blocks: list[Block] = [Words(reading.TRANSACTIONS, "lead")]
    if several:
        blocks += table_blocks(
            limits(experiment), "90th percentile per transaction type, ms", "90th percentile against its limit, ms"
        )
    if tables and not tables[0][0]:
        blocks.append(Shown(tables[0][1], "Transactions"))
    else:
        blocks += folds(tables, "All figures", "Transactions of")
    blocks += _reads_blocks(experiment, several)
    blocks += _statement_blocks(experiment)
    if latencies := transaction_figures(experiment):
        blocks += [Title("Latency by transaction"), Grid(latencies, small=True)]
    beside = "Concurrent streams of queries"
    service = Shown(service_times(experiment), "Service time per transaction type, ms")
    blocks += [*table_blocks(streams(experiment), beside, beside), Fold("Service times (started to ended)", [service])]
    return Section("transactions", "Transactions", blocks, "counts, latency and errors of every type")


def _reads_blocks(experiment: ExperimentSummary, several: bool) -> list[Block]:
    if (table := reads(experiment)) is None:
        return []
    return [
        Title("Reads by transaction"),
        *([Shown(table, "Physical reads per transaction, by type")] if several else []),
        *folds(reads_by_step(experiment), "Reads", "Reads in"),
    ]


# The table of statements: those that read, computed and waited most in each step, and by which plans.

TOP = 3
_BY: tuple[Callable[[StatementSummary], float], ...] = (
    lambda statement: statement.physical_reads,
    lambda statement: statement.cpu_ms,
    lambda statement: statement.waited_ms,
)


def statements(experiment: ExperimentSummary) -> Table | None:
    """Return the top statements of every step by reads, CPU and waiting, or None if the server does not report them."""
    return step_rows(experiment, _with_shares).table_if_any(
        fields(StatementSummary, lambda row: row[0]),
        number("per s", lambda row: _rate(row[0])),
        group(
            "Share of all statements’",
            number("reads", lambda row: row[1][0], format.share),
            number("CPU", lambda row: row[1][1], format.share),
            number("waiting", lambda row: row[1][2], format.share),
        ),
        group(
            "Per execution",
            number("reads", lambda row: row[0].physical_reads / row[0].executions),
            number("CPU ms", lambda row: row[0].cpu_ms / row[0].executions),
            number("waited ms", lambda row: row[0].waited_ms / row[0].executions),
        ),
        word("plans", lambda row: ", ".join(plan.removeprefix("0x").lower()[:8] for plan in row[0].plans)),
        notes=[words.statements(top=TOP)],
    )


def _rate(statement: StatementSummary) -> str:
    return f"{'' if statement.whole else '≥ '}{format.number(statement.executions / statement.seconds)}"


def _with_shares(step: StepSummary) -> Iterator[tuple[StatementSummary, list[float | None]]]:
    """Yield the top statements of a step, each with its shares of reads, CPU and waiting."""
    totals = [sum(map(by, step.server.statements)) for by in _BY]
    for statement in _top(step.server.statements):
        yield statement, [by(statement) / total if total else None for by, total in zip(_BY, totals, strict=True)]


def _top(candidates: Sequence[StatementSummary]) -> list[StatementSummary]:
    # By identity, as two statements with the same figures are two rows.
    best = {
        id(statement) for by in _BY for statement in sorted(candidates, key=by, reverse=True)[:TOP] if by(statement)
    }
    return [statement for statement in candidates if id(statement) in best]


# The tables of users who blocked one another: whose rows they waited for, who blocked whom, and the deadlocks.


def row_waits(experiment: ExperimentSummary) -> Table | None:
    """Return the waits for rows and pages by table, or None if they were not sampled. Without waits it has no rows."""
    if all(step.waits.row_waits is None for step in experiment.steps):
        return None
    rows = step_rows(experiment, lambda step: [(wait, step.users) for wait in step.waits.row_waits or []])
    counted = any(wait.waits_per_s is not None for wait, _ in rows.items)
    return rows.table(
        word("table", lambda row: row[0].table),
        number("sessions waiting", lambda row: row[0].waiting),
        number("per user", lambda row: row[0].waiting / row[1] if row[1] else None, format.share),
        fields(RowWait, lambda row: row[0]) if counted else [],
        notes=[words.ROW_WAITS + words.ROW_WAITS_COUNTED * counted],
    )


def blocked(experiment: ExperimentSummary) -> Table | None:
    """Return the pairs of blocked and blocking sessions by step, or None if no session was observed blocked."""
    return step_rows(experiment, lambda step: step.waits.blocked).table_if_any(
        fields(BlockedPair), notes=[words.BLOCKED]
    )


def deadlocks(experiment: ExperimentSummary) -> Table | None:
    """Return the deadlocks of every run by their shape; None without any."""
    rows = named_rows("run", ((run.title, deadlock) for run in experiment.runs for deadlock in run.deadlocks))
    return rows.table_if_any(fields(DeadlockShape), notes=[words.DEADLOCKS])


def blocking_section(experiment: ExperimentSummary) -> Section:
    """Return the section on waits for rows, and on blocked sessions with their blockers."""
    waits = row_waits(experiment)
    by_table: list[Block] = table_blocks(waits, "Sessions waiting for rows, by table")
    # Sampled without any wait is a result; a table without rows would look like a fault.
    if waits and not waits.rows:
        by_table = [Words(reading.NO_ROW_WAITS)]
    pairs = table_blocks(
        blocked(experiment), "Sessions that waited for another session", "Blocked sessions and their blockers"
    )
    blocks = [*by_table, *pairs]
    return Section("rows", "Waiting for rows", blocks, "")


# The tables of errors: calls that failed, and consistency conditions that do not hold.


def errors(experiment: ExperimentSummary) -> Table | None:
    """Return the failed calls by class and code; None when no call failed in any measured interval."""
    bursts = step_rows(experiment, lambda step: step.validity.bursts)
    return step_rows(experiment, lambda step: step.validity.errors).table_if_any(
        fields(ErrorSummary),
        notes=[
            words.TRIED_AGAIN,
            *(f"{step}: {sentence(burst)}" for step, burst in zip(bursts.names, bursts.items, strict=True)),
        ],
    )


def brief(experiment: ExperimentSummary) -> str:
    """Return the number of failed calls, and of conditions that hold, in a line."""
    failed = sum(error.attempts for step in experiment.steps for error in step.validity.errors)
    checked = [condition.holds for run in experiment.runs for condition in run.conditions]
    parts = [f"{failed:,} failed calls" if failed else "no call failed"]
    return ", ".join([*parts, *([f"{checked.count(True)} of {len(checked)} conditions hold"] if checked else [])])


def consistency(experiment: ExperimentSummary) -> Table | None:
    """Return the conditions that do not hold or were refused, runs of the same result together, or None without any."""
    runs_by_result: dict[tuple[str, bool | None, int, str], list[RunSummary]] = {}
    for run in experiment.runs:
        for condition in run.conditions:
            if condition.holds:
                continue
            result = (condition.name, condition.holds, condition.offending, condition.refused or condition.detail)
            runs_by_result.setdefault(result, []).append(run)
    rows: list[Sequence[str | Cell]] = []
    for (name, holds, offending, detail), runs in runs_by_result.items():
        verdict = Cell("refused", "none") if holds is None else Cell("BROKEN", "bad")
        rows.append([name, verdict, format.count(offending), _run_names(experiment, runs), detail])
    if not rows:
        return None
    return Table(["condition", "result", "offending rows", "runs", "detail"], rows, frozenset({0, 1, 3, 4}))


def satisfied_conditions(experiment: ExperimentSummary) -> str:
    """Return a sentence with the number and the names of the conditions that held; empty if none did."""
    names = [condition.name for run in experiment.runs for condition in run.conditions if condition.holds]
    checked = sum(len(run.conditions) for run in experiment.runs)
    if not names:
        return ""
    return reading.conditions_held(len(names), checked, list(dict.fromkeys(names)))


def _run_names(experiment: ExperimentSummary, runs: Sequence[RunSummary]) -> str:
    if len(runs) == len(experiment.runs):
        return f"all {len(runs)}" if len(runs) > 1 else "the only run"
    return ", ".join(r.title for r in runs)


def errors_section(experiment: ExperimentSummary, failed: Sequence[Block]) -> Section:
    """Return the section with what `failed`, and with the consistency of the data."""
    blocks = [*failed, Title("Consistency of the data after the runs"), *consistency_blocks(experiment)]
    return Section("errors", "Errors and consistency", blocks, brief(experiment))


def failed_calls(experiment: ExperimentSummary) -> list[Block]:
    calls = table_blocks(errors(experiment), "Failed calls") or [Words(reading.NO_CALL_FAILED)]
    return [*calls, *table_blocks(deadlocks(experiment), "Deadlocks, by their shape", "Deadlocks")]


def consistency_blocks(experiment: ExperimentSummary) -> list[Block]:
    names = satisfied_conditions(experiment)
    broken = table_blocks(consistency(experiment), "Consistency conditions that do not hold")
    return [*([Words(names)] if names else []), *broken] or [Words(reading.NOT_CHECKED)]
