"""The findings of an experiment of several loads, most important first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stallmark.analysis.ceiling import CeilingKind, MailIoKind
from stallmark.analysis.compare.claims import decide
from stallmark.analysis.compare.summary import Claim, PairKind
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.finding import ExperimentKind, Finding, Severity, caution, info, invalid
from stallmark.analysis.loads.points import CellsStep, LoadClaims, LoadPoint, Penalty, WholePoint
from stallmark.analysis.loads.step import LoadsKind
from stallmark.analysis.metrics import METRICS, THROUGHPUT
from stallmark.analysis.points import group
from stallmark.analysis.validity.service_level import LevelOutcome
from stallmark.stats.thresholds import HOST_FREE, LOADS_READ, SAME

MOST_VARIANTS = 3
"""Variants that one sentence can name; of more it names the two furthest apart."""


def conclusions(
    points: Sequence[LoadPoint],
    steps: Sequence[WholePoint],
    cost: Sequence[Penalty],
    cells: Sequence[CellsStep],
    views: Mapping[str, ExperimentSummary],
    claims: LoadClaims,
    mixed: Finding | None = None,
) -> Iterator[Finding]:
    """Yield what follows from the loads beside each other. `mixed`: the reason not to compare the runs at all."""
    if broken := next((one for view in views.values() for one in view.findings if _is_broken(one)), None):
        yield broken
    if not points:
        yield invalid(ExperimentKind.NOTHING_MEASURED)
        return
    if mixed:
        yield mixed
        return
    yield from (one for view in views.values() for one in view.findings if isinstance(one.kind, CeilingKind))
    yield from _together(cost)
    yield from _cells(cells)
    yield from _verdicts(points, views)
    if not any(view.comparison for view in views.values()):
        yield from _variants(points, claims, bool(cost))
    yield from _incomparable_variants(views)
    if not cost and not cells and not all(one.first.alone for one in points):
        yield from _at_once(points)
    yield from (one for view in views.values() for one in view.findings if isinstance(one.kind, MailIoKind))
    yield from _levels(points)
    yield from _host(cells)
    yield from _reads(steps)
    yield from _late(points)
    yield from _ended(points)


def answer_of(found: Sequence[Finding]) -> Finding | None:
    """Return the finding that stands above all others: what makes the figures worthless, else the first."""
    return next((one for one in found if one.severity is Severity.INVALID), found[0] if found else None)


def of_load(
    name: str, points: Sequence[LoadPoint], claims: LoadClaims, cost: Sequence[Penalty], cells: Sequence[CellsStep]
) -> Finding | None:
    """Return the finding on one load that its own page begins with; None where none is on it alone."""
    own = [one for one in points if one.first.load == name]
    found = [
        *_together([one for one in cost if one.load == name]),
        *_cells([CellsStep(s.variant, s.cells, s.whole, [x for x in s.loads if x.load == name], s.row) for s in cells]),
        *_variants(own, claims, bool(cost)),
    ]
    return found[0] if found else None


def _is_broken(one: Finding) -> bool:
    return one.kind in (ExperimentKind.DATA_WRONG, ExperimentKind.NOTHING_MEASURED)


def _together(cost: Sequence[Penalty]) -> Iterator[Finding]:
    """Say what the loads cost each other: of a load whose rate is asked for by its latency."""
    for step in group(cost, lambda one: one.step):
        sound = [one for one in step if not one.doubtful]
        told = [
            (one, what, claim.ratio, claim.verdict)
            for one in sound
            for what, claim in [_told(one)]
            if claim.ratio is not None
        ]
        by_variant = group(told, lambda one: one[0].variant)
        if not by_variant:
            continue
        several = len(by_variant) > 1
        chosen = _ends(by_variant, lambda some: float(np.mean([_kept(what, ratio) for _, what, ratio, _ in some])))
        yield info(
            LoadsKind.TOGETHER,
            step=step[0].step if len({one.step for one in cost}) > 1 else None,
            variants=[
                [
                    some[0][0].variant if several else None,
                    [[one.load, what, ratio, verdict] for one, what, ratio, verdict in some],
                ]
                for some in chosen
            ],
            left_out=len(by_variant) - len(chosen),
            in_doubt=list(dict.fromkeys(one.load for one in step if one.doubtful)),
            fewest_runs=min(one.runs for one, *_ in told),
        )


def _told(one: Penalty) -> tuple[str, Claim]:
    """Return the claim on a load beside the others: of one whose rate is asked for on its latency."""
    if one.open_loop:
        return "latency", decide(METRICS["latency"], one.latency)
    return "rate", decide(THROUGHPUT, one.rate)


def _kept(what: str, ratio: float) -> float:
    """Return a ratio of which more is better, on a logarithmic scale."""
    return float(np.log(ratio)) * (-1 if what == "latency" else 1)


def _ends(some: list[Any], value: Any) -> list[Any]:
    """Return all of a few, else the least and the most by `value`."""
    return some if len(some) <= MOST_VARIANTS else [min(some, key=value), max(some, key=value)]


def _cells(cells: Sequence[CellsStep]) -> Iterator[Finding]:
    by_variant = group(cells, lambda one: one.variant)
    for same in by_variant:
        first, last = same[0], same[-1]
        loads = [[one.load, one.scaling * last.cells / first.cells, one.scaling] for one in last.loads if one.scaling]
        if last.cells > first.cells and loads:
            yield info(
                LoadsKind.CELLS,
                variant=same[0].variant if len(by_variant) > 1 else None,
                cells=[first.cells, last.cells],
                loads=loads,
                in_doubt=[one.load for one in last.loads if not one.scaling],
                fewest_runs=min(len(one.point.runs) for step in (first, last) for one in step.loads),
            )


def _verdicts(points: Sequence[LoadPoint], views: Mapping[str, ExperimentSummary]) -> Iterator[Finding]:
    """Say in which loads one variant is better than another, in steps of several loads that were repeated."""
    shared = {same[0].first.step for same in group(points, lambda one: one.first.step) if not same[0].first.alone}
    pairs = [(name, pair) for name, view in views.items() if view.comparison for pair in view.comparison.pairs]
    for same in group([one for one in pairs if one[1].step in shared], lambda one: (one[1].a, one[1].b, one[1].step)):
        pair = same[0][1]
        yield info(
            LoadsKind.VERDICTS,
            a=pair.a,
            b=pair.b,
            step=pair.step,
            loads=[[name, one.claim.verdict, one.claim.ratio, one.primary.name] for name, one in same],
        )


def _incomparable_variants(views: Mapping[str, ExperimentSummary]) -> Iterator[Finding]:
    """Yield each pair of variants that must not be compared, once for all loads."""
    found = [one for view in views.values() for one in view.findings if one.kind is PairKind.NOT_COMPARABLE]
    yield from (same[0] for same in group(found, lambda one: (one.facts["a"], one.facts["b"])))


def _variants(points: Sequence[LoadPoint], claims: LoadClaims, alone: bool) -> Iterator[Finding]:
    """Compare variants in the last step that they share, load by load, as far as they may be compared with each
    other."""
    loads = []
    for same in group(points, lambda one: one.first.load):
        shown = [one for one in same if one.rate and not one.doubts and not (alone and one.first.alone)]
        by_step = [some for some in group(shown, lambda one: one.first.step) if len(some) > 1]
        if not by_step or len({one.first.emulated for one in by_step[-1]}) > 1 or by_step[-1][0].first.open_loop:
            continue
        alike = claims.comparable_points(by_step[-1])
        best, worst = (choose(alike, key=lambda one: one.rate or 0.0) for choose in (max, min))
        claim, first = claims.claim(worst, best), best.first
        if len(alike) < 2 or claim.ratio is None:
            continue
        differ = claim.ratio > 1 + SAME
        names = first.variant, worst.first.variant
        loads.append([first.load, first.kind, first.count, *names, claim.ratio, claim.verdict, differ])
    if loads:
        yield info(LoadsKind.VARIANTS, loads=loads, fewest_runs=min(len(one.runs) for one in points))


def _at_once(points: Sequence[LoadPoint]) -> Iterator[Finding]:
    """Say what every load did in the last step, in the first variant."""
    variant = points[0].first.variant
    several = len({one.first.variant for one in points}) > 1
    last = [one for one in points if one.first.variant == variant][-1].first.step
    here = [one for one in points if (one.first.variant, one.first.step) == (variant, last) and one.rate is not None]
    if here:
        yield info(
            LoadsKind.AT_ONCE,
            variant=variant if several else None,
            loads=[
                [one.first.load, one.first.kind, one.first.primary, one.rate, one.mean(lambda run: run.mb_per_s)]
                for one in here
            ],
        )


def _levels(points: Sequence[LoadPoint]) -> Iterator[Finding]:
    """Say which loads kept their service level, and where they did not."""
    judged = [(one, level) for one in points if (level := one.level)]
    several = len({one.first.variant for one, _ in judged}) > 1
    loads = []
    for same in group(judged, lambda one: one[0].first.load):
        known = [(one, level) for one, level in same if level.outcome is not LevelOutcome.NOT_KNOWN]
        broken = [one.first for one, level in known if level.outcome is LevelOutcome.NOT_MET]
        by_mean = any(level.outcome is LevelOutcome.MEAN_ONLY for _, level in known)
        names = [f"{one.variant}, {one.step}" if several else one.step for one in broken]
        if known:
            unknown = len(same) - len(known)
            loads.append([same[0][0].first.load, same[0][1].limit_ms, len(known), names, by_mean, unknown])
    if loads:
        some_broken = any(names for _, _, _, names, *_ in loads)
        yield (caution if some_broken else info)(LoadsKind.LEVELS, loads=loads)


def _host(cells: Sequence[CellsStep]) -> Iterator[Finding]:
    """Say how busy the host was: the limit of a test of storage must not be its CPUs or its memory."""
    runs = [run for one in cells for run in one.whole.runs]
    cpu = max((run.cpu_busy_share for run in runs if run.cpu_busy_share is not None), default=None)
    memory = max((run.memory_share for run in runs if run.memory_share is not None), default=None)
    if cpu is None:
        return
    over = cpu > HOST_FREE or (memory or 0.0) > HOST_FREE
    unknown = sum(run.cpu_busy_share is None or run.memory_share is None for run in runs)
    facts = {"limit_share": HOST_FREE, "unknown": unknown, "runs": len(runs)}
    yield (caution if over else info)(LoadsKind.HOST, cpu_share=cpu, memory_share=memory, **facts)


def _reads(steps: Sequence[WholePoint]) -> Iterator[Finding]:
    """Say where the loads' sessions do not account for the server's reads."""
    unlike = [
        (run, io)
        for point in steps
        for run in point.runs
        if (io := run.io) and io.loads_share is not None and abs(io.loads_share - 1) > LOADS_READ
    ]
    if not unlike:
        return
    worst, io = max(unlike, key=lambda one: abs((one[1].loads_share or 1.0) - 1))
    total = io.server.reads if io.server else 1.0
    others = sorted(((io.others or {}).items()), key=lambda one: -one[1])
    yield caution(
        LoadsKind.READS_UNLIKE,
        steps=list(dict.fromkeys(step.step for step, _ in unlike)),
        share=io.loads_share,
        step=worst.step,
        others=[[process, reads / total] for process, reads in others if reads / total > LOADS_READ / 2],
    )


def _late(points: Sequence[LoadPoint]) -> Iterator[Finding]:
    """Say of each load of queries at a rate whether they waited for a stream, and in which step most."""
    found = [(one, one.late) for point in points for one in point.runs if one.late]
    several = len({one.variant for one, _ in found}) > 1
    for same in group(found, lambda one: one[0].load):
        worst, late = max(same, key=lambda one: one[1].waited / one[1].due)
        yield (caution if late.waited else info)(
            LoadsKind.QUERIES_WAITED,
            load=worst.load,
            steps=len(same),
            step=f"{worst.variant}, {worst.step}" if several else worst.step,
            due=late.due,
            waited=late.waited,
            mean_s=late.mean_s,
            worst_s=late.worst_s,
        )


def _ended(points: Sequence[LoadPoint]) -> Iterator[Finding]:
    ended = [one for point in points for one in point.doubts if one.kind is LoadsKind.RAW_ENDED]
    yield from (caution(LoadsKind.RAW_ENDED, **one.facts) for one in ended)
