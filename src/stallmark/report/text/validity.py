"""The wording of why a step's figures must not be compared, and of its service level."""

from collections.abc import Mapping

from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.validity.invalid import CounterSource, ServiceLevelKind, ValidityKind
from stallmark.analysis.validity.service_level import LevelOutcome
from stallmark.errors import as_reason
from stallmark.format import number, percent, spoken
from stallmark.report.text import NameFirst, clause, says
from stallmark.report.text.templates import Format

_COUNTERS = {
    CounterSource.DATA_FILES: "I/O to the data files",
    CounterSource.LOG: "I/O to the log",
    CounterSource.DATA_DEVICE: "the data device",
    CounterSource.LOG_DEVICE: "the log’s device",
}


SENTENCES: Mapping[Kind, str] = {
    ValidityKind.RUN_INCOMPLETE: "{said}",
    ValidityKind.LOADS_MISSED: (
        "This step went on without {loads:listed}, which had ended early: it is another load than was planned."
    ),
    ValidityKind.SERVER_STARTED: (
        "The server was restarted, or the address led to another one: its start at {after_s:.0f} s is another than at "
        "{before_s:.0f} s. What limits it is not judged from this step."
    ),
    ValidityKind.CONNECTIONS_LOST: (
        "The server was lost: {lost:,} connections of {users:,} users broke within {within_s} s, as in a "
        "restart, a failover or a break of the network. What limits it is not judged from this step."
    ),
    ValidityKind.COUNTERS_BEGAN_AGAIN: (
        "The counters of {of:counters} restarted while this step was measured, so their totals are unknown."
    ),
    ValidityKind.COUNTERS_INCOMPLETE: (
        "The counters of {of:counters} cover only {covered_s:.0f} s of the {measured_s} s measured."
    ),
    ValidityKind.FOREIGN_CPU: (
        "Other programs kept {share:percent} of the CPUs of the server’s machine busy, while the server waited for "
        "CPUs, or hardly any was free."
    ),
    ValidityKind.NOT_CONNECTED: (
        "{connected_users:number} of {users} users were connected on average while this step was measured: a longer "
        "warm-up lets all of them log in before."
    ),
    ValidityKind.LITTLES_LAW: NameFirst(
        "Little’s law does not hold: {users:number} users were running, but throughput times latency and think time "
        "accounts for {accounted_users:number}."
    ),
    ValidityKind.STORAGE_ERROR: (
        "The server’s error log reports trouble with its storage: {text:as_reason} (error {error})."
    ),
    ValidityKind.DRIVER_OVERHEAD: (
        "The driver was the bottleneck: users{machine:on_machine} spent {share:percent} of their time neither thinking "
        "nor in a call."
    ),
    ValidityKind.EXECUTOR_CPU: (
        "The driver was the bottleneck: an executor{machine:on_machine} used {share:percent} of a CPU core."
    ),
    ServiceLevelKind.READS_NOT_KNOWN: "Not known: {why:clause}.",
    ServiceLevelKind.NO_HISTOGRAM: "No histogram of single reads covers this step.",
    ServiceLevelKind.TOO_FEW_READS: "The histogram holds only {reads:,} reads, too few for a {percentile}.",
    ServiceLevelKind.READS_NOT_MEASURED: "How long reads of the data files took was not measured.",
    ServiceLevelKind.NOTHING_READ: "Nothing was read from the data files.",
}
FORMATS: Mapping[str, Format] = {
    "counters": _COUNTERS.__getitem__,
    "on_machine": lambda machine: f" on load machine {machine}" if machine else "",
}


@says(ValidityKind.ENDED_EARLY)
def _(measured_s: int, planned_s: float | None) -> str:
    planned = "" if planned_s is None else f" of the {planned_s:g} s planned"
    return f"The run ended early: this step was measured for {measured_s} s{planned}."


@says(ValidityKind.NOT_TIMED)
def _(of: CounterSource) -> str:
    setting = "track_wal_io_timing" if of == CounterSource.LOG else "track_io_timing"
    return (
        f"The server did not time {_COUNTERS[of]} for a part of this step, though it did in this run ({setting} was "
        "off): how long that I/O took is unknown. Leave the setting on."
    )


@says(ValidityKind.FOREIGN_IO)
def _(share: float, with_writes: bool) -> str:
    what = "bytes read and written" if with_writes else "reads"
    return f"Somebody else used the storage: {percent(share)} of the {what} did not belong to this run."


@says(ValidityKind.TRANSACTIONS_FAILED)
def _(share: float, transaction: str = "", said: str = "", code: str = "") -> str:
    words = f" Most often the server said of {spoken(transaction)}: {as_reason(said)} ({code})." if said else ""
    return f"{percent(share)} of the transactions failed; the latencies are those of the others only.{words}"


@says(ValidityKind.LATE_STARTS)
def _(late_ms: float, latency_ms: float, think_ms: float = 0.0) -> str:
    think = f" and a think time of {number(think_ms)} ms" if think_ms else ""
    return (
        f"The driver was the bottleneck: transactions started {number(late_ms)} ms late on average, at a mean latency "
        f"of {number(latency_ms)} ms{think}."
    )


@says(ServiceLevelKind.READS_TAKE)
def _(
    outcome: LevelOutcome, percentile: str, figure_ms: float, reads: int, limit_ms: float, ideal_ms: float | None,
    ideal_met: bool | None, why: Finding | None,
) -> str:  # fmt: skip
    within = f"{'above' if outcome == LevelOutcome.NOT_MET else 'within'} {limit_ms:g} ms"
    if ideal_met is not None and outcome != LevelOutcome.NOT_MET:
        within += f"{' and also within' if ideal_met else ' but above'} the ideal {ideal_ms:g} ms"
    only = f". This is a mean, not a {percentile}: {clause(why)}" if why else ""
    return f"The {'mean' if why else percentile} of {reads:,} reads was {number(figure_ms)} ms, {within}{only}."
