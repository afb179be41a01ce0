"""Probes of raw storage, read from their records. The saturation of a pattern, its collapse beyond that, and its
stability, judged from its steps alone.

A step keeps n I/Os outstanding, of which x end per second after r on average: n = x·r (Little). As n grows, three
things can happen. x grows with it. Or x stays and r grows in proportion: the storage is saturated. Or x falls, or some
I/Os take far longer than their share: it collapses.

Example: at 4, 8 and 16 outstanding I/Os a disk gives 900, 1,000 and 1,010 per second. Doubling beyond 8 gains 1 %, so 8
is the knee.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from statistics import fmean, median
from typing import Any

from stallmark.analysis.cautions import page_cache_cautions
from stallmark.analysis.finding import Finding, Kind, caution, early_ends, info
from stallmark.analysis.probe_comparison import ProbeKind, is_sustained
from stallmark.probe.record import read_probe
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import PERCENTILES, Pattern, ProbeResult, ProbeStep
from stallmark.record.reader import Record
from stallmark.stats.thresholds import (
    PROBE_AT_DEVICE,
    PROBE_COLLAPSE,
    PROBE_GAIN,
    PROBE_SLUMPS,
    PROBE_SMALL_BYTES,
    PROBE_TAIL,
    PROBE_UNSTABLE,
    PROBE_WINDOW_IOS,
    SAMPLES_BEYOND,
)


class SaturationKind(Kind):
    # Of the patterns of a probe.
    ONE_STEP = "one_step_probed"
    NOT_SATURATED = "not_saturated"
    SATURATED = "saturated"
    COLLAPSED_RATE = "rate_collapsed"
    COLLAPSED_TAIL = "tail_collapsed"
    OVERALL = "patterns_overall"
    # Of several probes, or of each of them.
    AGAINST_FIRST = "probe_against_first"
    OF_PROBE = "of_probe"
    NOT_REPEATED = "probes_not_repeated"
    EMULATED_AND_REAL = "emulated_and_real_probes"
    FEW_IOS = "too_few_ios_for_p99"
    NOT_AT_DEVICE = "probe_not_at_device"
    INCOMPLETE = "probe_incomplete"
    SMALL_FILE = "probe_file_small"


@dataclass(frozen=True)
class Saturation:
    """The saturation of one pattern. Numbers are outstanding I/Os."""

    pattern: Pattern
    knee: int | None
    """The number beyond which a doubling brings less than PROBE_GAIN on average up to each later step; None if the last
    step still gained, or with one step."""
    collapse: int | None  # first number that collapsed
    because: Finding | None  # reason for the collapse
    unstable: tuple[int, ...]  # numbers with slumps within the step
    limited: tuple[int, ...]
    """Numbers for which the program that issues I/O was too slow. No other field covers them."""
    finding: Finding


def saturations(probe: ProbeResult) -> list[Saturation]:
    """Return the saturation of every pattern that was measured."""
    return [saturation(pattern, steps) for pattern, steps in probe.curves().items()]


def overall_finding(saturations: Sequence[Saturation]) -> Finding:
    """Return the finding on several patterns together; each has its own finding too. Depths are outstanding I/Os."""
    kinds: dict[Kind, list[Saturation]] = defaultdict(list)
    for saturation in saturations:
        kinds[saturation.finding.kind].append(saturation)
    return info(
        SaturationKind.OVERALL,
        saturated=_group_by_depth(kinds[SaturationKind.SATURATED], lambda saturation: saturation.knee),
        not_saturated=_titles(kinds[SaturationKind.NOT_SATURATED]),
        one_step=_titles(kinds[SaturationKind.ONE_STEP]),
        not_issued=_titles(kinds[ProbeKind.NOT_ISSUED]),
        collapsed=_group_by_depth(
            [saturation for saturation in saturations if saturation.collapse is not None],
            lambda saturation: saturation.collapse,
        ),
        unstable=_titles([saturation for saturation in saturations if saturation.unstable]),
    )


def _group_by_depth(patterns: Sequence[Saturation], key: Callable[[Saturation], int | None]) -> list[dict[str, Any]]:
    depths = dict.fromkeys(map(key, patterns))
    return [
        {"depth": depth, "patterns": _titles([pattern for pattern in patterns if key(pattern) == depth])}
        for depth in depths
    ]


def _titles(saturations: Sequence[Saturation]) -> list[str]:
    return [saturation.pattern.title for saturation in saturations]


def saturation(pattern: Pattern, steps: Sequence[ProbeStep]) -> Saturation:
    """Return the saturation of a pattern from its `steps`, fewest outstanding I/Os first."""
    limited = tuple(step.outstanding for step in steps if not is_sustained(step))
    judged = [step for step in steps if step.outstanding not in limited]
    knee = _knee(judged)
    collapse, because = _collapse(judged, knee)
    unstable = tuple(step.outstanding for step in judged if is_unstable(step))
    marks = {"collapse": collapse, "because": because, "unstable": list(unstable), "limited": list(limited)}
    return Saturation(
        pattern,
        knee.outstanding if knee else None,
        collapse,
        because,
        unstable,
        limited,
        _finding(pattern, judged, knee, marks),
    )


def is_unstable(step: ProbeStep) -> bool:
    """Return True if I/Os per second slump repeatedly within the step. Short windows are joined until each has
    PROBE_WINDOW_IOS I/Os."""
    if len(step.windows) < 2:
        return False
    length = step.windows[1][0] - step.windows[0][0]
    together = ceil(PROBE_WINDOW_IOS / (step.iops * length))
    single = [rate for _, rate in step.windows]
    rates = [fmean(single[i : i + together]) for i in range(0, len(single) - together + 1, together)]
    if not rates:
        return False
    # A single slump may be chance: at least two, and a share of all windows, make a step unstable.
    slumps = sum(rate < PROBE_UNSTABLE * median(rates) for rate in rates)
    return slumps >= max(2, PROBE_SLUMPS * len(rates))


def _knee(steps: Sequence[ProbeStep]) -> ProbeStep | None:
    """Return the first step beyond which nothing is gained, or None without one. The last step has none beyond it."""
    for number_, step in enumerate(steps[:-1], 1):
        if all(
            later.iops < step.iops * _worthwhile_growth(later.outstanding / step.outstanding)
            for later in steps[number_:]
        ):
            return step
    return None


def _worthwhile_growth(more: float) -> float:
    """Return the factor by which the rate must grow with `more` times the outstanding I/Os."""
    return float((1 + PROBE_GAIN) ** log2(more))


def _collapse(steps: Sequence[ProbeStep], knee: ProbeStep | None) -> tuple[int | None, Finding | None]:
    for position, step in enumerate(steps):
        best = max((s.iops for s in steps[:position]), default=0.0)
        if step.iops < (1 - PROBE_COLLAPSE) * best:
            return step.outstanding, info(SaturationKind.COLLAPSED_RATE, iops=step.iops, best_iops=best)
        if knee and step.outstanding > knee.outstanding:
            # Beyond the knee waiting grows in proportion; a collapse is a tail that grows much faster.
            tail, usual = step.latency_ms["p99"], knee.latency_ms["p99"]
            share = step.outstanding / knee.outstanding
            if tail and usual and tail / usual > PROBE_TAIL * share:
                facts = {"p99_ms": tail, "knee_p99_ms": usual, "knee": knee.outstanding}
                return step.outstanding, info(SaturationKind.COLLAPSED_TAIL, **facts)
    return None, None


def _finding(
    pattern: Pattern, judged: Sequence[ProbeStep], knee: ProbeStep | None, marks: Mapping[str, Any]
) -> Finding:
    # Every step was limited by the program that issues I/O, so the storage was not measured.
    if not judged:
        return caution(ProbeKind.NOT_ISSUED, pattern=pattern.title)
    last = judged[-1]
    facts = {"pattern": pattern.title, **_rate_facts(knee or last), **marks}
    if len(judged) == 1:
        return info(SaturationKind.ONE_STEP, **facts)
    if knee is None:
        return info(SaturationKind.NOT_SATURATED, **facts)
    beyond = {"gain": last.iops / knee.iops - 1, "last": last.outstanding, "last_ms": last.mean_ms}
    return info(SaturationKind.SATURATED, **facts, **beyond)


def _rate_facts(step: ProbeStep) -> dict[str, Any]:
    """Return the rate of a step: I/Os per second, or MB per second for a sequential pattern."""
    rate = {"iops": step.iops} if step.pattern.random else {"mb_per_s": step.mb_per_s}
    return {"outstanding": step.outstanding, "mean_ms": step.mean_ms, **rate}


_IOS_FOR_P99 = round(SAMPLES_BEYOND / (1 - PERCENTILES["p99"]))


@dataclass(frozen=True)
class ProbeRun:
    """A probe. `variant` is the scenario's name for it, or the place that was probed."""

    folder: str
    variant: str
    manifest: Manifest
    incomplete_because: str | None
    result: ProbeResult
    saturations: list[Saturation]


