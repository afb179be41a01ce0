"""The wording of causes: associations with throughput, reasons why two sides differ, predictions."""

from collections.abc import Callable, Mapping, Sequence

from stallmark.analysis.cause_evidence import CauseKind, ChangeKind, ComparedFigure, Evidence
from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.prediction import WhatIfs
from stallmark.analysis.step_summary import Associated, Association, NoteKind, Source
from stallmark.format import number, per_transaction, percent, signed
from stallmark.report.text import PART_NAMES, Format, NameFirst, Template, clause, says, term
from stallmark.stats.thresholds import CONFIDENCE, MODEL_ERROR

SENTENCES: Mapping[Kind, str] = {
    NoteKind.NOT_LOOKED_AT: (
        "The division of response time is unknown: the users’ sessions were not sampled often enough (collector "
        "“Waits of the users”), or no transaction was committed or rolled back."
    ),
    NoteKind.SERVER_LOST: "Response time is not divided for a step in which the server was lost.",
    NoteKind.NOTHING_ENDED: (
        "The effect of faster reads is not predicted: no transaction that a user started was committed or rolled back."
    ),
    NoteKind.NOTHING_COUNTED: (
        "The effect of faster reads is not predicted: no transaction that counts for the result was committed."
    ),
    NoteKind.OPEN_LOOP: (
        "The effect of faster reads is not predicted in an open loop: its throughput is the requested rate, and "
        "faster reads shorten only the response time."
    ),
    NoteKind.OTHER_LOADS: (
        "The effect of faster reads is not predicted next to other loads: these would use an unknown part of the "
        "freed capacity."
    ),
    NoteKind.OTHER_USERS: (
        "The division of response time is unknown next to other loads: this load’s own sessions were not sampled "
        "often enough, or no transaction was committed or rolled back."
    ),
    NoteKind.NO_READS: (
        "The effect of faster reads is not predicted: no data was read, or the duration of reads is unknown."
    ),
    NoteKind.CPU_UNKNOWN: (
        "The CPU time of the run’s own processes is unknown, so the predictions ignore it: they are too high if the "
        "CPU would become the limit."
    ),
    NoteKind.QUERIES: "Runs of queries have no prediction model.",
    NoteKind.NOT_PREDICTED: "{steps:quoted}: {because:clause}.",
    # Why two sides differ.
    CauseKind.NOT_LOOKED_AT: (
        "The cause is unknown: in at least one run the users’ sessions were not sampled often enough (collector "
        "“Waits of the users”), or no transaction was committed or rolled back, so the response time cannot be "
        "divided into parts."
    ),
    CauseKind.UNCHANGED: (
        "No change in response time was shown ({response_ms:and} ms); I/O took {io_share:shares} of the time."
    ),
    CauseKind.NOT_SPLIT: (
        "It is unknown whether storage is the cause. {response_ms:turned}; {unknown_share:of_change} of the change is "
        "waiting for I/O: either the time of single I/Os changed, or their number."
    ),
    CauseKind.NOT_DIVIDED: (
        "It is unknown whether storage is the cause. {response_ms:turned}; {unknown_share:of_change} of the change "
        "was above the device or waiting for a CPU: these cannot be separated, because the CPU time of sessions is "
        "unknown."
    ),
    CauseKind.STORAGE: (
        "Storage is the cause. {response_ms:turned}; the time of single I/Os explains {io_share:of_change} of the "
        "change: {io_reason:clause}."
    ),
    CauseKind.NOT_STORAGE: (
        "Storage is not the cause. {response_ms:turned}; the time of single I/Os explains {io_share:of_change} of the "
        "change, but {others:joined}."
    ),
    CauseKind.ONE_OF_SEVERAL: (
        "Storage is one of several causes. {response_ms:turned}; the time of single I/Os explains {io_share:of_change} "
        "of the change: {io_reason:clause}.{others:besides}"
    ),
    CauseKind.UNCERTAIN: (
        "Run-to-run variation is large: all parts of I/O together point to storage, but no single part does."
    ),
    CauseKind.NO_DEVICE: (
        "The device’s own counters are unknown, so waiting for a CPU after an I/O is counted as I/O."
    ),
    CauseKind.LAW_FAILED: "The figures of a run violate a law of operational analysis: see the laws of its step.",
    CauseKind.LOCKS: (
        "Locks account for {share:percent} of the change. A session that holds a lock may itself wait for I/O, so "
        "storage may cause a part of it."
    ),
    CauseKind.CPUS_BUSY: (
        "In {runs} of {of} runs the CPUs were mostly busy with other work. The cause names the part of the response "
        "time that changed. It does not judge whether the device was the bottleneck of such a run, and an I/O may "
        "have waited for a CPU."
    ),
    ChangeKind.LITTLE_IO: "Waiting for I/O barely changed.",
    ChangeKind.READ_TIME: "Read stalls {read_ms:went} ms.",
    ChangeKind.CPU_TIME: (
        "The CPU time per transaction {used_ms:went} ms, and with waiting for a CPU {cpu_ms:went} ms."
    ),
    ChangeKind.ABOVE: "Waiting above the device (for {part:waited_for}) {per_transaction_ms:went} ms per transaction.",
    ChangeKind.NUMBER: "{figure:begin} {per_transaction:went_finely}.",
}


