"""The word for each mark of a step, for tables; its sentence stands below them."""

from stallmark.analysis.bottleneck.device_verdict import DeviceKind
from stallmark.analysis.finding import Finding, Kind, Severity
from stallmark.analysis.read.interval import ReadKind
from stallmark.analysis.steady import CycleKind, SteadyKind
from stallmark.analysis.validity.invalid import GateKind, ValidityKind
from stallmark.report.text.terms import term

_WORDS: dict[Kind, str] = {
    ValidityKind.RUN_INCOMPLETE: "incomplete",
    ValidityKind.ENDED_EARLY: "cut short",
    ValidityKind.LOADS_MISSED: "another load",
    ValidityKind.SERVER_STARTED: "server lost",
    ValidityKind.CONNECTIONS_LOST: "server lost",
    ValidityKind.DRIVER_OVERHEAD: "driver-bound",
    ValidityKind.EXECUTOR_CPU: "driver-bound",
    ValidityKind.LATE_STARTS: "driver-bound",
    ReadKind.ERROR_BURST: "bursts of errors",
    ReadKind.NOT_READ: "gaps",
    ReadKind.FEW_SAMPLES: "few samples",
    ReadKind.DATED_ROUGHLY: "gaps",
    ReadKind.QUERY_STORE_STOPPED: "Query Store partial",
    ReadKind.QUERY_STORE_CHANGED: "Query Store partial",
    ReadKind.QUERY_STORE_DROPPED: "Query Store partial",
    ReadKind.PLANS_LEFT: "statements partial",
    ReadKind.COUNTERS_RESTARTED: "counters restarted",
    SteadyKind.TREND: "never steady",
    SteadyKind.LEVEL_CHANGED: "never steady",
    SteadyKind.STEADY_LATE: "steady late",
    CycleKind.NO_CHECKPOINT: "writes partial",
    DeviceKind.LIMITS: "device-bound",
    DeviceKind.LATENCY_LIMITS: "device-bound",
    DeviceKind.ABOVE_LIMITS: "bound above the device",
    DeviceKind.NOT_DIVIDED: "I/O or CPU, not told apart",
    DeviceKind.NOT_LIMITING: "device not the bottleneck",
    DeviceKind.ONE_OF_SEVERAL: "device one limit of several",
    DeviceKind.WITH_CPUS: "device and CPUs limit together",
    DeviceKind.CPUS_LIMIT: "CPU-bound",
    DeviceKind.CPUS_BUSY_OTHERWISE: "CPUs busy with other work",
    DeviceKind.NOT_TOLD: "load says nothing about the device",
}


def word(finding: Finding) -> str:
    """Return the word for a mark; "invalid" for one that forbids a comparison and has no word of its own."""
    if isinstance(finding.kind, GateKind) and finding.severity is not Severity.INVALID:
        return term(finding.kind)
    return _WORDS.get(finding.kind, "invalid")