@dataclass(frozen=True)
class ProbeExperiment:
    """The summary of an experiment of probes, with everything that the report shows."""

    scenario: str
    title: str
    answers: str
    emulated: bool
    runs: list[ProbeRun]
    findings: list[Finding]
    cautions: list[Finding]
    comparison: None = None  # probes are made once: there is no verdict

    @property
    def patterns(self) -> list[Pattern]:
        """Return the patterns in the order in which they were measured."""
        return list(dict.fromkeys(step.pattern for run in self.runs for step in run.result.steps))


def summarise_probes(records: Sequence[Record], map_runs: Callable[..., Iterable[ProbeRun]] = map) -> ProbeExperiment:
    """Summarise probes; `map_runs` may be the `map` of a pool."""
    runs = _make_names_unique(list(map_runs(_read_run, records)))
    scenario = records[0].manifest.scenario
    places = list(dict.fromkeys(run.result.place for run in runs))
    return ProbeExperiment(
        scenario=scenario.name or "probe",
        title=scenario.title or f"Raw storage of {', '.join(places)}",
        answers=scenario.answers or "What does this storage give without a database, and where does it saturate?",
        emulated=any(run.result.emulated for run in runs),
        runs=runs,
        findings=list(_findings(runs)),
        cautions=list(_cautions(runs)),
    )


