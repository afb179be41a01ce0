"""The wording of findings on runs of queries."""

from collections.abc import Mapping

from stallmark.analysis.finding import Finding
from stallmark.analysis.queries.findings import MANY
from stallmark.analysis.queries.summary import QueryKind
from stallmark.format import factor as times
from stallmark.format import listed, number
from stallmark.report.text import clause, says

FIGURES = {"power": "query power", "throughput": "query throughput", "composite": "composite of both"}


@says(QueryKind.QUERY_FAILED)
def _(figure: str, query: str, error: str | None, timeout: bool, others: int) -> str:
    how = "took longer than its timeout" if timeout else f"failed: {error}"
    more = f" (and {others} more)" if others else ""
    return f"The {FIGURES[figure]} is not computed, because {query} {how}{more}."


@says(QueryKind.PHASE_CUT)
def _(figure: str) -> str:
    return f"The {FIGURES[figure]} is not computed, because the {figure} run was not finished."


@says(QueryKind.LACKS)
def _(run: str, because: Finding) -> str:
    return f"{run}: {clause(because)}."


@says(QueryKind.FIGURE)
def _(figure: str, variants: list[str], values_per_h: list[float]) -> str:
    if len(variants) == 1:
        return f"The {FIGURES[figure]} of {variants[0]} is {number(values_per_h[0])} (derived from TPC-H, not QphH)."
    (low, high), (least, most) = variants, values_per_h
    return (
        f"The {FIGURES[figure]} (derived from TPC-H, not QphH) lies between {number(least)} in {low} and "
        f"{number(most)} in {high} ({times(most / least)})."
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
) -> str:
    parts = []
    if faster:
        parts.append(f"{faster} {_are(faster)} faster (most of all {_ratios(fastest)})")
    if alike:
        parts.append(f"{alike} hardly change{'s' * (alike == 1)}")
    if slower:
        parts.append(f"{slower} {_are(slower)} slower (most of all {_ratios(slowest)})")
    return (
        f"Queries in {variant} take {number(ratio)} of the time in {baseline} (geometric mean of {queries}): "
        f"{', '.join(parts)}."
    )


@says(QueryKind.PLANS)
def _(queries: list[str], variant: str, baseline: str) -> str:
    has = "has" if len(queries) == 1 else "have"
    return (
        f"{listed(queries)} {has} another plan in {variant} than in {baseline}: their run times compare plans as well."
    )


@says(QueryKind.PARALLEL)
def _(variant: str | None, dops: list[int], ratio: float, queries: int, slower: list[str], serial: int) -> str:
    where = f" in {variant}" if variant else ""
    worse = f"; {listed(slower[:MANY])} {'gets' if len(slower) == 1 else 'get'} slower" if slower else ""
    alone = f"; {serial} of {queries} run serially all the same" if serial else ""
    return (
        f"At a degree of parallelism of {dops[1]} queries{where} take {number(ratio)} of the time at {dops[0]} "
        f"(geometric mean of {queries}){worse}{alone}."
    )


@says(QueryKind.FEW_RUNS)
def _(runs: int) -> str:
    return f"With {'one run' if runs == 1 else f'{runs} runs'} per variant this is indicative only."


@says(QueryKind.NO_TPC_RESULT)
def _() -> str:
    return (
        "Query power, query throughput and their composite follow TPC-H’s formulas and are no QphH: the refresh sets "
        "are different, and nobody has audited the runs."
    )


@says(QueryKind.SMALL_SCALE)
def _(factor: float) -> str:
    return (
        f"A scale factor of {factor:g} is for trying out: its data fit in any memory, and its queries take less than "
        "the tenth of a second that times are rounded to."
    )


@says(QueryKind.DOPS_IN_TURN)
def _() -> str:
    return (
        "Degrees of parallelism were tried one after the other: what an earlier one left in the pool helps the next, "
        "so look at the reads beside the times."
    )


@says(QueryKind.OTHER_PARAMETERS)
def _() -> str:
    return "Each stream gives the same query other parameters: a mean over streams is over several questions."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _ratios(queries: Mapping[str, float]) -> str:
    return listed([f"{query} {times(ratio)}" for query, ratio in queries.items()])


CONCURRENT_STREAMS = (
    "Queries per hour: of all streams together, those that ended within the measured interval; no TPC figure. A "
    "query's time is the geometric mean of its executions (how many: in brackets), in seconds."
)
