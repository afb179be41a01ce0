"""The wording of faults in recorded data, and of facts that follow from them at once."""

from collections.abc import Mapping

from stallmark.analysis.finding import Kind
from stallmark.analysis.read.interval import ReadKind
from stallmark.format import NONE, listed, number, percent, size, spoken
from stallmark.record.schema import how_to_resume, why_stopped
from stallmark.report.text import NameFirst, says
from stallmark.report.text.templates import Format
from stallmark.report.text.terms import first_three
from stallmark.stats.thresholds import BURST

SENTENCES: Mapping[Kind, str] = {
    ReadKind.HISTOGRAM_FULL: "The histogram is full: other durations than those in it may be missing.",
    ReadKind.HISTOGRAM_LOST_EVENTS: "The server ran out of buffers and lost {events:,.0f} of the events.",
    ReadKind.HISTOGRAM_UNIT_UNKNOWN: (
        "Its unit is not known: the file counters are missing, or match neither milliseconds nor microseconds."
    ),
    ReadKind.NOT_READ: (
        "Not read for up to {seconds:,.0f} of the {measured_s:,.0f} s measured: {sources:listed}. Figures are over "
        "the time that was seen, and changes within a gap do not show."
    ),
    ReadKind.QUERY_STORE_DROPPED: (
        "Query Store dropped counts of {procedures:first_three} while they rose, as it does to stay within "
        "MAX_STORAGE_SIZE_MB or when it is cleared: executions are at least what is shown."
    ),
    ReadKind.COUNTERS_RESTARTED: (
        "The counters of {sources:listed} restarted while this step was measured, as when somebody resets them: what "
        "they had counted is lost, and tables leave out what is only a part."
    ),
    ReadKind.ACTIVE_FITS_DRAM: (
        "The active set ({facts:active}) fits into the array’s DRAM ({dram_bytes:size}), which may have answered "
        "instead of its disks or its flash. Use a larger database, or a smaller buffer pool."
    ),
    ReadKind.ACTIVE_FITS_FLASH: (
        "The active set ({facts:active}) fits into the flash {flash:both} ({flash_bytes:size}). Once the flash is warm "
        "no read waits for disks. Larger data may behave differently."
    ),
}
FORMATS: Mapping[str, Format] = {
    "active": lambda facts: f"{size(facts['active_bytes'])}{' at most' if facts['at_most'] else ''}",
    "both": lambda flash: flash.replace("+", " and "),
}


@says(ReadKind.CLOCK_JUMPED)
def _(jump_s: float) -> str:
    way = "ahead" if jump_s > 0 else "back"
    return (
        f"The server’s clock jumped {number(abs(jump_s))} s {way} while this step was measured: one of the machines "
        "stood still, or its clock was set."
    )


@says(ReadKind.FEW_SAMPLES)
def _(sources: list[str], seconds: float, measured_s: float) -> str:
    return (
        "Samples at the ends of the measured interval were further apart than planned, which leaves "
        f"{number(seconds)} s open: {listed(sources)}. Rates may be off by {percent(seconds / measured_s)}, times per "
        "I/O are not."
    )


@says(ReadKind.DATED_ROUGHLY)
def _(sources: list[str], seconds: float, measured_s: float) -> str:
    return (
        f"The server took long to answer at the ends of the measured interval, and when it counted is not known better "
        f"than to {number(seconds)} s: {listed(sources)}. Rates may be off by {percent(seconds / measured_s)}, times "
        "per I/O are not."
    )


@says(ReadKind.QUERY_STORE_STOPPED)
def _(database: str | None, state: str, reason: int | None, after_s: float, measured_s: float) -> str:
    place = f" of the database {database}" if database else ""
    why = f" ({why})" if (why := why_stopped(reason)) else ""
    when = f"after {number(after_s)} of the {number(measured_s)} s measured" if after_s else "as measuring began"
    part = "only a part" if after_s < measured_s else "perhaps only a part"  # seen once the interval was over
    remedy = how_to_resume(state, reason).rstrip(";")
    return (
        f"Query Store{place} was seen {state}{why} {when}, and counts nothing then: its statements and waits are "
        f"{part} of those that there were. For the next run, {remedy}."
    )


@says(ReadKind.QUERY_STORE_CHANGED)
def _(database: str | None, option: str, before: str, now: str, after_s: float, measured_s: float) -> str:
    place = f" of the database {database}" if database else ""
    when = f"after {number(after_s)} of the {number(measured_s)} s measured" if after_s else "as measuring began"
    part = "waits" if option == "WAIT_STATS_CAPTURE_MODE" else "statements and waits"
    return (
        f"{option} of Query Store{place}, which was {before} as the run began, was seen {now} {when}: its {part} are "
        "perhaps only a part of those that there were. Let nobody change it during a run."
    )


@says(ReadKind.PLANS_LEFT)
def _(plans: int, procedures: list[str]) -> str:
    left = "1 plan" if plans == 1 else f"{plans:,} plans"
    return (
        f"{left} of statements in {first_three(procedures)} left the plan cache while executed, with what was counted "
        "since the sample before: these statements were executed at least as often as is shown. Query Store keeps "
        "such counts (`observe: [query_store]`)."
    )


@says(ReadKind.ERROR_BURST)
def _(
    transaction: str, error_class: str, seconds: int, measured_s: int, most_in_a_second: int, given_up: int
) -> str:  # fmt: skip
    after = f"{given_up:,} transactions were given up" if given_up else "every one of them was retried"
    return NameFirst(
        f"{spoken(transaction)} failed in bursts ({error_class}): in {seconds:,} of {measured_s:,} seconds more than "
        f"{percent(BURST)} of its calls failed, up to {most_in_a_second:,} in one; {after}."
    )


# How to read tables of a run’s transactions, errors and collectors. -------------------------------------------

READS_SAMPLED = (
    "I/Os that a transaction’s own session asked for, from a random sample of transactions (“counted”): one may "
    "bring several blocks, and what others read for it is not in it."
)
READS_BY_PROCEDURE = (
    "Pages of 8 KiB, as the plan cache counted them for the procedures that a transaction calls, for each that "
    "ended. Where a plan left the cache it is too little: “Procedures” tells how many executions are covered."
)


def too_few(samples: int) -> str:
    """Return the footnote of a figure whose sample is smaller than `samples`."""
    return f"{NONE}* fewer than {samples} samples."


RUNS = (
    "Pool set and reached: the memory cap as configured, and as the server reported it. Growth: of the database "
    "over the run. Cost: CPU of all collectors, as a share of one core. Dated: samples have the server’s time, "
    "whose offset and drift from the driver’s clock are known to so many milliseconds."
)
TRIED_AGAIN = "Calls that failed by deadlock, serialisation or lock timeout were tried again, at most ten times."
