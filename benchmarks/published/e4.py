"""Joe Chang, 2009: 22 queries with a third of the data in memory and with all of it, on disks and on flash."""

from collections.abc import Mapping, Sequence
from statistics import geometric_mean

from benchmarks.published.chart import Claim, Run, about, lines

from stallmark.analysis.experiment import summarise
from stallmark.analysis.queries import QueryComparison, QueryVariant
from stallmark.record.reader import Record

RUNS = {
    "power": Run("power-memory-storage", ("queries={run: both, timeout: 20min}",)),
    "dop": Run(
        "power-memory-storage",
        (
            "repeats=3",
            "queries={run: each, dop: [1, 2]}",
            "variants=[{name: 'all in memory, disks', buffer_pool: 130 %}]",
        ),
    ),
}
THIRD_DISKS, ALL_DISKS, THIRD_FLASH, ALL_FLASH = (
    "a third in memory, disks", "all in memory, disks", "a third in memory, flash", "all in memory, flash",
)  # fmt: skip
_ONE_READ = (
    "the embedded server makes one read of 128 KiB after another (io_method = sync, so that each is timed), SQL Server "
    "many at once: all disks or channels but one are idle for a query"
)
_PLANS = (
    "other plans: here Q8, Q19 and Q20 look rows up in nested loops and Q12 joins by a hash. Q2 has nested loops over "
    "tables that soon are in memory"
)
NEAR = 3
"""Queries of 22 by which a number of them may differ from theirs."""
_NONE_SLOWER = "plans are the same with more memory: the embedded server's costs do not know the size of its pool"
GAIN, LITTLE, SLOWER = 2.5, 1.1, 1.1
"""Times a query becomes faster if it gains; at most faster or slower if it hardly changes; slower if it suffers."""


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    queries = _queries(records["power"])
    variants = {variant.name: variant for variant in queries.variants}
    seconds = {name: _seconds(queries, variant) for name, variant in variants.items()}
    memory = _times(seconds[THIRD_FLASH], seconds[ALL_FLASH])
    memory_for_disks = _times(seconds[THIRD_DISKS], seconds[ALL_DISKS])
    flash = _times(seconds[THIRD_DISKS], seconds[THIRD_FLASH])
    device = _times(seconds[ALL_DISKS], seconds[ALL_FLASH])
    gaining = [query for query, times in memory.items() if times >= GAIN]
    gaining_for_disks = [query for query, times in memory_for_disks.items() if times >= GAIN]
    steady = [query for query, times in memory.items() if 1 / LITTLE <= times <= LITTLE]
    slower = [query for query, times in memory.items() if times < 1 / SLOWER]
    largest = sorted(flash, key=lambda query: -flash[query])[:2]
    differing = [query for query, times in device.items() if not 1 / 1.25 < times < 1.25]
    return [
        Claim(
            "queries that gain 2.5 × from memory, on flash", "9 of 22", _count(gaining, memory), _near(gaining, 9),
            _ONE_READ,
        ),
        Claim(
            "the same on disks", "not published", _count(gaining_for_disks, memory_for_disks), None,
            "his comparison of memory is on flash alone",
        ),
        Claim("queries that change by a tenth at most", "5 of 22", _count(steady, memory), _near(steady, 5), _ONE_READ),
        Claim("a query gets slower with more memory", "1 of 22", _count(slower, memory), len(slower) > 0, _NONE_SLOWER),
        _power("power: all in memory against a third, on flash", (38_550, 72_134), memory, _ONE_READ),
        Claim(
            "power: flash against disks, a third in memory", "1.87 ×, of two generations of processors",
            f"{geometric_mean(flash.values()):.2f} ×", None, "his system with disks had older processors",
        ),
        _throughput("throughput: all in memory against a third, on flash", (21_475, 36_314), variants, _ONE_READ),
        Claim(
            "power hardly depends on the device if all is in memory", "67,713, 70,049, 72,111",
            f"{geometric_mean(device.values()):.2f} × with flash", abs(geometric_mean(device.values()) - 1) < 0.1,
            "the first reads of a table",
        ),
        Claim(
            "nor does the device matter to any query then, by a quarter", "yes", _count(differing, device),
            None, "times of some tens of milliseconds, each measured once: what differs may be chance",
        ),
        Claim(
            "queries 2 and 12 gain most from flash", "2, 12", ", ".join(largest), set(largest) == {"Q2", "Q12"}, _PLANS,
        ),
        *_by_dop(_queries(records["dop"])),
    ]  # fmt: skip


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    queries = _queries(records["power"])
    seconds = {variant.name: _seconds(queries, variant) for variant in queries.variants}
    base = seconds[THIRD_DISKS]
    series = {
        name: [base[query] / seconds[name][query] if query in seconds[name] else None for query in base]
        for name in (ALL_DISKS, THIRD_FLASH, ALL_FLASH)
    }
    title = f"Times faster than with {THIRD_DISKS}"
    return lines(title, "×", [query.removeprefix("Q") for query in base], series, joined=False)


def _by_dop(queries: QueryComparison) -> list[Claim]:
    [variant] = queries.variants
    alone, both = (_seconds(queries, variant, dop) for dop in (1, 2))
    times = _times(alone, both)
    slower = [query for query, gain in times.items() if gain < 1 / SLOWER]
    surprise = "“nasty surprises can and do occur”"
    return [
        Claim(
            "queries are slower by a tenth with DOP 2 than with 1",
            surprise,
            _count(slower, times) + ", medians of three",
            None,
            "a query takes some 50 ms, of which a tenth more may be chance",
        ),
        Claim("queries are slower with DOP 4 than with 2", surprise, "–", None, "the server has two cores"),
    ]


def _queries(records: Sequence[Record]) -> QueryComparison:
    queries = summarise(records).queries
    assert queries is not None
    return queries


def _seconds(queries: QueryComparison, variant: QueryVariant, dop: int | None = None) -> dict[str, float]:
    """Return the time of every query that ended, at the first degree of parallelism if none is given."""
    cells = {query: variant.cell(query, dop or queries.dops[0]) for query in queries.queries}
    return {query: cell.seconds for query, cell in cells.items() if cell and cell.seconds}


def _times(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return how many times faster each query became."""
    return {query: seconds / after[query] for query, seconds in before.items() if query in after}


def _count(names: Sequence[str], queries: Mapping[str, float]) -> str:
    return f"{len(names)} of {len(queries)}" + (f" ({', '.join(names)})" if 0 < len(names) < 7 else "")


def _near(names: Sequence[str], theirs: int) -> bool:
    return abs(len(names) - theirs) <= NEAR


def _power(text: str, theirs: tuple[int, int], times: Mapping[str, float], why: str) -> Claim:
    """Return a claim on the geometric mean of the queries: power rounds each up to 0.1 s, which is too coarse here."""
    published, ratio = theirs[1] / theirs[0], geometric_mean(times.values())
    return Claim(text, f"{published:.2f} ×", f"{ratio:.2f} ×", about(ratio - 1, published - 1), why)


def _throughput(text: str, theirs: tuple[int, int], variants: Mapping[str, QueryVariant], why: str) -> Claim:
    published = theirs[1] / theirs[0]
    before, after = (variants[name].throughput for name in (THIRD_FLASH, ALL_FLASH))
    if not before or not after:
        return Claim(text, f"{published:.2f} ×", "–", None, "a query did not end")
    return Claim(text, f"{published:.2f} ×", f"{after / before:.2f} ×", about(after / before - 1, published - 1), why)
