"""The wording of a production server's profile: its findings, its cautions, and how to read its page."""

from collections.abc import Mapping

from stallmark.analysis.finding import Kind
from stallmark.analysis.profile_rates import MINUTE_S, Measure, ProfileKind
from stallmark.errors import as_reason, as_sentence
from stallmark.format import duration, factor, listed, moment, number, percent, roughly, share, size, up_to, zone
from stallmark.record.profile import FileClass, Source
from stallmark.report.text import Format, says

QUESTION = "What does this server do, hour by hour, and what does it wait for?"
PEAKS = (
    "The busiest 15 minutes by each measure. A backup has few I/Os and many bytes: 15 minutes that are quiet by one "
    "measure may be the busiest by another."
)
WINDOWS = "The 15-minute windows with the most I/Os, without overlaps. At least 10 minutes of each were observed."
CLASSES = (
    "Totals divided by the observed time. Sizes and times are means over all I/Os of a class; other: files of "
    "databases outside the profile."
)
WAITS = "Waiting: mean number of tasks that waited at once. Waits that delay no session are omitted."
MEMORY = "Counters give only an upper bound for the effect of more memory. A run with more memory measures the effect."
UNSEEN = "Totals and means exclude these times."
_RECORDERS: Mapping[Source, str] = {
    "perfmon": "Perfmon",
    "iostat": "iostat",
    "sar": "sar",
    "prometheus": "Prometheus",
    "csv": "Another tool",
}

MEASURES: Mapping[Measure, str] = {
    Measure.IOS: "I/Os per s",
    Measure.READS: "reads per s",
    Measure.WRITES: "writes per s",
    Measure.READ_MB: "read MB/s",
    Measure.WRITE_MB: "written MB/s",
    Measure.READ_MS: "ms per read",
    Measure.WRITE_MS: "ms per write",
    Measure.LOG_WRITES: "log writes per s",
    Measure.LOG_MB: "log MB/s",
    Measure.LOG_MS: "ms per log write",
    Measure.TRANSACTIONS: "transactions per s",
    Measure.BATCHES: "batches per s",
    Measure.CPU: "CPU, %",
    Measure.CONNECTIONS: "connections",
}
"""The measures by the labels of tables and charts."""
_MISSING = {
    "cores": "The server’s number of cores is unknown",
    "memory_bytes": "The memory of the server’s machine is unknown",
    "cpu_s": "The server’s CPU time is unknown",
    "data stalls": "The duration of reads and writes of data is unknown",
    "log stalls": "The duration of log writes is unknown",
    "log write_bytes": "The bytes written to the log are unknown",
    "size_bytes": "The sizes of the server’s files are unknown",
    "transactions": "The server’s transactions and log flushes are unknown",
    "waits": "The server’s waits are unknown",
    "disk counters": "Some counters of the disks are unknown",
    "database counters": "Some counters of the database server are unknown",
    "server.cpu_s": "The server’s CPU time is unknown",
    "server": "The server’s memory, transactions, CPU and log flushes are unknown",
}


_FILES = {
    FileClass.DATA: "The data files",
    FileClass.LOG: "The log files",
    FileClass.TEMPDB: "The files of tempdb",
    FileClass.OTHER: "The files of other databases",
    FileClass.DEVICE: "The devices",
}
_WAITS = {"io": "I/O of data files", "wal": "the log", "lock": "locks", "latch": "latches", "cpu": "CPU"}


def slots(interval_s: float) -> str:
    """Return the name of the parts of a profile that have figures of their own: minutes, or samples further apart."""
    return "minutes" if interval_s <= MINUTE_S else f"samples of {roughly(interval_s)}"


def percentiles(interval_s: float) -> str:
    parts = slots(interval_s)
    means = "per-minute means" if parts == "minutes" else f"means of {parts}"
    return (
        f"Percentiles of the {means}. A dash: fewer than five {parts.split()[0]} lie beyond the percentile. I/O is of "
        "all files; times are of data files, or of the log if labelled so."
    )


def minute_means(interval_s: float) -> str:
    parts = slots(interval_s)
    means = "per minute" if parts == "minutes" else f"of {parts}"
    return f"Means {means}. Lines have gaps where nothing was observed."


def method(source: Source, interval_s: float) -> str:
    """Return the method behind the figures of a profile."""
    if source == "server":
        return (
            "Counters are read about every 15 s; a rate is the increment between two samples divided by the time "
            "between them. Increments across a restart, a gap, or a reset of a counter are excluded."
        )
    return (
        f"{_RECORDERS[source]} recorded a sample about every {interval_s:g} s; a rate is over the time between two "
        "samples. Rates across a gap are excluded."
    )


def waited_for(wait_class: str) -> str:
    """Return the words for a class of wait."""
    return _WAITS.get(wait_class, wait_class)