@says(CauseKind.LITTLE_IO)
def _(
    response_ms: list[float],
    io_share: list[float],
    other_part: str | None,
    other_share: float | None,
    cpu_share: list[float] | None,
) -> str:
    parts = [f"I/O is {_shares(io_share)}"]
    if other_part and other_share is not None:
        parts.append(f"{PART_NAMES[other_part]} {percent(other_share)}")
    if cpu_share:
        parts.append(f"and the CPUs were {_shares(cpu_share)} busy")
    return (
        f"Storage is not the cause: no change in response time was shown ({_numbers(response_ms)} ms), and storage is "
        f"only a small part of that time: {', '.join(parts)}."
    )


def because_of(cause: Finding) -> str | None:
    """Return a cause as the end of a sentence, "because read stalls fell from 4.1 to 1.9 ms"; None without one."""
    others = _joined(cause.facts.get("others", ()))
    if cause.kind == CauseKind.STORAGE:
        return f"because {clause(cause.facts['io_reason'])}"
    if cause.kind == CauseKind.NOT_STORAGE:
        return f"because {others} (storage is not the cause)"
    if cause.kind == CauseKind.ONE_OF_SEVERAL:
        return f"partly because {clause(cause.facts['io_reason'])}{f', and {others}' if others else ''}"
    return None


_WAITING = {"cpu": "CPU time and waiting for a CPU", "read": "Waiting for reads", "lock": "Waiting for locks"}


@says(ChangeKind.PART)
def _(part: str, per_transaction_ms: list[float]) -> str:
    text = f"{_WAITING.get(part, f'Time for {PART_NAMES[part]}')} {_went(per_transaction_ms)} ms per transaction."
    return NameFirst(text) if part == "cpu" else text


_WAITED_FOR = {"read": "reads", "log": "syncs of the log", "other_io": "writes and other I/O of files"}


@says(ChangeKind.WAITED_FOR)
def _(part: str, fewer: bool) -> str:
    return f"Transactions waited for {'fewer' if fewer else 'more'} {_WAITED_FOR[part]}."


def _turned(response_ms: list[float]) -> str:
    return f"A transaction took {number(response_ms[1])} ms instead of {number(response_ms[0])} ms"


def _went(values: list[float], write: Callable[[float], str] = number) -> str:
    a, b = values
    return f"{'fell' if b < a else 'rose'} from {write(a)} to {write(b)}"


def _share_of_change(share: float) -> str:
    """Return a share of a change; more than all is possible where other parts went the other way."""
    if share > 1:
        return "more than all"
    return "nothing" if share <= 0 else percent(share)


def _joined(reasons: Sequence[Finding]) -> str:
    return " and ".join(map(clause, reasons))


def _shares(level: list[float]) -> str:
    a, b = map(percent, level)
    return a if a == b else f"{a} and {b}"


def _numbers(values: list[float]) -> str:
    return " and ".join(map(number, values))


FORMATS: Mapping[str, Format] = {
    "and": _numbers,
    "begin": lambda figure: term(figure)[0].upper() + term(figure)[1:],
    "besides": lambda others: f" In addition, {_joined(others)}." if others else "",
    "joined": _joined,
    "of_change": _share_of_change,
    "shares": _shares,
    "turned": _turned,
    "waited_for": _WAITED_FOR.__getitem__,
    "went": _went,
    "went_finely": lambda values: _went(values, per_transaction),
}


# The tables: what figures are called, their units and how they are taken. --------------------------------------

_UNITS = {
    Associated.READ_TIME: "ms per I/O",
    Associated.WRITE_TIME: "ms per I/O",
    Associated.LOG_TIME: "ms per sync",
    Associated.CPU: "share busy",
}


def series_words(association: Association) -> list[str]:
    """Return the name of a series and its unit."""
    return [_with_source(association.series, association.source), _UNITS.get(association.series, "sessions")]


_DIVIDED = "mean response time, split by the sampled states of sessions (Little’s law)"
_WEIGHTED = "stall ÷ number of I/Os over the measured interval"
_NUMBER = "the server’s count, checkpoints included, ÷ commits per second of the measured interval"
_FIGURES = {
    ComparedFigure.RESPONSE: ("ms per transaction", _DIVIDED),
    ComparedFigure.PART: ("ms per transaction", _DIVIDED),
    ComparedFigure.ABOVE: ("ms per transaction", _DIVIDED),
    ComparedFigure.READ_TIME: ("ms per read", _WEIGHTED),
    ComparedFigure.WRITE_TIME: ("ms per write", _WEIGHTED),
    ComparedFigure.SYNC_TIME: ("ms per sync", _WEIGHTED),
    ComparedFigure.READS: ("reads per commit", "reads of data files ÷ commits over the same time"),
    ComparedFigure.WRITES: ("writes per commit", _NUMBER),
    ComparedFigure.SYNCS: ("syncs per commit", _NUMBER),
    ComparedFigure.CPU_BUSY: ("share busy", "neither idle nor waiting for I/O, of all cores"),
    ComparedFigure.CPU_TIME: (
        "ms per transaction",
        "utilisation law: busy cores ÷ transactions per second, all programs of the machine",
    ),
    ComparedFigure.DEVICE_BUSY: ("share of the time", "as the device counted"),
}


