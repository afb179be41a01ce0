"""Joe Chang, 2009: 22 queries with a third of the data in memory and with all of it, on disks and on flash."""

from collections.abc import Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim

from stallmark.analysis.experiment import summarise
from stallmark.analysis.queries.summary import QueryVariant
from stallmark.record.reader import Record

SCENARIO, SETTINGS = "power-memory-storage", ()
THIRD_DISKS, ALL_DISKS, THIRD_FLASH, ALL_FLASH = (
    "a third in memory, disks", "all in memory, disks", "a third in memory, flash", "all in memory, flash",
)  # fmt: skip
GAIN, LITTLE, SLOWER = 2.5, 1.1, 1.05
"""Times a query is faster, or slower, from which on it counts as one that gains, hardly changes, gets slower."""


def claims(records: Sequence[Record]) -> list[Claim]:
    queries = summarise(records).queries
    assert queries is not None
    by_name = {variant.name: _seconds(variant) for variant in queries.variants}
    gain = _ratio(by_name[THIRD_DISKS], by_name[ALL_DISKS])
    flash = _ratio(by_name[THIRD_DISKS], by_name[THIRD_FLASH])
    device = _ratio(by_name[ALL_DISKS], by_name[ALL_FLASH])
    gaining = [name for name, times in gain.items() if times >= GAIN]
    steady = [name for name, times in gain.items() if 1 / LITTLE <= times <= LITTLE]
    slower = [name for name, times in gain.items() if times < 1 / SLOWER]
    apart = max(max(times, 1 / times) for times in device.values())
    power = {variant.name: variant.power for variant in queries.variants}
    closeness = _apart(power[ALL_DISKS], power[ALL_FLASH])
    largest = sorted(flash, key=lambda name: -flash[name])[:2]
    return [
        Claim("memory for all the data: queries that gain 2.5 ×", "9 of 22", f"{len(gaining)} of {len(gain)}",
              5 <= len(gaining) <= 13, _SCALE),
        Claim("queries that hardly change", "5", f"{len(steady)}", 2 <= len(steady) <= 9, _SCALE),
        Claim("a query gets slower", "1", f"{len(slower)}" + (f" ({', '.join(slower)})" if slower else ""), len(slower) <= 2, ""),
        Claim("with all in memory the device hardly matters to the power", "50.7 to 51.4 thousand",
              "–" if closeness is None else f"{closeness:.0%} apart", None if closeness is None else closeness < 0.1, ""),
        Claim("nor to any query", "yes", f"{apart:.2f} × at most", apart < 1.25, "queries of some ms, one run each"),
        Claim("flash with a third in memory comes near to all in memory on disks", "28.8 of 50.7 thousand",
              _share(power[THIRD_FLASH], power[ALL_DISKS]), None, "their two systems had other processors"),
        Claim("queries 2 and 12 depend on the device most", "2, 12", ", ".join(largest), set(largest) == {"2", "12"},
              "PostgreSQL joins them by hashing at this scale, and reads by scans"),
        Claim("DOP 1, 2, 4: some queries get slower", "yes", "–", None, "two cores, shared with the driver"),
    ]  # fmt: skip


_SCALE = "other plans and a scale of a thousandth: most of a query's time is CPU here"


def chart(records: Sequence[Record]) -> str:
    queries = summarise(records).queries
    assert queries is not None
    by_name = {variant.name: _seconds(variant) for variant in queries.variants}
    base = by_name[THIRD_DISKS]
    series = {
        name: [base[query] / by_name[name][query] if query in by_name[name] else None for query in base]
        for name in (ALL_DISKS, THIRD_FLASH, ALL_FLASH)
    }
    return lines("Times faster than with a third in memory, disks", "×", list(base), series)


def _seconds(variant: QueryVariant) -> dict[str, float]:
    return {cell.query: cell.seconds for cell in variant.cells if cell.seconds and cell.query.isdigit()}


def _ratio(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {query: seconds / after[query] for query, seconds in before.items() if query in after}


def _apart(one: float | None, other: float | None) -> float | None:
    return abs(one / other - 1) if one and other else None


def _share(part: float | None, whole: float | None) -> str:
    return f"{part / whole:.0%} of it" if part and whole else "–"
