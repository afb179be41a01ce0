"""Checks whether two sides may be compared. Every check says what was found, whether it holds or not."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from stallmark.analysis.compare.settings import differences, one_pool, storage_checks
from stallmark.analysis.compare.sides import Side, declared, experiment, name_of, steps_of, tells_of
from stallmark.analysis.compare.summary import Check, CheckKind, PairKind, ReasonKind, check
from stallmark.analysis.finding import Finding, caution, invalid
from stallmark.analysis.metrics import THROUGHPUT, Metric
from stallmark.analysis.points import group, sampling_uncertainty
from stallmark.analysis.run import RunSummary
from stallmark.analysis.steady import Judgement, incomparable
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity.invalid import ValidityKind
from stallmark.stats import student as statistics
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


def checks(a: Side, b: Side, step: tuple[str, int], what: Metric, among: Sequence[Side]) -> list[Check]:
    """Check one step of two sides, the most fundamental first. `among`: all sides, whose A′ may tell of this
    pair too."""
    steps_a, steps_b = a.steps(step), b.steps(step)
    both = [*steps_a, *steps_b]
    found = [
        _declared(a, b),
        _settings(a, b),
        _valid(both),
        _driver(both),
        _consistency([*a.runs, *b.runs]),
        *_foreign(both),
        _clocks([*a.runs, *b.runs]),
        _growth(a, b),
        _reads(a, b, steps_a, steps_b),
        _plans(steps_a, steps_b),
        _steady(both),
        *storage_checks(a, b, both),
        *(_again(side, step, what) for side in among if tells_of(side, a, b)),
    ]
    return [one for one in found if one]


def _declared(a: Side, b: Side) -> Check:
    """Check that both sides declare the same metric: what decides is declared before anything runs."""
    said = {side.name: list(dict.fromkeys(map(declared, side.runs))) for side in (a, b)}
    alike = len({key for keys in said.values() for key in keys}) == 1
    reason = None if alike else invalid(ReasonKind.METRICS_DIFFER, metrics=said)
    return check(CheckKind.METRIC_DECLARED, alike, reason, metrics=said)


def _settings(a: Side, b: Side) -> Check:
    """Check every run against the first of A: runs of one side must be alike as well."""
    first = a.runs[0].manifest
    found = [one for run in (*a.runs[1:], *b.runs) for one in differences(first, run.manifest)]
    found = list(dict.fromkeys(found))
    reason = invalid(ReasonKind.SETTINGS_DIFFER, differences=found) if found else None
    return check(CheckKind.SETTINGS, not found, reason, differences=found)


def _valid(steps: Sequence[StepSummary]) -> Check:
    """Check that no step has a reason of its own not to be compared; every reason is named once, with its runs."""
    bad = [step for step in steps if _reasons(step)]
    found = _by_reason([(reason, step) for step in bad for reason in _reasons(step)])
    reason = invalid(ReasonKind.RUNS_INVALID, reasons=found) if bad else None
    return check(CheckKind.RUNS, not bad, reason, invalid=len(bad), runs=len(steps), reasons=found)


def _reasons(step: StepSummary) -> list[Finding]:
    """Return why a step must not be compared, without what the checks of foreign I/O and CPU find."""
    found = [kind for _, _, kind, limit, share_of in _FOREIGN if (share_of(step) or 0.0) > limit]
    return [one for one in step.validity.invalid if one.kind not in found]


def _driver(steps: Sequence[StepSummary]) -> Check:
    bad = _runs(step for step in steps if step.validity.driver_bound)
    reason = invalid(ReasonKind.DRIVER_BOUND, runs=bad) if bad else None
    return check(CheckKind.DRIVER, not bad, reason, bound=bad, runs=len(steps))


def _consistency(runs: Sequence[RunSummary]) -> Check:
    judged = [run for run in runs if any(one.holds is not None for one in run.conditions)]
    broken = [name_of(run) for run in judged if any(one.holds is False for one in run.conditions)]
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


def _foreign(steps: Sequence[StepSummary]) -> Iterator[Check]:
    """Check what other programs took of the storage and of the CPUs."""
    for kind, because, _, limit, share_of in _FOREIGN:
        shares = [(step, share) for step in steps if (share := share_of(step)) is not None]
        most = max((share for _, share in shares), default=None)
        bad = _runs(step for step, share in shares if share > limit)
        reason = invalid(because, share=most, runs=bad) if bad else None
        # Foreign CPU that kept nobody waiting is not known either, and is no doubt.
        unknown = len(steps) - len(shares) if kind is CheckKind.FOREIGN_IO else 0
        passed = False if bad else None if most is None or unknown else True
        yield check(kind, passed, reason, share=most, unknown=unknown if shares else 0, runs=len(steps))


def _clocks(runs: Sequence[RunSummary]) -> Check:
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


def _growth(a: Side, b: Side) -> Check:
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


def _reads(a: Side, b: Side, steps_a: Sequence[StepSummary], steps_b: Sequence[StepSummary]) -> Check | None:
    """Check reads per transaction at one pool, if nothing else reads beside one side alone. Of repeated runs the
    difference must also be more than their scatter; of single runs nobody knows that, up to READS_OF_ONE_RUN."""
    both = [*steps_a, *steps_b]
    if not one_pool(a.runs[0].manifest, b.runs[0].manifest) or len({_read_beside(one) for one in both}) > 1:
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


def _read_beside(step: StepSummary) -> tuple[object, ...]:
    """Return the other readers of a step, whose reads count as the transactions'."""
    return bool(step.streams), step.maintenance.kind if step.maintenance else None, step.beside