def _read_run(record: Record) -> ProbeRun:
    result = read_probe(record)
    return ProbeRun(
        record.folder.name,
        _probe_name(record.manifest, result),
        record.manifest,
        record.incomplete_because,
        result,
        saturations(result),
    )


def _probe_name(manifest: Manifest, result: ProbeResult) -> str:
    return manifest.variant.name or result.place


def _make_names_unique(runs: list[ProbeRun]) -> list[ProbeRun]:
    """Make the names of probes unique: add the time to equal names and, if that is equal too, the folder."""
    for more in (lambda run: run.result.started.replace("T", " ")[:16], lambda run: run.folder):
        taken = Counter(run.variant for run in runs)
        runs = [replace(run, variant=f"{run.variant}, {more(run)}") if taken[run.variant] > 1 else run for run in runs]
    return runs


def _findings(runs: Sequence[ProbeRun]) -> Iterator[Finding]:
    yield from _compare_with_first(runs)
    for run in runs:
        # Each of several patterns has its own section, which shows its finding.
        several = len(run.saturations) > 1
        for finding in (
            [overall_finding(run.saturations)] if several else [saturation.finding for saturation in run.saturations]
        ):
            yield info(SaturationKind.OF_PROBE, probe=run.variant, found=finding) if len(runs) > 1 else finding


def _compare_with_first(runs: Sequence[ProbeRun]) -> Iterator[Finding]:
    """Compare each probe with the first, for every random pattern, at the most outstanding I/Os that all kept up."""
    for pattern in [p for p in runs[0].result.curves() if p.random]:
        curves = [
            {step.outstanding: step for step in run.result.curves().get(pattern, []) if is_sustained(step)}
            for run in runs
        ]
        # Only a depth that every probe sustained compares like with like.
        common = set.intersection(*(set(curve) for curve in curves))
        if len(runs) < 2 or not common:
            continue
        depth = max(common)
        first = curves[0][depth]
        for run, curve in list(zip(runs, curves, strict=True))[1:]:
            if run.result.emulated != runs[0].result.emulated:
                continue  # an emulated device and a real one are not comparable
            yield info(
                SaturationKind.AGAINST_FIRST,
                pattern=pattern.title,
                outstanding=depth,
                probe=run.variant,
                first=runs[0].variant,
                iops=curve[depth].iops,
                first_iops=first.iops,
                mean_ms=curve[depth].mean_ms,
                first_ms=first.mean_ms,
            )


def _cautions(runs: Sequence[ProbeRun]) -> Iterator[Finding]:
    yield from early_ends(run.manifest for run in runs)
    # Every probe has its own name, so none was repeated.
    if 1 < len(runs) == len({_probe_name(run.manifest, run.result) for run in runs}):
        yield caution(SaturationKind.NOT_REPEATED)
    if len({run.result.emulated for run in runs}) > 1:
        yield caution(SaturationKind.EMULATED_AND_REAL)
    # An emulated array has no memory that the file could fit into.
    smallest = min((run.result.file_bytes for run in runs if not run.result.emulated), default=PROBE_SMALL_BYTES)
    if smallest < PROBE_SMALL_BYTES:
        yield caution(SaturationKind.SMALL_FILE, file_bytes=smallest)
    yield from page_cache_cautions((run.result.place, run.result.direct_io) for run in runs)
    for run in runs:
        if elsewhere := _not_at_device(run.result.steps):
            yield caution(
                SaturationKind.NOT_AT_DEVICE,
                probe=run.variant,
                device=run.result.device,
                share=min(share for _, share in elsewhere),
                steps=[f"{step.pattern.title}, {step.outstanding} outstanding" for step, _ in elsewhere],
                of=len(run.result.steps),
            )
        if run.incomplete_because:
            yield caution(SaturationKind.INCOMPLETE, probe=run.variant, said=run.incomplete_because)
        few = [step for step in run.result.steps if step.ios < _IOS_FOR_P99]
        if few:
            yield caution(SaturationKind.FEW_IOS, probe=run.variant, share=len(few) / len(run.result.steps))


def _not_at_device(steps: Sequence[ProbeStep]) -> list[tuple[ProbeStep, float]]:
    """Return the steps whose device counted too few bytes, with the share that it counted.

    Bytes are compared instead of I/Os, as a device merges consecutive I/Os.
    """
    known = [(step, step.device_bytes / step.bytes) for step in steps if step.device_bytes is not None and step.bytes]
    return [(step, share) for step, share in known if share < PROBE_AT_DEVICE]
