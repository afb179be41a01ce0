"""A few honest sentences on runs of queries, most important first."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.queries.figures import geometric_mean
from stallmark.analysis.queries.summary import REFRESH, QueryCell, QueryComparison, QueryVariant
from stallmark.analysis.summary import RunSummary
from stallmark.format import factor, listed, number
from stallmark.stats.thresholds import REPLICATES, SAME

MANY = 4  # queries that a sentence names

_FIGURES = {"power": "query power", "throughput": "query throughput", "composite": "composite of both"}


def query_findings(compared: QueryComparison, runs: Sequence[RunSummary]) -> list[str]:
    return list(_findings(compared, runs))


def query_cautions(compared: QueryComparison) -> list[str]:
    found = [
        "Query power, query throughput and their composite follow TPC-H's formulas and are no QphH: the refresh sets "
        "are other ones, and nobody has audited the runs."
    ]
    if compared.factor < 1:
        found.append(
            f"A scale factor of {compared.factor:g} is for trying out: its data fit in any memory, and its queries "
            "take less than the tenth of a second that times are rounded to."
        )
    if len(compared.dops) > 1:
        found.append(
            "Degrees of parallelism were tried one after the other: what an earlier one left in the pool helps the "
            "next, so look at the reads beside the times."
        )
    if compared.phase == "throughput":
        found.append("Streams put other parameters into the same query: a mean over them is of several questions.")
    return found


def _findings(compared: QueryComparison, runs: Sequence[RunSummary]) -> Iterator[str]:
    broken = [run.title for run in runs if any(c.holds is False for c in run.conditions)]
    if broken:
        yield f"The data were wrong after {listed(broken)}: no figure of such a run means anything."
    for run in runs:
        for lacks in (run.queries.figures.power_lacks, run.queries.figures.throughput_lacks) if run.queries else ():
            if lacks:
                yield f"{run.title}: {lacks}"
    yield from _figures(compared)
    for variant in compared.variants[1:]:
        yield from _against_the_baseline(compared, variant)
    for variant in compared.variants[1:]:
        yield from _plans(compared, variant)
    for variant in compared.variants:
        yield from _parallel(compared, variant)
    fewest = min((variant.runs for variant in compared.variants), default=0)
    if len(compared.variants) > 1 and fewest < REPLICATES:
        each = "one run" if fewest == 1 else f"{fewest} runs"
        yield f"With {each} per variant this is indicative only."


def _figures(compared: QueryComparison) -> Iterator[str]:
    for name, said in _FIGURES.items():
        known = [(variant, value) for variant in compared.variants if (value := getattr(variant, name)) is not None]
        if len(known) == 1:
            yield f"The {said} of {known[0][0].name} is {number(known[0][1])} (derived from TPC-H, not QphH)."
        elif known:
            low, high = (choose(known, key=lambda one: one[1]) for choose in (min, max))
            yield (
                f"The {said} (derived from TPC-H, not QphH) lies between {number(low[1])} in {low[0].name} and "
                f"{number(high[1])} in {high[0].name} ({factor(high[1] / low[1])})."
            )


def _against_the_baseline(compared: QueryComparison, variant: QueryVariant) -> Iterator[str]:
    cells = [
        cell for cell in variant.cells
        if cell.relative and cell.query not in REFRESH and cell.dop == compared.dops[0]
    ]  # fmt: skip
    if not cells or variant.relative is None:
        return
    faster = sorted((c for c in cells if (c.relative or 1) < 1 - SAME), key=lambda cell: cell.relative or 0)
    slower = sorted((c for c in cells if (c.relative or 1) > 1 + SAME), key=lambda cell: -(cell.relative or 0))
    same = len(cells) - len(faster) - len(slower)
    parts = []
    if faster:
        parts.append(f"{len(faster)} {_are(faster)} faster (most {_named(faster)})")
    if same:
        parts.append(f"{same} hardly change{'s' * (same == 1)}")
    if slower:
        parts.append(f"{len(slower)} {_are(slower)} slower (most {_named(slower)})")
    yield (
        f"Queries in {variant.name} take {number(variant.relative)} of the time in {compared.baseline} (geometric mean "
        f"of {variant.compared}): {', '.join(parts)}."
    )


def _plans(compared: QueryComparison, variant: QueryVariant) -> Iterator[str]:
    changed = list(dict.fromkeys(cell.query for cell in variant.cells if cell.plan_changed))
    if changed:
        has = "has" if len(changed) == 1 else "have"
        yield (
            f"{listed(changed)} {has} another plan in {variant.name} than in {compared.baseline}: these run times "
            "compare plans as well."
        )


def _parallel(compared: QueryComparison, variant: QueryVariant) -> Iterator[str]:
    known = [dop for dop in compared.dops if dop is not None]
    if len(known) < 2:
        return
    low, high = min(known), max(known)
    ratios = {}
    for query in compared.queries:
        one, many = variant.cell(query, low), variant.cell(query, high)
        if one and many and one.seconds and many.seconds:
            ratios[query] = many.seconds / one.seconds
    if not ratios:
        return
    slower = [query for query, ratio in ratios.items() if ratio > 1 + SAME]
    surprise = f"; {listed(slower[:MANY])} {'gets' if len(slower) == 1 else 'get'} slower" if slower else ""
    serial = [
        query for query in ratios
        if (cell := variant.cell(query, high)) and cell.actual_dop is not None and cell.actual_dop < 1.5
    ]  # fmt: skip
    alone = f"; {len(serial)} of {len(ratios)} run serially all the same" if serial else ""
    where = f" in {variant.name}" if len(compared.variants) > 1 else ""
    yield (
        f"At a degree of parallelism of {high} queries{where} take {number(geometric_mean(list(ratios.values())))} of "
        f"the time at {low} (geometric mean of {len(ratios)}){surprise}{alone}."
    )


def _are(cells: Sequence[QueryCell]) -> str:
    return "is" if len(cells) == 1 else "are"


def _named(cells: Sequence[QueryCell]) -> str:
    return listed([f"{cell.query} {factor(cell.relative or 0)}" for cell in cells[:MANY]])