def _plans(a: Sequence[StepSummary], b: Sequence[StepSummary]) -> Check | None:
    """Check that statements were executed by the same plans on both sides; None where no server tells. Another plan
    reads other pages on any storage. It is said and not forbidden: another memory may well be answered by another plan,
    and then it is a part of what was compared."""
    if not any(step.server.statements for step in a) or not any(step.server.statements for step in b):
        return None
    changed = changed_plans(a, b)
    reason = caution(ReasonKind.PLANS_DIFFER, procedures=changed) if changed else None
    return check(CheckKind.PLANS, None if changed else True, reason, procedures=changed)


def changed_plans(a: Sequence[StepSummary], b: Sequence[StepSummary]) -> list[str]:
    """Return the procedures of which a statement has another plan in B than in A, those that read most first: the plan
    by which it was executed most, in every run of a side."""
    changed: dict[str, float] = {}
    plans_a, plans_b = _main_plans(a), _main_plans(b)
    for key in sorted(plans_a.keys() & plans_b.keys()):
        (hashes_a, reads_a), (hashes_b, reads_b) = plans_a[key], plans_b[key]
        if not hashes_a & hashes_b:
            changed[key[0]] = changed.get(key[0], 0.0) + reads_a + reads_b
    return sorted(changed, key=lambda name: (-changed[name], name))


def _main_plans(steps: Sequence[StepSummary]) -> dict[tuple[str, int], tuple[set[str], float]]:
    """Return, by procedure and position, the plans by which a statement was executed most in a run, and its reads."""
    found: dict[tuple[str, int], tuple[set[str], float]] = {}
    for step in steps:
        for one in step.server.statements:
            hashes, reads = found.get((one.procedure, one.position), (set(), 0.0))
            found[one.procedure, one.position] = hashes | {one.plans[0]}, reads + one.physical_reads
    return found


def _steady(steps: Sequence[StepSummary]) -> Check | None:
    """Check that the runs were steady, as far as they tell: one of seconds is too short to."""
    judged = [(step, step.validity.steadiness) for step in steps if step.validity.steadiness]
    if not judged:
        return None
    unsteady = incomparable([found for _, found in judged])
    bad = _by_reason([(found.verdict, step) for step, found in judged if found in unsteady])
    others = [(step, found) for step, found in judged if found.verdict not in (Judgement.STEADY, Judgement.TOO_SHORT)]
    tolerated = [
        {**one, "by_chance": any(found.incomparable and found.verdict == one["because"] for _, found in judged)}
        for one in _by_reason([(found.verdict, step) for step, found in others])
    ]
    too_short = sum(found.verdict == Judgement.TOO_SHORT for _, found in judged)
    return check(
        CheckKind.STEADINESS,
        False if bad else None if too_short else True,
        invalid(ReasonKind.NOT_STEADY, reasons=bad) if bad else None,
        runs=len(judged),
        steady=sum(found.verdict == Judgement.STEADY for _, found in judged),
        too_short=too_short,
        unsteady=bad,
        tolerated=[] if bad else tolerated,
    )


def _again(side: Side, step: tuple[str, int], what: Metric) -> Check:
    """Check A′ against A, by the metric that decides and by throughput."""
    found = [_drift(side, step, one) for one in dict.fromkeys((what, THROUGHPUT))]
    drifts = [one for one in found if one]
    off = next((one for one in drifts if one.differs), None)
    reason = invalid(ReasonKind.DRIFTED, side=side.name, metric=off.metric, share=off.off) if off else None
    return check(
        CheckKind.AGAIN,
        None if not off and found[0] is None else not off,
        reason,
        side=side.name,
        metric=what.key,
        drifts=[{"metric": one.metric, "share": one.off, "p": one.p} for one in drifts],
    )


@dataclass(frozen=True)
class _Drift:
    """The distance of A′ from A in a metric, as a share. `p` is None with one run each: nothing tells drift
    from scatter."""

    metric: str
    off: float
    p: float | None

    @property
    def differs(self) -> bool:
        """Tell whether it is beyond what is allowed. SAME holds however much the runs scatter: more runs must not be
        let off with more than one is."""
        return self.off > SAME or (self.p is not None and self.off > AGAIN and self.p <= 1 - CONFIDENCE)


def _drift(side: Side, step: tuple[str, int], what: Metric) -> _Drift | None:
    """Return the drift; None where one of the runs has no such figure."""
    again = {name_of(run) for run in side.again}
    first, last = (
        [
            what.value(one) or 0.0
            for one in steps_of([run for run in side.runs if (name_of(run) in again) == at_end], step)
        ]
        for at_end in (False, True)
    )
    if not first or not last or min(first + last) <= 0:
        return None
    log_first, log_last = np.log(first), np.log(last)
    off = float(np.exp(abs(log_last.mean() - log_first.mean())) - 1)
    several = min(len(first), len(last)) > 1
    return _Drift(what.key, off, float(statistics.welch(log_first, log_last).p()) if several else None)


def _by_reason(reasons: Sequence[tuple[Any, StepSummary]]) -> list[Mapping[str, Any]]:
    """Return every reason (`because`) with its `runs`, the one of most runs first."""
    found = [{"because": same[0][0], "runs": _runs(step for _, step in same)} for same in group(reasons, _first)]
    return sorted(found, key=lambda one: -len(one["runs"]))


def _first(pair: tuple[Any, StepSummary]) -> Any:
    return pair[0]


def _runs(steps: Iterable[StepSummary]) -> list[str]:
    return list(dict.fromkeys(step.run for step in steps))
