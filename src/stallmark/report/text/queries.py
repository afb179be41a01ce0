"""The wording of findings on runs of queries."""

from collections.abc import Mapping, Sequence

from stallmark.analysis.finding import Kind
from stallmark.analysis.queries import MANY, QueryKind
from stallmark.analysis.read.times import ReadKind
from stallmark.format import factor as times
from stallmark.format import listed, number
from stallmark.report.text import Format, Template, indicative, says

FIGURES = {"power": "query power", "throughput": "query throughput", "composite": "composite of power and throughput"}


SENTENCES: Mapping[Kind, str] = {
    ReadKind.PHASE_CUT: "The {figure:figure} is not computed, because the {figure} run was not finished.",
    QueryKind.LACKS: "{run}: {because:clause}.",
    QueryKind.NO_TPC_RESULT: (
        "Query power, query throughput and their composite follow TPC-H’s formulas and are not QphH: the refresh sets "
        "are different, and the runs are not audited."
    ),
    QueryKind.DOPS_IN_TURN: (
        "Degrees of parallelism were tried one after the other: pages that an earlier one left in the pool help the "
        "next, so compare reads as well as times."
    ),
    QueryKind.OTHER_PARAMETERS: (
        "Each stream runs a query with different parameters: a mean over streams is over several sets of parameters."
    ),
}
FORMATS: Mapping[str, Format] = {"figure": FIGURES.__getitem__}


@says(ReadKind.QUERY_FAILED)
def _(figure: str, query: str, error: str | None, timeout: bool, others: int) -> str:
    how = "took longer than its timeout" if timeout else f"failed: {error}"
    more = f" (and {others} more)" if others else ""
    return f"The {FIGURES[figure]} is not computed, because {query} {how}{more}."


@says(QueryKind.FIGURE)
def _(figure: str, variants: list[str], values_per_h: list[float], fewest_runs: int) -> str:
    if len(variants) == 1:
        return f"The {FIGURES[figure]} of {variants[0]} is {number(values_per_h[0])} (derived from TPC-H, not QphH)."
    (low, high), (least, most) = variants, values_per_h
    return (
        f"The {FIGURES[figure]} (derived from TPC-H, not QphH) is between {number(least)} in {low} and {number(most)} "
        f"in {high} ({times(most / least)}){indicative(fewest_runs)}."
    )


@says(QueryKind.RELATIVE)
def _(
    variant: str,
    baseline: str,
    ratio: float,
    queries: int,
    faster: int,
    slower: int,
    alike: int,
    fastest: Mapping[str, float],
    slowest: Mapping[str, float],
    fewest_runs: int,
) -> str:
    parts = []
    if faster:
        parts.append(f"{faster} {_are(faster)} faster (most of all {_ratios(fastest)})")
    if alike:
        parts.append(f"{alike} barely change{'s' * (alike == 1)}")
    if slower:
        parts.append(f"{slower} {_are(slower)} slower (most of all {_ratios(slowest)})")
    return (
        f"Queries in {variant} take {times(ratio)} as long as in {baseline} (geometric mean of {queries}): "
        f"{', '.join(parts)}{indicative(fewest_runs)}."
    )


@says(QueryKind.PLANS)
def _(queries: list[str], variant: str, baseline: str) -> str:
    has = "has" if len(queries) == 1 else "have"
    return (
        f"{listed(queries)} {has} a different plan in {variant} than in {baseline}: their run times compare plans as "
        "well."
    )


@says(QueryKind.PARALLEL)
def _(
    variant: str | None, dops: list[int], ratio: float, queries: int, slower: list[str], serial: int, fewest_runs: int
) -> str:
    where = f" in {variant}" if variant else ""
    worse = f"; {listed(slower[:MANY])} {'gets' if len(slower) == 1 else 'get'} slower" if slower else ""
    alone = f"; {serial} of {queries} still run serially" if serial else ""
    return (
        f"With a degree of parallelism of {dops[1]}, queries{where} take {times(ratio)} as long as at {dops[0]} "
        f"(geometric mean of {queries}){worse}{alone}{indicative(fewest_runs)}."
    )


@says(QueryKind.FEW_RUNS)
def _(runs: int) -> str:
    return f"With {'one run' if runs == 1 else f'{runs} runs'} per variant this is indicative only."


@says(QueryKind.ROUNDED_UP)
def _(variants: dict[str, int]) -> str:
    counts = [f"{count} in {variant}" for variant, count in variants.items()]
    return (
        f"Queries took less than a tenth of a second, and query power counts them as a tenth ({', '.join(counts)}): "
        "with their actual times it would be higher. Compare times, or choose a larger scale factor."
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _ratios(queries: Mapping[str, float]) -> str:
    return listed([f"{query} {times(ratio)}" for query, ratio in queries.items()])


CONCURRENT_STREAMS = (
    "Queries per hour: those of all streams that ended within the measured interval; not a TPC figure. A query's time "
    "is the geometric mean of its executions (their number in brackets), in seconds."
)


run_time_method = Template("Seconds from sending a query to its complete answer ({phase}).")


relative_method = Template(
    "Run time of each query divided by its run time in {baseline} ({phase}); below 1 is faster. Mean: geometric "
    "mean of all queries, without refreshes. Hatched: the query’s plan is different."
)


READS = (
    "Pages that were not in the pool, over all workers of a query, as the server counted them, without temporary files."
)
IO_WAITS = (
    "The query’s waiting time for reads and writes of data and temporary files, as reported by the server. Several "
    "workers wait at once, so it may exceed the run time."
)
RELATIVE_READING = "Bars below the line are faster, bars above it slower; hatched bars have a different plan."
PARALLELISM = (
    "Run time over the allowed number of processes or threads per query, log scale; the table of all figures has the "
    "actual number."
)


figures_note = Template(
    "Power, throughput and composite are derived from TPC-H and not QphH: queries per hour times the scale "
    "factor. Run time and the columns to its right: {phase}. Relative: geometric mean of the queries’ run times "
    "against {baseline}; below 1 is faster."
)


run_times_note = Template(
    "Run times are seconds from sending a query to its complete answer; the geometric mean of several runs or "
    "streams. Plan: whether it has the same shape as in {baseline} (operators, tables, indexes)."
)


parallelism_note = Template("With a degree of parallelism of {degree}; the other degrees are below.")


EXECUTIONS = (
    "Means of an execution. Pages are of 8 KiB, over all workers; logical: accessed, in the pool or not. Waits are "
    "summed over the workers of a query, so they may exceed its run time. An en dash: not reported by the server."
)


driver_gap = Template(
    "Between the end of one query and the start of the next the driver took {mean_ms:number} ms on average and "
    "{most_ms:number} ms at most."
)


figures_in_brief = Template(
    "Power, throughput and composite: derived from TPC-H, not QphH. Relative: geometric mean of run times against "
    "{baseline} ({phase})."
)


relative_mean = Template("{variant}: geometric mean {ratio} over {queries} queries.")


not_measured = Template("{variant}: not measured.")


most_in = Template("{variant}: most in {query}, {most:number} {unit}.")


def by_parallelism(variant: str, times: Sequence[tuple[int, float | None]]) -> str:
    return f"{variant}: {', '.join(f'{number(seconds)} s at {dop}' for dop, seconds in times)}."


OTHER_PLAN = "* the query’s plan differs from that in A."


def letters(variants: Sequence[str]) -> str:
    """Return the line that maps letters to variants."""
    return f"{'; '.join(variants)}. Next to the seconds: the ratio to A."
