"""The ceiling of a load: the highest level at which the service level held, of each variant; and the memory
that gives the throughput of flash."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any, Literal

import numpy as np

from stallmark.analysis.compare.claims import Claims, decide
from stallmark.analysis.compare.sides import ratio_of
from stallmark.analysis.compare.summary import PairKind
from stallmark.analysis.finding import Finding, Kind, caution, info
from stallmark.analysis.metrics import THROUGHPUT, Point, complete_mean, group, labels, points
from stallmark.analysis.pool_curve import PoolCurve, throughput_curve
from stallmark.analysis.prediction import demands_of, mean_prediction
from stallmark.analysis.read.io import mailboxes
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import LevelSeen
from stallmark.stats import inference
from stallmark.stats.curve_search import MonotoneCurve
from stallmark.stats.thresholds import MAILBOX_IOPS, SAME

# The values of a ceiling, from the levels that a search tried. The replicate is the run.


@dataclass(frozen=True)
class Level:
    """One tried level: the search's result for it, and the step in which it ran."""

    seen: LevelSeen
    step: StepSummary


@dataclass(frozen=True)
class Ceiling:
    """The ceiling of one run: the tried levels and the outcome of the search."""

    variant: str
    repeat: int
    of: Literal["users", "rate", "load"]
    low: float  # lower end of the requested range
    high: float
    tolerance: float
    outcome: Literal["found", "at_least", "none", "unconfirmed"] | None  # None: the run ended before
    holds: float | None  # None if no level met the limits
    breaks: float | None  # None if every level met the limits
    levels: list[Level]

    @property
    def middle(self) -> float | None:
        """Return the ceiling as one number, or None if it is not between two levels."""
        if self.outcome != "found" or self.holds is None or self.breaks is None:
            return None
        return math.sqrt(self.holds * self.breaks)

    def steps_at(self, level: float | None) -> list[StepSummary]:
        """Return the steps of a level, in the order in which the level was tried."""
        return [tried.step for tried in self.levels if tried.seen.level == level]

    @property
    def limit_step(self) -> StepSummary | None:
        """Return the step that shows the first limit: the last step of the lowest level that broke."""
        return next(reversed(self.steps_at(self.breaks)), None)

    @property
    def limit(self) -> Finding | None:
        """Return the verdict on the device at the lowest level that broke; None if its steps do not agree."""
        verdicts = [step.bottleneck.device_verdict for step in self.steps_at(self.breaks)]
        kinds = {(verdict.kind, verdict.facts.get("device")) if verdict else None for verdict in verdicts}
        return verdicts[-1] if len(kinds) == 1 else None

    @property
    def driver_bound(self) -> bool:
        """Return True if the driver was the bottleneck in a step of the lowest level that broke."""
        return any(step.validity.driver_bound for step in self.steps_at(self.breaks))

    @property
    def tps(self) -> float | None:
        """Return the mean transactions per second of the highest level that met the limits, or None without one."""
        steps = self.steps_at(self.holds)
        return sum(step.result_tps for step in steps) / len(steps) if steps else None


def ceilings(runs: Sequence[RunSummary]) -> list[Ceiling]:
    """Return the ceiling of every run that searched for one."""
    return [ceiling for run in runs for ceiling in _read_ceiling(run)]


def by_variant(all_ceilings: Sequence[Ceiling]) -> list[list[Ceiling]]:
    return group(all_ceilings, lambda ceiling: ceiling.variant)


