"""The wording of how a load reads."""

from collections.abc import Mapping

from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.locality import LocalityKind
from stallmark.analysis.locality_trace import Traced
from stallmark.format import coefficient, count, listed, number, percent, portion, seconds, share, signed, size
from stallmark.report.text import Format, Template, clause, says

QUESTION = (
    "How much does the load read at each memory size, how large and how hot are the data it reads, and who reads them?"
)
NO_FINDING = "The reads of this load are unknown."
POOLS = "Published lines and points are shifted to the level of this load: compare only their slopes."
FLASH = "Reads that missed the pool, in an LRU read cache. A band shows the bounds if the trace is too short."
FOOTPRINT = "Pages that were read at least once since measuring began."
SKEW = (
    "Beforehand: chosen by the first half of the reads, judged by the second. Afterwards: chosen and judged by all "
    "reads, which gives too high a share by chance."
)
TABLES = "With the indexes and TOAST of each table."
TRANSACTIONS = (
    "From the counters of sessions before and after a sample of transactions; no share is from fewer than 30."
)
SIZES = "Sizes of I/Os to data files, without the log."
PUBLISHED = (
    "Figures of brokerage loads and of production databases, for comparison. 98 % of the reads of DBT-5 come from one "
    "poor plan, which reads the heap of trade."
)
ANSWERED = "share of the page reads that flash answers"
READ_ONCE = "read at least once, share of the data"
SLOPE = "exponent of the reads over the pool size"
READS_PER_WRITE = "reads per write"
KB_PER_IO = "KB per I/O"
METHOD_POOLS = (
    "Measured: data-file reads of all processes of the server per commit, by its own counters. Estimated: those of "
    "the traced pool × (1 − hits of an LRU flash of that size behind it). The line is fitted to the logarithms of the "
    "sizes from 2 to 32 % of the data."
)
METHOD_FLASH = (
    "From the stack distances of the pages read, in the order in which their reads ended. Reads alone fill the cache; "
    "those traced before the middle of the measured interval warm it, the later ones are judged. The lower bound "
    "counts a page that is new in the trace as a miss, the upper bound as a hit if flash of that size may still hold "
    "it."
)
METHOD_SKEW = (
    "Pages of 8 KiB and extents of 1 MiB of all files of the database, including unread ones. The true value is "
    "between beforehand and afterwards."
)
METHOD_FOOTPRINT = "Distinct pages of 8 KiB, counted at the end of each of 60 parts of the interval."
METHOD_TABLES = "From the files that were read, and the tables and indexes they belong to."


SENTENCES: Mapping[Kind, str] = {
    LocalityKind.SKEW: (
        "The hottest {hottest:portion} of all pages get {of_pages:band} of the reads, the hottest {hottest:portion} "
        "of 1 MiB extents {of_extents:band}."
    ),
    LocalityKind.FEW_READS: (
        "Only {reads:count} reads were traced in the measured interval: shares need at least {least}."
    ),
    LocalityKind.SHORT: (
        "The trace is too short for flash of {share:portion} of the data and more ({judged:count} page reads were "
        "judged): only bounds of its hits are known. Raise --measure."
    ),
    LocalityKind.LOST: (
        "{lost:count} I/Os of the run were lost, next to {traced:count} traced in its measured interval, because they "
        "came faster than they were recorded: the footprint may be too low, and hits may be wrong."
    ),
    LocalityKind.FEW_SIZES: (
        "Reads are known for fewer than three pool sizes from 2 to 32 % of the data, so no slope is computed."
    ),
}
FORMATS: Mapping[str, Format] = {"band": lambda ends: _band(*ends)}


@says(LocalityKind.READS)
def _(
    pool_share: float, reads: float, slope: float | None = None, deviation: float | None = None,
    between: list[float] | None = None, sizes: int = 0, estimated: int = 0,
) -> str:  # fmt: skip
    text = f"With a pool of {portion(round(pool_share, 3))} of the data a transaction reads {number(reads)} times"
    if slope is None or deviation is None or between is None:
        return f"{text}."
    ends = f"{portion(round(between[0], 3))} and {portion(round(between[1], 3))}"
    sizes_text = f"{sizes} sizes, {estimated} of them estimated" if estimated else f"{sizes} sizes"
    return (
        f"{text}; between {ends} reads vary as the pool size to the power {coefficient(slope)} ({sizes_text}, at "
        f"most {percent(deviation)} off that line)."
    )