def progress(
    passed_s: float,
    planned_s: float,
    reads_per_s: float | None,
    writes_per_s: float | None,
    gaps: int,
    trouble: str | None,
) -> str:
    """Return the progress of a collection in one line, the most important first."""
    if trouble:
        return f"No contact for a while: {as_sentence(trouble)} Retrying."
    parts = [f"{_short(passed_s)} of {_short(planned_s)}"]
    if reads_per_s is not None and writes_per_s is not None:
        parts.append(f"{number(reads_per_s)} reads/s, {number(writes_per_s)} writes/s")
    if gaps:
        parts.append(f"{gaps} gap{'s' * (gaps > 1)}")
    return " · ".join(parts)


def _short(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def heat(*, put_forward: bool, put_back: bool) -> str:
    """Explain the heat map, with the effect of clock changes in its time."""
    parts = [
        f"Each hour of the day in {zone()}, as a mean over its observed seconds. Every measure has its own scale: the "
        "darkest cell is the highest hour of that measure. An empty cell was not observed, or is unknown."
    ]
    if put_forward:
        parts.append("Clocks were put forward: the skipped hour is empty.")
    if put_back:
        parts.append("Clocks were put back: the repeated hour is one cell.")
    return " ".join(parts)


SENTENCES: Mapping[Kind, str] = {
    ProfileKind.NO_READS: (
        "The server barely reads data from storage ({reads_per_s:number} reads per second): more memory cannot save "
        "more than these reads."
    ),
    ProfileKind.FITS: (
        "The data files ({data_bytes:size}) are no larger than the buffer pool ({pool_bytes:size}): "
        "more memory cannot hold more of them."
    ),
    ProfileKind.MEMORY_NOT_KNOWN: (
        "Counters do not show how many of these reads a larger pool saves: run the load with several pool sizes."
    ),
    ProfileKind.WAITS: (
        "The server waits most for {wait_class:waited_for}: {share:percent} of all waiting, {waiting:number} tasks at "
        "once on average ({types:listed})."
    ),
    ProfileKind.WAITS_MET: (
        "Active sessions were sampled most often at {wait_class:waited_for}: {share:percent} of the samples, "
        "{waiting:number} sessions at once on average ({types:listed})."
    ),
    ProfileKind.OTHER_SERVER: "Several servers answered at this address, one after another: {servers:listed}.",
    ProfileKind.SHORT: "The profile covers {span_s:duration}, less than a day: it may have missed the busiest hour.",
    ProfileKind.COARSE: "A sample covers {interval_s:roughly}: no figure shows a shorter peak{window_s:not_known}.",
    ProfileKind.COUNTED_AT_END: (
        "A transaction took {longest_s:duration} or longer: PostgreSQL adds a session’s reads and writes to its "
        "counters when a transaction ends, so a peak may be the work of that entire time."
    ),
    ProfileKind.CACHED_READS: (
        "PostgreSQL counts a read that the operating system answers from its cache like a read from storage."
    ),
    ProfileKind.SAMPLED_WAITS: ("PostgreSQL keeps no totals of waits: sessions were sampled every {interval_s:g} s."),
    ProfileKind.MISSING: "{name:missing}: {said:as_reason}.",
}
FORMATS: Mapping[str, Format] = {
    "missing": lambda name: _MISSING.get(name, f"{name} is unknown"),
    "not_known": lambda window_s: (
        f", and the busiest {roughly(window_s)} are unknown: samples cover too little of any" if window_s else ""
    ),
    "waited_for": waited_for,
}


@says(ProfileKind.SEEN)
def _(seen_s: float, span_s: float, begin: float, end: float) -> str:
    whole = "all of it" if span_s - seen_s < 0.5 else f"{share(seen_s / span_s)} of it"
    return f"The profile covers {duration(span_s)}, from {moment(begin)} to {moment(end)}; {whole} was observed."


@says(ProfileKind.BUSIEST)
def _(
    begin: float,
    length_s: float,
    ios_per_s: float,
    mean_ios_per_s: float,
    read_ms: float | None,
    log_ms: float | None,
    cpu_share: float | None,
) -> str:
    times = [
        text
        for text in (
            f"a data read took {number(read_ms)} ms" if read_ms is not None else "",
            f"a log write {number(log_ms)} ms" if log_ms is not None else "",
            f"CPU was {percent(cpu_share)} busy" if cpu_share is not None else "",
        )
        if text
    ]
    then = f"; {listed(times)}" if times else ""
    return (
        f"The busiest {roughly(length_s)} began at {moment(begin)}: {number(ios_per_s)} I/Os per second, "
        f"{factor(ios_per_s / mean_ios_per_s)} the mean of {number(mean_ios_per_s)}{then}."
    )


@says(ProfileKind.OTHER_PEAK)
def _(
    measure: Measure, begin: float, length_s: float, per_s: float, busiest_per_s: float | None, ios_per_s: float | None
) -> str:
    against = f", against {number(busiest_per_s)} in the window with the most I/Os" if busiest_per_s is not None else ""
    ios = f"; their I/Os are {number(ios_per_s)} per second" if ios_per_s is not None else ""
    which = f"The {roughly(length_s)} from {moment(begin)}"
    return f"{which} have the most {MEASURES[measure]}: {number(per_s)}{against}{ios}."


@says(ProfileKind.IO_MIX)
def _(
    read_share: float, read_kib: float | None, write_kib: float | None, read_ms: float | None, write_ms: float | None
) -> str:
    reads, writes = _io("read", read_kib, read_ms), _io("write", write_kib, write_ms)
    means = "; ".join(text for text in (reads, writes) if text)
    return f"Of the I/Os of data files, {percent(read_share)} are reads{f': {means}' if means else ''}."


def _io(verb: str, kib: float | None, ms: float | None) -> str:
    """Return the mean size and time of an operation; empty if neither is known."""
    if kib is None and ms is None:
        return ""
    amounts = [f"{number(kib)} KiB" if kib is not None else "", f"{number(ms)} ms" if ms is not None else ""]
    return (
        f"a {verb} is {' and takes '.join(filter(None, amounts))}"
        if kib is not None
        else f"a {verb} takes {amounts[1]}"
    )


@says(ProfileKind.LOG)
def _(writes_per_s: float, write_kib: float | None, write_ms: float | None) -> str:
    io = _io("write", write_kib, write_ms)
    return f"The log is written {number(writes_per_s)} times a second{f': {io}' if io else ''}."


@says(ProfileKind.GROWTH)
def _(file_class: FileClass, grown_bytes: float, span_s: float, per_day_bytes: float) -> str:
    verb = "grew" if grown_bytes > 0 else "shrank"
    return (
        f"{_FILES[file_class]} {verb} by {size(abs(grown_bytes))} in {duration(span_s)}: {size(abs(per_day_bytes))} a "
        "day, if every day were the same."
    )


@says(ProfileKind.READS_AT_MOST)
def _(reads_per_s: float, share: float | None, waiting: float | None, found_share: float | None) -> str:
    part = f", {percent(share)} of the I/Os of data files" if share is not None else ""
    time = f"; {number(waiting)} reads were under way at once on average" if waiting is not None else ""
    lookups = ""
    if found_share is not None:
        # They count in every server. In PostgreSQL a new connection looks up 35 to 160 pages, all of them in memory.
        share_text = percent(found_share)
        lookups = f". {share_text} of page lookups, those in system catalogs included, are answered from the pool"
    return f"More memory saves at most all reads of data, {number(reads_per_s)} per second{part}{time}{lookups}."


@says(ProfileKind.POOL_TURNOVER)
def _(pool_bytes: float, turnover_s: float, least_life_s: float | None) -> str:
    life = f"; the lowest page life expectancy was {number(least_life_s)} s" if least_life_s is not None else ""
    return (
        f"About every {roughly(turnover_s)} the server reads as many bytes from data files as its buffer pool holds "
        f"({size(pool_bytes)}){life}."
    )


@says(ProfileKind.GAPS)
def _(gaps: int, unseen_s: float, longest_s: float, longest_begin: float, said: str | None) -> str:
    cause = f" ({as_reason(said)})" if said else ""
    if gaps == 1:
        unseen = duration(unseen_s).capitalize()
        return f"{unseen} from {moment(longest_begin)} were not observed{cause}: no rate includes them."
    return (
        f"In {gaps} gaps {duration(unseen_s)} were not observed, the longest {duration(longest_s)} from "
        f"{moment(longest_begin)}{cause}: no rate includes them."
    )


@says(ProfileKind.LATE)
def _(samples: int, late_s: float, longest_s: float) -> str:
    if samples == 1:
        return (
            f"One sample came late, after {duration(longest_s)}: totals and means include that time, percentiles "
            "do not."
        )
    return (
        f"{samples} samples came late, the latest after {duration(longest_s)}: totals and means include these "
        f"{duration(late_s)}, percentiles do not."
    )


@says(ProfileKind.RESTARTS)
def _(restarts: int, begin: float) -> str:
    if restarts == 1:
        return f"The server was restarted before {moment(begin)}: its buffer pool was empty then."
    return (
        f"The server was restarted {restarts} times, first before {moment(begin)}: its buffer pool was empty each time."
    )


@says(ProfileKind.CLOCK_SET)
def _(times: int, begin: float, jump_s: float) -> str:
    often = "" if times == 1 else f"{times} times, first "
    return (
        f"The clock of Stallmark’s machine was changed {often}by {number(jump_s)} s at {moment(begin)}: durations are "
        "right, times of day may be off by that much."
    )


@says(ProfileKind.LOST)
def _(share: float, imported: bool) -> str:
    if imported:
        return f"For {up_to(share)} of the time the I/O of a class of files is unknown: values are missing."
    return f"For {up_to(share)} of the time the I/O of a class of files is unknown: its counters were reset or missing."


@says(ProfileKind.COST)
def _(share: float, server_share: float | None) -> str:
    server = "" if server_share is None else f", and {number(server_share * 100)} % of one on the server"
    return f"Collecting took {number(share * 100)} % of a core on Stallmark’s machine{server}."
