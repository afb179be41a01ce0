"""Checks whether two sides may be compared. Every check records its findings, whether it passed or not."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from stallmark.analysis.compare.settings import check_devices, check_probes, differences_from_first, one_pool
from stallmark.analysis.compare.sides import Side, applies_to_pair, declared_key, experiment, name_of, steps_of
from stallmark.analysis.compare.summary import Check, CheckKind, PairKind, ReasonKind, check
from stallmark.analysis.finding import Finding, caution, invalid
from stallmark.analysis.metrics import THROUGHPUT, Metric, group, sampling_uncertainty
from stallmark.analysis.run import RunSummary
from stallmark.analysis.steady import Judgement, incomparable
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.stats import inference as statistics
from stallmark.stats.thresholds import (
    AGAIN,
    CONFIDENCE,
    FOREIGN_CPU,
    FOREIGN_IO,
    GROWTH,
    READS_AT_ONE_POOL,
    READS_OF_ONE_RUN,
    SAME,
)


def checks(a: Side, b: Side, step: tuple[str, int], metric: Metric, among: Sequence[Side]) -> list[Check]:
    """Check one step of two sides, the most fundamental first. `among`: all sides, whose repeated runs (A′) may show
    drift for this pair too."""
    steps_a, steps_b = a.steps(step), b.steps(step)
    both = [*steps_a, *steps_b]
    checked = [
        _check_declared_metric(a, b),
        _check_settings(a, b),
        _check_validity(both),
        _check_driver(both),
        _check_consistency([*a.runs, *b.runs]),
        *_check_foreign_use(both),
        _check_clocks([*a.runs, *b.runs]),
        _check_growth(a, b),
        _check_reads(a, b, steps_a, steps_b),
        _check_plans(steps_a, steps_b),
        _check_steadiness(both),
        check_devices(both),
        *check_probes([a, b]),
        *(_check_repeated_side(side, step, metric) for side in among if applies_to_pair(side, a, b)),
    ]
    return [check_ for check_ in checked if check_]


def _check_declared_metric(a: Side, b: Side) -> Check:
    """Check that both sides declare the same metric: the deciding metric is declared before anything runs."""
    declared_metrics = {side.name: list(dict.fromkeys(map(declared_key, side.runs))) for side in (a, b)}
    alike = len({key for keys in declared_metrics.values() for key in keys}) == 1
    reason = None if alike else invalid(ReasonKind.METRICS_DIFFER, metrics=declared_metrics)
    return check(CheckKind.METRIC_DECLARED, alike, reason, metrics=declared_metrics)


def _check_settings(a: Side, b: Side) -> Check:
    """Compare every run with the first of A: the runs of one side must be equal too."""
    different = differences_from_first([*a.runs, *b.runs])
    reason = invalid(ReasonKind.SETTINGS_DIFFER, differences=different) if different else None
    return check(CheckKind.SETTINGS, not different, reason, differences=different)


def _check_validity(steps: Sequence[StepSummary]) -> Check:
    """Check that no step has a reason of its own not to be compared; every reason is named once, with its runs."""
    bad = [step for step in steps if _reasons(step)]
    by_reason = _by_reason([(reason, step) for step in bad for reason in _reasons(step)])
    reason = invalid(ReasonKind.RUNS_INVALID, reasons=by_reason) if bad else None
    return check(CheckKind.RUNS, not bad, reason, invalid=len(bad), runs=len(steps), reasons=by_reason)


def _reasons(step: StepSummary) -> list[Finding]:
    """Return the reasons why a step must not be compared, without those of the checks of foreign I/O and CPU."""
    foreign_kinds = [kind for _, _, kind, limit, share_of in _FOREIGN if (share_of(step) or 0.0) > limit]
    return [finding for finding in step.validity.invalid if finding.kind not in foreign_kinds]


def _check_driver(steps: Sequence[StepSummary]) -> Check:
    bad = _runs(step for step in steps if step.validity.driver_bound)
    reason = invalid(ReasonKind.DRIVER_BOUND, runs=bad) if bad else None
    return check(CheckKind.DRIVER, not bad, reason, bound=bad, runs=len(steps))


def _check_consistency(runs: Sequence[RunSummary]) -> Check:
    judged = [run for run in runs if any(condition.holds is not None for condition in run.conditions)]
    broken = [name_of(run) for run in judged if run.has_wrong_data]
    reason = invalid(ReasonKind.DATA_WRONG, runs=broken) if broken else None
    passed = False if broken else True if judged and len(judged) == len(runs) else None
    return check(CheckKind.CONSISTENCY, passed, reason, wrong=broken, checked=len(judged), runs=len(runs))


_FOREIGN: Sequence[tuple[CheckKind, ReasonKind, ValidityKind, float, Callable[[StepSummary], float | None]]] = (
    (
        *(CheckKind.FOREIGN_IO, ReasonKind.FOREIGN_IO, ValidityKind.FOREIGN_IO, FOREIGN_IO),
        lambda step: step.storage.foreign_io_share,
    ),
    (
        *(CheckKind.FOREIGN_CPU, ReasonKind.FOREIGN_CPU, ValidityKind.FOREIGN_CPU, FOREIGN_CPU),
        lambda step: step.server.foreign_cpu_share,
    ),
)


def _check_foreign_use(steps: Sequence[StepSummary]) -> Iterator[Check]:
    """Check the share of storage and CPUs that other programs used."""
    for kind, because, _, limit, share_of in _FOREIGN:
        shares = [(step, share) for step in steps if (share := share_of(step)) is not None]
        most = max((share for _, share in shares), default=None)
        bad = _runs(step for step, share in shares if share > limit)
        reason = invalid(because, share=most, runs=bad) if bad else None
        # Foreign CPU that kept nobody waiting is not known either, and is no doubt.
        unknown = len(steps) - len(shares) if kind is CheckKind.FOREIGN_IO else 0
        passed = False if bad else None if most is None or unknown else True
        yield check(kind, passed, reason, share=most, unknown=unknown if shares else 0, runs=len(steps))


def _check_clocks(runs: Sequence[RunSummary]) -> Check:
    """Check that, within an experiment, a later run began later by the clock too: runs are numbered."""
    back = []
    for name in dict.fromkeys(map(experiment, runs)):
        numbered = sorted(
            (run.manifest.sequence, run.started, name_of(run))
            for run in runs
            if experiment(run) == name and run.manifest.sequence
        )
        back += [later[2] for earlier, later in pairwise(numbered) if later[1] < earlier[1]]
    reason = invalid(ReasonKind.CLOCK_WENT_BACK, runs=back) if back else None
    return check(CheckKind.CLOCK, not back, reason, runs=back)


def _check_growth(a: Side, b: Side) -> Check:
    """Check the growth of the database within runs, and between the sizes that runs began with."""
    runs = (*a.runs, *b.runs)
    within = max((abs(run.growth_share) for run in runs if run.growth_share is not None), default=None)
    sizes = [size for run in runs if (size := run.manifest.database.bytes_before)]  # 0: not known
    between = max(sizes) / min(sizes) - 1 if sizes else None
    worst = max((value for value in (within, between) if value is not None), default=None)
    grown = worst is not None and worst > GROWTH
    reason = invalid(ReasonKind.DATA_GREW, share=worst) if grown else None
    passed = None if worst is None else not grown
    return check(CheckKind.GROWTH, passed, reason, within_share=within, between_share=between)


def _check_reads(a: Side, b: Side, steps_a: Sequence[StepSummary], steps_b: Sequence[StepSummary]) -> Check | None:
    """Check reads per transaction at one pool, unless other loads read on one side only.

    With repeated runs, the difference must also exceed the run-to-run variation. Single runs show no variation, so up
    to READS_OF_ONE_RUN is allowed.
    """
    both = [*steps_a, *steps_b]
    if not one_pool(a.runs[0].manifest, b.runs[0].manifest) or len({step.other_work for step in both}) > 1:
        return None
    known_a, known_b = (
        [step.storage.reads_per_transaction for step in steps if step.storage.reads_per_transaction is not None]
        for steps in (steps_a, steps_b)
    )
    if not known_a or not known_b:
        return check(CheckKind.READS, None, reads_per_transaction=None, share=None, p=None, unknown=len(both))
    before, after = float(np.mean(known_a)), float(np.mean(known_b))
    # Of almost no reads 5 % are nothing: below one in ten transactions a difference is held against a tenth.
    off = abs(after - before) / max(before, after, 0.1)
    facts: dict[str, Any] = {"reads_per_transaction": [before, after], "share": off}
    if off <= READS_AT_ONE_POOL:
        unknown = len(both) - len(known_a) - len(known_b)
        return check(CheckKind.READS, None if unknown else True, p=None, unknown=unknown, **facts)
    if off <= READS_AT_ONE_POOL + sampling_uncertainty(steps_a, steps_b):
        return check(CheckKind.READS, None, p=None, unknown=0, **facts)
    if min(len(known_a), len(known_b)) > 1:
        p = float(statistics.welch(np.array(known_a), np.array(known_b)).p())
        if p > 1 - CONFIDENCE:
            within = caution(PairKind.READS_WITHIN_SCATTER, p=p, **facts)
            return check(CheckKind.READS, True, within, p=p, unknown=0, **facts)
    elif off <= READS_OF_ONE_RUN:
        return check(CheckKind.READS, None, p=None, unknown=0, **facts)
    return check(CheckKind.READS, False, invalid(ReasonKind.READS_DIFFER, **facts), p=None, unknown=0, **facts)


def _check_plans(a: Sequence[StepSummary], b: Sequence[StepSummary]) -> Check | None:
    """Check that both sides executed their statements with the same plans; return None if no server reports plans.

    Another plan reads other pages on any storage. The check reports it and does not forbid the comparison: more memory
    may well lead to another plan, which is then part of what is compared.
    """
    if not any(step.server.statements for step in a) or not any(step.server.statements for step in b):
        return None
    changed = changed_plans(a, b)
    reason = caution(ReasonKind.PLANS_DIFFER, procedures=changed) if changed else None
    return check(CheckKind.PLANS, None if changed else True, reason, procedures=changed)


def changed_plans(a: Sequence[StepSummary], b: Sequence[StepSummary]) -> list[str]:
    """Return the procedures with a statement whose plan differs between A and B, those with the most reads first. The
    plan of a side is the one it executed most in every run."""
    changed: dict[str, float] = {}
    plans_a, plans_b = _main_plans(a), _main_plans(b)
    for key in sorted(plans_a.keys() & plans_b.keys()):
        (hashes_a, reads_a), (hashes_b, reads_b) = plans_a[key], plans_b[key]
        if not hashes_a & hashes_b:
            changed[key[0]] = changed.get(key[0], 0.0) + reads_a + reads_b
    return sorted(changed, key=lambda name: (-changed[name], name))


def _main_plans(steps: Sequence[StepSummary]) -> dict[tuple[str, int], tuple[set[str], float]]:
    """Return, by procedure and position, the plans by which a statement was executed most in a run, and its reads."""
    plans: dict[tuple[str, int], tuple[set[str], float]] = {}
    for step in steps:
        for statement in step.server.statements:
            hashes, reads = plans.get((statement.procedure, statement.position), (set(), 0.0))
            plans[statement.procedure, statement.position] = (
                hashes | {statement.plans[0]},
                reads + statement.physical_reads,
            )
    return plans


def _check_steadiness(steps: Sequence[StepSummary]) -> Check | None:
    """Check that the runs were steady. A run of seconds is too short to judge."""
    judged = [(step, step.validity.steadiness) for step in steps if step.validity.steadiness]
    if not judged:
        return None
    # Among many runs one may fail by chance: only more failures than chance explains count.
    unsteady = incomparable([steadiness for _, steadiness in judged])
    bad = _by_reason([(steadiness.verdict, step) for step, steadiness in judged if steadiness in unsteady])
    others = [
        (step, steadiness)
        for step, steadiness in judged
        if steadiness.verdict not in (Judgement.STEADY, Judgement.TOO_SHORT)
    ]
    tolerated = [
        {
            **reason,
            "by_chance": any(
                steadiness.incomparable and steadiness.verdict == reason["because"] for _, steadiness in judged
            ),
        }
        for reason in _by_reason([(steadiness.verdict, step) for step, steadiness in others])
    ]
    too_short = sum(steadiness.verdict == Judgement.TOO_SHORT for _, steadiness in judged)
    return check(
        CheckKind.STEADINESS,
        False if bad else None if too_short else True,
        invalid(ReasonKind.NOT_STEADY, reasons=bad) if bad else None,
        runs=len(judged),
        steady=sum(steadiness.verdict == Judgement.STEADY for _, steadiness in judged),
        too_short=too_short,
        unsteady=bad,
        tolerated=[] if bad else tolerated,
    )


def _check_repeated_side(side: Side, step: tuple[str, int], metric: Metric) -> Check:
    """Compare A′ with A, by the deciding metric and by throughput."""
    drifts_or_none = [_drift(side, step, decisive) for decisive in dict.fromkeys((metric, THROUGHPUT))]
    drifts = [drift for drift in drifts_or_none if drift]
    off = next((drift for drift in drifts if drift.differs), None)
    reason = invalid(ReasonKind.DRIFTED, side=side.name, metric=off.metric, share=off.distance) if off else None
    return check(
        CheckKind.AGAIN,
        None if not off and drifts_or_none[0] is None else not off,
        reason,
        side=side.name,
        metric=metric.key,
        drifts=[{"metric": drift.metric, "share": drift.distance, "p": drift.p} for drift in drifts],
    )


@dataclass(frozen=True)
class _Drift:
    """The distance of A′ from A in a metric, as a share. `p` is None with one run each, where drift and variation
    cannot be separated."""

    metric: str
    distance: float
    p: float | None

    @property
    def differs(self) -> bool:
        """Return True if the distance is beyond the tolerance. SAME applies however much runs vary: more runs must not
        be allowed more than a single run."""
        return self.distance > SAME or (self.p is not None and self.distance > AGAIN and self.p <= 1 - CONFIDENCE)


def _drift(side: Side, step: tuple[str, int], metric: Metric) -> _Drift | None:
    """Return the drift, or None if a run lacks the metric."""
    again = {name_of(run) for run in side.again}
    first, last = (
        [
            metric.value(step_) or 0.0
            for step_ in steps_of([run for run in side.runs if (name_of(run) in again) == at_end], step)
        ]
        for at_end in (False, True)
    )
    # Logarithms need positive values.
    if not first or not last or min(first + last) <= 0:
        return None
    log_first, log_last = np.log(first), np.log(last)
    off = float(np.exp(abs(log_last.mean() - log_first.mean())) - 1)
    several = min(len(first), len(last)) > 1
    return _Drift(metric.key, off, float(statistics.welch(log_first, log_last).p()) if several else None)


def _by_reason(reasons: Sequence[tuple[Any, StepSummary]]) -> list[Mapping[str, Any]]:
    """Return every reason (`because`) with its `runs`, the one of most runs first."""
    grouped = [
        {"because": same[0][0], "runs": _runs(step for _, step in same)}
        for same in group(reasons, lambda pair: pair[0])
    ]
    return sorted(grouped, key=lambda entry: -len(entry["runs"]))


def _runs(steps: Iterable[StepSummary]) -> list[str]:
    return list(dict.fromkeys(step.run for step in steps))