def evidence_words(evidence: Evidence) -> tuple[str, str, str]:
    """Return the name of a figure, its unit, and how it is taken."""
    name = PART_NAMES[evidence.part] if evidence.part else _with_source(evidence.figure, evidence.source)
    return name, *_FIGURES[evidence.figure]


def evidence_method(evidence: Evidence) -> str:
    """Return the method behind a figure, as a sentence."""
    return f"Method: {evidence_words(evidence)[2]}."


def _with_source(name: str, source: Source | None) -> str:
    return f"{term(name)} ({source})" if source else term(name)


def tests_of_models(what_ifs: WhatIfs) -> str:
    """Return the accuracy of predictions where the other variant was really run, as a sentence."""
    if not what_ifs.tests:
        return (
            "Not tested: no other variant was run with as many users and reads per transaction. Tested predictions "
            "are more reliable."
        )
    errors = [test.error for test in what_ifs.tests]
    held = sum(test.is_within_range for test in what_ifs.tests)
    return (
        f"Tested on {len(errors)} pair{'s' * (len(errors) != 1)} of measured variants: errors of {signed(min(errors))} "
        f"to {signed(max(errors))}, {held} within the range."
    )


# How to read the tables of causes. ----------------------------------------------------------------------------

RESPONSE_DIVIDED = (
    "Milliseconds of one transaction’s response time (scheduled to ended, mean of all types), and the share of each "
    "part. Sessions are sampled at random instants: by Little’s law the mean number of sessions in a state, divided "
    "by the transactions per second, is the time that a transaction spends in that state. If a session in I/O waited "
    "for a CPU, that time counts as CPU, but never more than the server’s processes ran or waited for a CPU. The rest "
    "is I/O, in the device and above it (throttled, waiting for a tag, in a stacked or network file system). Driver "
    "and network: the time in which the server waited for the next request."
)
DEVICE_NOT_KNOWN = "* The device’s counters are unknown: I/O includes waiting for a CPU after an I/O."
ASSOCIATED = (
    "The series that moved with throughput, and in any case the read time. Strength: correlation of the "
    "changes of the series with those of throughput, from one segment of time to the next, with its "
    f"{percent(CONFIDENCE)} interval (Fisher’s z over Bartlett’s effective number of pairs); an interval that spans "
    "zero shows no connection. Lag: the delay of throughput at which the cross-correlation of the pre-whitened "
    "changes per second is largest (interval: block bootstrap). Elasticity: percent of throughput per percent of the "
    "series, least squares on changes of logarithms, with an interval by Newey and West; noise in the series pulls it "
    "towards 0. Expected: the elasticity implied by the part’s share of the response time."
)
PREDICTED = (
    "Predicted TPS by mean read time, queueing included; reads per transaction, writes, log and everything else as "
    "measured. A closed model of N users: reads are a delay, the CPU is a queue of its cores (mean value analysis), "
    "and waiting for locks shrinks in proportion to the rest. The range covers the unknowns of the model (whether "
    "locks shrink, whether the CPU queues, whether reads are as long as sampled sessions or as counters show). To "
    f"these it adds twice the standard error of the step’s own throughput and {percent(MODEL_ERROR)} for each doubling "
    "or halving of the read time. That allowance was chosen after eight runs on the embedded server. Nine new runs on "
    "an idle machine gave six pairs, all within the range (benchmarks/causes.py); on a machine with other work, four "
    "of six were outside."
)
LAWS_NOTE = (
    "Operational analysis: both sides were measured in different ways, over the measured interval, and must agree. "
    "Open: no closer agreement is expected, for the reason given."
)
CHANGED = (
    f"Means over runs. The {percent(CONFIDENCE)} interval is that of the change, by Student’s t over runs; an en dash "
    "if a side has one run. Share: the part’s share of the change in response time, if such a change was shown; it is "
    "negative if the part changed in the other direction."
)
PREDICTED_IN_BRIEF = (
    "A closed model of the users: reads are a delay, the CPU is a queue of its cores, waits for locks shrink in "
    "proportion; reads per transaction, writes, the log and all other times stay constant. Ranges cover the unknowns "
    "of the model."
)
TESTS_OF_MODELS = "One side’s model applied to the other side’s read time, next to the measured value."


further_series = Template("{count} further series of these steps showed no connection (log, writes, locks, CPU).")