def mean_ceiling(levels: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the ceiling over repeats: the geometric mean, with its interval by Student's t of the runs.

    Each repeat met the limits at one level and broke them at the next, and no run knows its ceiling better than these
    two levels.
    """
    logs = np.log([math.sqrt(holds * breaks) for holds, breaks in levels])
    ends: list[float] = []
    if len(logs) > 1:
        ends = [float(np.exp(end)) for end in inference.paired(np.zeros(len(logs)), logs).interval()]
    low, high = min([*ends, *(holds for holds, _ in levels)]), max([*ends, *(breaks for _, breaks in levels)])
    return float(np.exp(logs.mean())), low, high


def _read_ceiling(run: RunSummary) -> Iterator[Ceiling]:
    if (search := run.manifest.search) is None:
        return
    named = {step.name: step.searched for step in run.manifest.steps if step.searched}
    yield Ceiling(
        variant=run.steps[0].variant if run.steps else run.manifest.variant.name,
        repeat=run.manifest.repeat,
        of=search.of,
        low=search.low,
        high=search.high,
        tolerance=search.tolerance,
        outcome=search.outcome,
        holds=search.holds,
        breaks=search.breaks,
        levels=[Level(seen, step) for step in run.steps if (seen := named.get(step.step))],
    )


# Findings of a search for a ceiling: how much is carried, at which service level, what ends first, and which variant
# carries more.


class CeilingKind(Kind):
    FOUND = "ceiling_found"
    AT_LEAST = "ceiling_not_reached"
    NONE = "ceiling_below_all"
    UNCONFIRMED = "ceiling_unconfirmed"
    ENDED = "ceiling_search_ended"
    REPEATS = "ceiling_of_repeats"
    RATIO = "ceilings_compared"
    LIMIT = "limit_beyond_the_ceiling"
    DRIVER = "ceiling_of_the_driver"


ANSWERS = tuple(kind for kind in CeilingKind if kind not in (CeilingKind.DRIVER, CeilingKind.LIMIT))
_KINDS = {
    "found": CeilingKind.FOUND,
    "at_least": CeilingKind.AT_LEAST,
    "none": CeilingKind.NONE,
    "unconfirmed": CeilingKind.UNCONFIRMED,
    None: CeilingKind.ENDED,
}


def ceiling_findings(all_ceilings: Sequence[Ceiling], claims: Claims) -> Iterator[Finding]:
    """Yield variants against each other first, as far as they may be compared, then the ceiling of each, and where the
    driver was the limit."""
    variants = by_variant(all_ceilings)
    for a, b in combinations(variants, 2):
        names = a[0].variant, b[0].variant
        if reasons := claims.reasons_against(*names):
            yield caution(PairKind.NOT_COMPARABLE, a=names[0], b=names[1], step=None, reasons=reasons)
        elif ratio := _ratio(a, b):
            yield ratio
    for same in variants:
        name = same[0].variant if len(variants) > 1 else None
        if len(same) > 1 and all(ceiling.middle for ceiling in same):
            yield _repeats(same, name)
        for ceiling in same:
            repeat = ceiling.repeat if len(same) > 1 else None
            yield _ceiling_finding(ceiling, name, repeat)
            if verdict := ceiling.limit:
                facts = {"variant": name, "repeat": repeat, "of": ceiling.of, "breaks": ceiling.breaks}
                yield info(CeilingKind.LIMIT, **facts, verdict=verdict)
        for bound in group([ceiling for ceiling in same if ceiling.driver_bound], lambda ceiling: ceiling.breaks):
            facts = {"runs": len(bound), "repeats": len(same)}
            yield caution(CeilingKind.DRIVER, variant=name, of=bound[0].of, breaks=bound[0].breaks, **facts)


def _ceiling_finding(ceiling: Ceiling, variant: str | None, repeat: int | None) -> Finding:
    kind = _KINDS[ceiling.outcome]
    return (info if kind in (CeilingKind.FOUND, CeilingKind.AT_LEAST) else caution)(
        kind,
        variant=variant,
        repeat=repeat,
        of=ceiling.of,
        holds=ceiling.holds,
        breaks=ceiling.breaks,
        asked=[ceiling.low, ceiling.high],
        per_s=ceiling.tps,
        primary=ceiling.levels[0].step.throughput.primary if ceiling.levels else None,
        limits=_limits(ceiling),
        missed=missed_limits(ceiling),
        limit=ceiling.limit,
    )


def _limits(ceiling: Ceiling) -> list[list[Any]]:
    """Return the service level: for each limit its subject, the transaction, its percentile, and the limit in ms."""
    if not ceiling.levels:
        return []
    most = max((level.seen.limits for level in ceiling.levels), key=len)
    return [[limit.of, limit.transaction, limit.percentile, limit.limit_ms] for limit in most]


def missed_limits(ceiling: Ceiling) -> list[list[Any]]:
    """Return the limits that the lowest level that breaks did not keep, as `_limits`. A backlog has no limit; one of
    queries names their load in place of a transaction."""
    broken = [
        level.seen for level in ceiling.levels if level.seen.level == ceiling.breaks and level.seen.verdict != "held"
    ]
    limits = dict.fromkeys(
        (limit.of, limit.transaction, limit.percentile, limit.limit_ms)
        for seen in broken
        for limit in seen.limits
        if limit.value is not None and limit.value > limit.limit
    )
    backlog = [["backlog", None, None, None]] if any(seen.backlog and not seen.behind for seen in broken) else []
    queries = [["queries", load, None, None] for load in dict.fromkeys(load for seen in broken for load in seen.behind)]
    return [*backlog, *queries, *map(list, limits)]


def _repeats(same: Sequence[Ceiling], variant: str | None) -> Finding:
    """Return the ceiling over repeats: the geometric mean, with its interval by Student's t of the runs."""
    mean, low, high = mean_ceiling(
        [(ceiling.holds, ceiling.breaks) for ceiling in same if ceiling.holds and ceiling.breaks]
    )
    rates = [ceiling.tps for ceiling in same if ceiling.tps is not None]
    return info(
        CeilingKind.REPEATS,
        variant=variant,
        of=same[0].of,
        mean=mean,
        low=low,
        high=high,
        per_s=sum(rates) / len(rates) if rates else None,
        primary=same[0].levels[0].step.throughput.primary,
        limits=_limits(same[0]),
        runs=len(same),
    )


def _ratio(a: Sequence[Ceiling], b: Sequence[Ceiling]) -> Finding | None:
    """Return the ratio of the ceilings of two variants; None if one of them is not between two levels or may be the
    driver's, or they are of unlike things."""
    searched = [[ceiling.of, *(limit for limits in _limits(ceiling) for limit in limits)] for ceiling in (*a, *b)]
    middles_a, middles_b = ([ceiling.middle for ceiling in side] for side in (a, b))
    bound = any(ceiling.driver_bound for ceiling in (*a, *b))
    # Ceilings by different limits, or of the driver, are not comparable.
    if bound or any(spec != searched[0] for spec in searched) or not all([*middles_a, *middles_b]):
        return None
    compared = ratio_of("ceiling", a[0].of, "higher", middles_a, middles_b, paired=False)
    return info(
        CeilingKind.RATIO,
        variants=[a[0].variant, b[0].variant],
        of=a[0].of,
        levels=[compared.a, compared.b],
        ratio=compared.ratio,
        verdict=decide(THROUGHPUT, compared).verdict,
        low=compared.low,
        high=compared.high,
    )


# The I/Os of a mail store as mailboxes: those of a common profile that do as many.


class MailIoKind(Kind):
    MAILBOXES = "mailboxes"


def mailboxes_of_steps(points: Sequence[Point]) -> Iterator[Finding]:
    """Yield the mailboxes of each step, its repeats together."""
    for point in points:
        yield from _mailboxes(point.steps, labels([point], points)[0] if len(points) > 1 else None)


def mailboxes_of_ceilings(ceilings: Sequence[Ceiling]) -> Iterator[Finding]:
    """Yield the mailboxes of the highest level that was kept, by variant."""
    variants = by_variant(ceilings)
    for same in variants:
        steps = [step for ceiling in same if ceiling.holds is not None for step in ceiling.steps_at(ceiling.holds)]
        yield from _mailboxes(steps, same[0].variant if len(variants) > 1 else None)


def _mailboxes(steps: Sequence[StepSummary], step: str | None) -> Iterator[Finding]:
    counted = [step.mail_io for step in steps if step.mail_io]
    if not counted or len(counted) < len(steps):
        return
    iops = fmean(io.iops for io in counted)
    yield info(
        MailIoKind.MAILBOXES,
        step=step,
        iops=iops,
        apart_iops=complete_mean([io.apart_iops for io in counted]),
        each=MAILBOX_IOPS,
        mailboxes=mailboxes(iops),
        read_ms=complete_mean([io.read_ms for io in counted]),
        measured=len(counted),
    )


def ceiling_answers(findings: Sequence[Finding]) -> list[Finding]:
    """Return the result of each search for a ceiling."""
    of_several = (CeilingKind.REPEATS, CeilingKind.RATIO)
    return [finding for finding in findings if finding.kind in ANSWERS and finding.kind not in of_several]


# Memory against flash, where the record has both: how much memory gives the throughput that flash gave.
#
# Where no run had flash, faster reads stand in: those that the model of a step predicts (prediction.py).

GIB = 1024**3
FAST_MS = 1.0
"""The read time of fast storage for which predictions are shown."""
SLOW_TIMES = 2.0
"""Factor by which measured reads must be slower than FAST_MS for that to mean other storage."""


class FlashKind(Kind):
    FOR_MEMORY = "flash_for_memory"
    BEYOND_MEMORY = "flash_beyond_memory"
    NO_GAIN = "flash_gives_no_more"
    READS_FOR_MEMORY = "faster_reads_for_memory"


def flash_findings(curve: PoolCurve, runs: Sequence[RunSummary], claims: Claims) -> Iterator[Finding]:
    """Yield a finding for every variant with flash that may be compared with the curve's sizes, or one of predicted
    faster reads if no variant has flash.

    A curve that was itself measured with flash shows nothing about memory without it.
    """
    manifests = {step.key: run.manifest for run in runs for step in run.steps}
    steps = [step for run in runs for step in run.steps if not step.validity.invalid and step.result_tps > 0]
    variants = {size.variant for size in curve.sizes}
    of_curve = [step for step in steps if step.variant in variants]
    # Such a curve already includes the flash.
    if any(flash_bytes(manifests[step.key]) for step in of_curve):
        return
    others = points([step for step in steps if _same_load_as_curve(curve, step) and step.variant not in variants])
    flash = [(point, of_flash) for point in others if (of_flash := flash_bytes(manifests[point.first.key]))]
    for point, of_flash in flash:
        if not all(claims.claim(size, point).comparable for size in points(of_curve)):
            continue
        if finding := _compare_flash(curve, point, of_flash, manifests[point.first.key].scenario.cost or {}):
            yield finding
    if not flash and (finding := _predicted_finding(curve, of_curve)):
        yield finding


def flash_bytes(manifest: Manifest) -> int | None:
    """Return the flash of an array, emulated or as described, or None if it has none."""
    array = manifest.devices.for_role("data").emulated_array
    parts = [array.cache, array.tier] if array else []
    sizes = [part.size for part in parts if part]
    if manifest.array:
        sizes += [size for size in (manifest.array.flash_cache_bytes, manifest.array.flash_tier_bytes) if size]
    return sum(sizes) or None


def _same_load_as_curve(curve: PoolCurve, step: StepSummary) -> bool:
    """Return True if a step may be compared with the curve: an emulated device shows nothing about a real one."""
    return step.emulated == curve.emulated and step.users == curve.users and not any(step.other_work)


def _compare_flash(curve: PoolCurve, point: Point, of_flash: int, cost: dict[str, float]) -> Finding | None:
    """Compare the throughput of a variant with flash with the memory curve without flash."""
    pool = point.first.buffer_pool_bytes
    fitted = throughput_curve(curve)
    if pool is None or not fitted.sizes[0] <= pool <= fitted.sizes[-1]:
        return None
    without = fitted.value_at(pool)
    facts = {
        "variant": point.first.variant,
        "pool_bytes": pool,
        "flash_bytes": of_flash,
        "per_s": [without, point.tps],
        "primary": curve.primary,
        "fewest_runs": min(curve.fewest_runs, len(point.steps)),
    }
    # Equal runs differ by up to SAME, so this is no gain.
    if point.tps <= without * (1 + SAME):
        return info(FlashKind.NO_GAIN, **facts)
    equal = fitted.size_of(point.tps)
    if equal is None:
        return info(FlashKind.BEYOND_MEMORY, largest_bytes=fitted.sizes[-1], **facts)
    memory_gib, flash_gib = (equal - pool) / GIB, of_flash / GIB
    return info(
        FlashKind.FOR_MEMORY,
        equal_bytes=equal,
        equal_range=_measured_neighbours(fitted, equal),
        worth=memory_gib / flash_gib,
        costs=[memory_gib * cost["memory"], flash_gib * cost["flash"]] if cost else None,
        **facts,
    )


def _measured_neighbours(fitted: MonotoneCurve, size: float) -> list[int]:
    """Return the measured sizes next to `size`, which bound it whatever the curve does in between."""
    below = [measured for measured in fitted.sizes if measured < size]
    above = [measured for measured in fitted.sizes if measured >= size]
    return [below[-1] if below else above[0], above[0] if above else below[-1]]


def _predicted_finding(curve: PoolCurve, steps: Sequence[StepSummary]) -> Finding | None:
    """Return the effect that faster reads would have in place of memory.

    It is computed at the smallest size with slow reads and a prediction within the curve: that size leaves least memory
    out.
    """
    fitted = throughput_curve(curve)
    for size in curve.sizes:
        demands = demands_of([step for step in steps if step.variant == size.variant])
        # Reads that were not slow in each run do not mean other storage.
        if not demands or min(demand.read_ms for demand in demands) < SLOW_TIMES * FAST_MS:
            continue
        predicted = mean_prediction(demands, FAST_MS)
        equal = fitted.size_of(predicted.tps)
        # Outside the curve, or no better than the measured size.
        if equal is None or equal <= size.pool_bytes:
            continue
        return caution(
            FlashKind.READS_FOR_MEMORY,
            pool_bytes=size.pool_bytes,
            read_ms=[fmean(demand.read_ms for demand in demands), FAST_MS],
            per_s=[size.rate.value, predicted.tps, predicted.low, predicted.high],
            primary=curve.primary,
            equal_bytes=equal,
            equal_range=[fitted.size_of(predicted.low), fitted.size_of(predicted.high)],
        )
    return None
