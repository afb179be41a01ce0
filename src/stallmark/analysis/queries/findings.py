"""The conclusions from runs of queries, most important first."""

from collections.abc import Iterator, Mapping, Sequence

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.summary import PairKind
from stallmark.analysis.conclusions import data_wrong
from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.queries.summary import QueryCell, QueryComparison, QueryKind, QueryVariant
from stallmark.analysis.read.queries import REFRESH
from stallmark.analysis.read.query_figures import SHORTEST_S, geometric_mean
from stallmark.analysis.run import RunSummary
from stallmark.stats.thresholds import REPLICATES, SAME

MANY = 4  # queries that a finding names
FIGURES = ("power", "throughput", "composite")


def query_cautions(compared: QueryComparison) -> list[Finding]:
    found = [caution(QueryKind.NO_TPC_RESULT)]
    if rounded_up := _rounded_up(compared):
        found.append(caution(QueryKind.ROUNDED_UP, variants=rounded_up))
    if len(compared.dops) > 1:
        found.append(caution(QueryKind.DOPS_IN_TURN))
    if compared.phase == "throughput":
        found.append(caution(QueryKind.OTHER_PARAMETERS))
    return found


def _rounded_up(compared: QueryComparison) -> dict[str, int]:
    """Return how many queries were quicker than power can tell, of each variant that has power and such queries."""
    quick = {
        variant.name: sum(
            cell.seconds is not None and cell.seconds < SHORTEST_S
            for cell in variant.cells
            if cell.query not in REFRESH
        )
        for variant in compared.variants
        if variant.power is not None
    }
    return {name: count for name, count in quick.items() if count}


def query_findings(compared: QueryComparison, runs: Sequence[RunSummary], claims: Claims) -> Iterator[Finding]:
    yield from data_wrong(runs)
    for run in runs:
        for lacks in (run.queries.figures.power_lacks, run.queries.figures.throughput_lacks) if run.queries else ():
            if lacks:
                yield caution(QueryKind.LACKS, run=run.title, because=lacks)
    alike: list[QueryVariant] = []
    for variant in compared.variants:
        if not any(claims.reasons_against(one.name, variant.name) for one in alike):
            alike.append(variant)
        elif reasons := claims.reasons_against(compared.baseline, variant.name):
            names = {"a": compared.baseline, "b": variant.name}
            yield caution(PairKind.NOT_COMPARABLE, **names, step=None, reasons=reasons)
    fewest = min((variant.runs for variant in compared.variants), default=0)
    for name in FIGURES:
        known = [(variant.name, value) for variant in alike if (value := getattr(variant, name)) is not None]
        if known:
            ends = [choose(known, key=lambda one: one[1]) for choose in (min, max)][: len(known)]
            ends_of, values = zip(*ends, strict=True)
            facts = {"variants": list(ends_of), "values_per_h": list(values), "fewest_runs": fewest}
            yield info(QueryKind.FIGURE, figure=name, **facts)
    for variant in compared.variants[1:]:
        yield from _against_the_baseline(compared, variant)
    for variant in compared.variants[1:]:
        if changed := list(dict.fromkeys(cell.query for cell in variant.cells if cell.plan_changed)):
            yield caution(QueryKind.PLANS, queries=changed, variant=variant.name, baseline=compared.baseline)
    for variant in compared.variants:
        yield from _parallel(compared, variant)
    if len(compared.variants) > 1 and fewest < REPLICATES:
        yield caution(QueryKind.FEW_RUNS, runs=fewest)


def _against_the_baseline(compared: QueryComparison, variant: QueryVariant) -> Iterator[Finding]:
    cells = [
        cell for cell in variant.cells
        if cell.relative and cell.query not in REFRESH and cell.dop == compared.dops[0]
    ]  # fmt: skip
    if not cells or variant.relative is None:
        return
    faster = sorted((c for c in cells if (c.relative or 1) < 1 - SAME), key=lambda cell: cell.relative or 0)
    slower = sorted((c for c in cells if (c.relative or 1) > 1 + SAME), key=lambda cell: -(cell.relative or 0))
    yield info(
        QueryKind.RELATIVE,
        variant=variant.name,
        baseline=compared.baseline,
        ratio=variant.relative,
        queries=variant.compared,
        fewest_runs=min(variant.runs, compared.baseline_variant.runs),
        faster=len(faster),
        slower=len(slower),
        alike=len(cells) - len(faster) - len(slower),
        fastest=_ratios(faster),
        slowest=_ratios(slower),
    )


def _parallel(compared: QueryComparison, variant: QueryVariant) -> Iterator[Finding]:
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
    serial = [
        query for query in ratios
        if (cell := variant.cell(query, high)) and cell.actual_dop is not None and cell.actual_dop < 1.5
    ]  # fmt: skip
    yield info(
        QueryKind.PARALLEL,
        variant=variant.name if len(compared.variants) > 1 else None,
        dops=[low, high],
        ratio=geometric_mean(list(ratios.values())),
        queries=len(ratios),
        fewest_runs=variant.runs,
        slower=[query for query, ratio in ratios.items() if ratio > 1 + SAME],
        serial=len(serial),
    )


def _ratios(cells: Sequence[QueryCell]) -> Mapping[str, float]:
    return {cell.query: cell.relative or 0.0 for cell in cells[:MANY]}