@says(LocalityKind.FLASH)
def _(pool_share: float | None, shares: list[float], least: list[float], most: list[float]) -> str:
    behind = f"the pool of {portion(round(pool_share, 3))}" if pool_share else "this pool"
    answers = [f"{_band(*ends)} at {portion(part)}" for part, *ends in zip(shares, least, most, strict=True)]
    answers[0] += " of the data"
    return f"Behind {behind}, an LRU flash cache answers this share of the reads, by its size: {listed(answers)}."


@says(LocalityKind.FOOTPRINT)
def _(measured_s: float, size_bytes: int, share: float, once_share: float | None) -> str:
    once = f"; {percent(once_share)} of that was read only once" if once_share is not None else ""
    return (
        f"In {seconds(measured_s)} the load read {size(size_bytes)}, {percent(share)} of the data, at least once{once}."
    )


@says(LocalityKind.TABLES)
def _(tables: list[str], shares: list[float], data_shares: list[float]) -> str:
    texts = [
        f"{table} has {percent(reads)} of the reads and {percent(data)} of the data"
        for table, reads, data in zip(tables, shares, data_shares, strict=True)
    ]
    return f"{listed(texts)}."


@says(LocalityKind.NOT_MEASURED)
def _(lacking: list[str]) -> str:
    names = {"counters": "the server’s counters", "pool": "the size of its pool or of its data"}
    if lacking:
        missing = listed([names[name] for name in lacking])
        return f"Reads per transaction are unknown: {missing} {'is' if lacking == ['pool'] else 'are'} missing."
    return (
        "Reads per transaction are unknown: no step combines commits of transactions alone with the server’s counters "
        "and the size of its pool."
    )


@says(LocalityKind.NO_TRACE)
def _(unused: str | None) -> str:
    reasons = {
        None: "The record has no trace of I/Os, which only the embedded PostgreSQL provides",
        "interval": "The run with a trace of I/Os has no measured interval",
        "size": "The record has a trace of I/Os, but the size of the data is unknown",
    }
    missing = "flash, footprint, skew, tables, sizes of single I/Os and sequential reads are missing"
    return f"{reasons[unused]}: {missing}."


@says(LocalityKind.ESTIMATED)
def _(pool_share: float | None) -> str:
    beyond = f"pools larger than {portion(round(pool_share, 3))}" if pool_share else "larger pools"
    return (
        f"Reads with {beyond} are estimates if that size was not run: an LRU cache behind the pool gets only the "
        "pool’s misses, and replaces pages differently. Run those sizes to measure them."
    )


@says(LocalityKind.ERROR)
def _(sizes: int, error: float, pool_share: float) -> str:
    place = f"at {portion(round(pool_share, 3))} of the data"
    if sizes == 1:
        return f"The estimate was checked with a run {place}: its error was {signed(error)}."
    return f"The estimate was checked with runs at {sizes} sizes: its largest error was {signed(error)}, {place}."


@says(LocalityKind.UNLIKE_COUNTED)
def _(traced: int, counted: int, reported_late: bool) -> str:
    text = f"The trace has {count(traced)} reads, but the server counted {count(counted)} in about the same time"
    if reported_late:
        return f"{text}: the server’s sessions report up to a second late. Raise --measure."
    return f"{text}. Late reports of its sessions do not explain the difference: one of the two counts lacks reads."


@says(LocalityKind.INVALID)
def _(runs: list[str], why: Finding) -> str:
    more = f" (and {len(runs) - 1} more, for the same reason)" if len(runs) > 1 else ""
    return f"{runs[0]} must not be compared with others{more}: {clause(why)}."


def _band(least: float, most: float) -> str:
    """Return a share between two ends."""
    low, high = map(percent, sorted((least, most)))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def traced(trace: Traced) -> str:
    """Return the scope of the trace."""
    behind = f"a pool of {portion(round(trace.pool_share, 3))} of the data" if trace.pool_share else "the pool"
    return (
        f"{count(trace.reads)} reads and {count(trace.writes)} writes of data files were traced behind {behind} in the "
        "measured interval."
    )


def share_band(least: float | None, most: float | None) -> str:
    """Return a share between two ends, for a table."""
    if least is None or most is None:
        return share(None)
    return share(least) if abs(most - least) < 0.0005 else f"{share(least)} to {share(most)}"


left_between = Template("reads with a pool of {large:portion}, as a share of those with {small:portion}")
