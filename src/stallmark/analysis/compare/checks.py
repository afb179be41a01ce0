"""May two sides be compared at all? Every check with what was found, whether it holds or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stallmark.analysis.compare.metrics import METRICS, Metric, declared
from stallmark.analysis.compare.settings import differences, in_words, one_pool
from stallmark.analysis.compare.sides import Side, experiment, name_of, steps_of, tells_of
from stallmark.analysis.compare.storage import storage_checks
from stallmark.analysis.compare.summary import Check
from stallmark.analysis.interim import sentence
from stallmark.analysis.points import group
from stallmark.analysis.steady.steadiness import Steadiness, incomparable
from stallmark.analysis.summary import RunSummary, StepSummary
from stallmark.analysis.validity.kinds import ValidityKind
from stallmark.format import listed, per_transaction, percent
from stallmark.stats import student as statistics
from stallmark.stats.thresholds import AGAIN, CONFIDENCE, FOREIGN_IO, GROWTH, READS_AT_ONE_POOL, SAME

TOO_SHORT = "too short to tell"
"""As the steadiness of a step says it."""

MOST_REASONS, MOST_NAMES = 2, 3
"""In a sentence, of runs that must not be compared: all are in what was found."""


def checks(a: Side, b: Side, step: tuple[str, int], what: Metric, among: Sequence[Side]) -> list[Check]:
    """Of one step of two sides, the most fundamental first. `among`: all sides, whose A′ may tell of this pair too."""
    steps_a, steps_b = a.steps(step), b.steps(step)
    both = [*steps_a, *steps_b]
    found = [
        _declared(a, b),
        _settings(a, b),
        _valid(both),
        _driver(both),
        _consistency([*a.runs, *b.runs]),
        _foreign(both),
        _clocks([*a.runs, *b.runs]),
        _growth(a, b),
        _reads(a, b, steps_a, steps_b),
        _steady(both),
        *storage_checks(a, b, both),
        *(_again(side, step, what) for side in among if tells_of(side, a, b)),
    ]
    return [check for check in found if check]


def _declared(a: Side, b: Side) -> Check:
    """What decides is declared before anything runs: where sides declare different metrics, none does."""
    titles = {one.key: one.title for one in METRICS}
    said = {side.name: list(dict.fromkeys(map(declared, side.runs))) for side in (a, b)}
    keys = list(dict.fromkeys(key for keys in said.values() for key in keys))
    differ = listed([f"{titles.get(key, key)} of {name}" for name, keys in said.items() for key in keys])
    return Check(
        "declared metric",
        "all runs declare the same primary metric",
        len(keys) == 1,
        differ if len(keys) > 1 else titles.get(keys[0], keys[0]),
        f"different primary metrics were declared: {differ}" if len(keys) > 1 else "",
    )


def _settings(a: Side, b: Side) -> Check:
    """Every run against the first of A: runs of one side must be alike as well."""
    first = a.runs[0].manifest
    found = [
        one for run in (*a.runs[1:], *b.runs) for one in dict.fromkeys(map(in_words, differences(first, run.manifest)))
    ]
    words = list(dict.fromkeys(found))
    return Check(
        "settings",
        "server, its settings, data, users and machine are the same but for what the variants declare",
        not words,
        listed(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "") if words else "the same",
        f"they were not made with the same settings: {listed(words[:3])}" if words else "",
    )  # fmt: skip


def _valid(steps: Sequence[StepSummary]) -> Check:
    """Every reason once, with its runs."""
    bad = [step for step in steps if _reasons(step)]
    found = _by_reason([(reason, step) for step in bad for reason in _reasons(step)])
    each = [f"{_runs(of, MOST_NAMES)} must not be compared: {reason}" for reason, of in found[:MOST_REASONS]]
    more = f" ({len(found) - MOST_REASONS} more)" if len(found) > MOST_REASONS else ""
    return Check(
        "runs",
        "no run has a reason not to be compared, besides foreign I/O",
        not bad,
        f"{len(bad)} of {len(steps)} have: " + "; ".join(f"{reason} ({_runs(of)})" for reason, of in found)
        if bad
        else f"{len(steps)} runs, none has",
        "; ".join(each) + more,
    )


def _reasons(step: StepSummary) -> list[str]:
    """Why a step must not be compared, without what the check of foreign I/O says."""
    foreign = (step.foreign_io_share or 0.0) > FOREIGN_IO
    return [_clause(sentence(one)) for one in step.invalid if not (foreign and one.kind == ValidityKind.FOREIGN_IO)]


def _driver(steps: Sequence[StepSummary]) -> Check:
    bad = [step for step in steps if step.driver_bound]
    return Check(
        "driver",
        "the driver was not the bottleneck",
        not bad,
        f"it was in {len(bad)} of {len(steps)} runs" if bad else "it was in no run",
        f"the driver was the bottleneck in {_runs(bad)}, so the server could have done more" if bad else "",
    )


def _consistency(runs: Sequence[RunSummary]) -> Check:
    judged = [run for run in runs if any(one.holds is not None for one in run.conditions)]
    broken = [run for run in judged if any(one.holds is False for one in run.conditions)]
    return Check(
        "consistency",
        "the data were right after every run",
        not broken if judged else None,
        f"wrong after {len(broken)} of {len(judged)} runs"
        if broken
        else f"right after {len(judged)} of {len(runs)} runs, as far as checked"
        if judged
        else "no condition was checked after any run",
        f"the data were wrong after {listed([name_of(run) for run in broken])}" if broken else "",
    )


def _foreign(steps: Sequence[StepSummary]) -> Check:
    known = [step for step in steps if step.foreign_io_share is not None]
    most = max((step.foreign_io_share or 0.0 for step in known), default=0.0)
    bad = [step for step in known if (step.foreign_io_share or 0.0) > FOREIGN_IO]
    return Check(
        "foreign I/O",
        f"at most {percent(FOREIGN_IO)} of the I/O was somebody else’s",
        most <= FOREIGN_IO if known else None,
        f"{percent(most)} at most" if known else "not known",
        f"somebody else used the storage: {'up to ' * (len(bad) > 1)}{percent(most)} of its I/O in "
        f"{_runs(bad, MOST_NAMES)}"
        if bad
        else "",
    )


def _clocks(runs: Sequence[RunSummary]) -> Check:
    """Within an experiment runs are numbered: a later one must have begun later by the clock too."""
    back = []
    for name in dict.fromkeys(map(experiment, runs)):
        numbered = sorted(
            (run.manifest.sequence, run.started, name_of(run))
            for run in runs
            if experiment(run) == name and run.manifest.sequence
        )
        back += [later[2] for earlier, later in pairwise(numbered) if later[1] < earlier[1]]
    return Check(
        "clock",
        "runs began in the order in which they were made",
        not back,
        f"{listed(back)} began before the run ahead of it" if back else "in order",
        f"the clock went back before {listed(back)} began" if back else "",
    )


def _growth(a: Side, b: Side) -> Check:
    """Within a run, and between the sizes that runs began with."""
    runs = (*a.runs, *b.runs)
    within = max((abs(run.growth_share) for run in runs if run.growth_share is not None), default=None)
    sizes = [size for run in runs if (size := run.manifest.database.bytes_before)]  # 0: not known
    between = max(sizes) / min(sizes) - 1 if sizes else None
    worst = max((value for value in (within, between) if value is not None), default=None)
    grown = worst is not None and worst > GROWTH
    return Check(
        "data",
        f"the database grew by no more than {percent(GROWTH)}, within runs and from run to run",
        None if worst is None else not grown,
        "size not known"
        if worst is None
        else f"{percent(within or 0.0)} within a run, {percent(between or 0.0)} between runs at most",
        f"the database was up to {percent(worst or 0.0)} larger in one run than in another, or at its end"
        if grown
        else "",
    )


def _reads(a: Side, b: Side, steps_a: Sequence[StepSummary], steps_b: Sequence[StepSummary]) -> Check | None:
    """Reads per transaction at one pool. Of repeated runs the difference must also be more than their scatter."""
    if not one_pool(a.runs[0].manifest, b.runs[0].manifest):
        return None
    known_a, known_b = (
        [step.reads_per_transaction for step in steps if step.reads_per_transaction is not None]
        for steps in (steps_a, steps_b)
    )
    name, asks = ("reads per transaction", f"at the same pool they differ by no more than {percent(READS_AT_ONE_POOL)}")
    if not known_a or not known_b:
        return Check(name, asks, None, "not known")
    before, after = float(np.mean(known_a)), float(np.mean(known_b))
    # Of almost no reads 5 % are nothing: below one in ten transactions a difference is held against a tenth.
    off = abs(after - before) / max(before, after, 0.1)
    words = f"{per_transaction(before)} and {per_transaction(after)}"
    if off <= READS_AT_ONE_POOL:
        return Check(name, asks, True, f"{words}, {percent(off)} apart")
    if min(len(known_a), len(known_b)) > 1:
        p = float(statistics.welch(np.array(known_a), np.array(known_b)).p())
        if p > 1 - CONFIDENCE:
            return Check(
                name,
                f"{asks}, or by no more than runs scatter",
                True,
                f"{words}, {percent(off)} apart, within their scatter (p {p:.2f})",
                f"reads per transaction differ by {percent(off)} ({words}), within the scatter of runs (p {p:.2f})",
            )
    return Check(
        name,
        asks,
        False,
        f"{words}, {percent(off)} apart",
        f"physical reads per transaction differ by {percent(off)} ({words}) though the buffer pool is the same: it had "
        "not filled, or something besides the storage changed",
    )


def _steady(steps: Sequence[StepSummary]) -> Check | None:
    """As far as a run tells of it: one of seconds is too short to."""
    judged = [(step, step.steadiness) for step in steps if step.steadiness]
    if not judged:
        return None
    unsteady = incomparable([found for _, found in judged])
    bad = _by_reason([(found.verdict, step) for step, found in judged if found in unsteady])
    unknown = sum(found.verdict == TOO_SHORT for _, found in judged)
    each = "; ".join(f"{_runs(of)} {verdict}" for verdict, of in bad)
    return Check(
        "steadiness",
        "the runs were steady while they were measured, but for what chance explains",
        False if bad else None if unknown else True,
        f"{sum(len(of) for _, of in bad)} of {len(judged)} not: {each}" if bad else _tolerated(judged),
        "; ".join(f"{_runs(of, MOST_NAMES)} {verdict}" for verdict, of in bad),
    )


def _tolerated(judged: Sequence[tuple[StepSummary, Steadiness]]) -> str:
    """How many were steady, and what is said of the others though it is not held against them."""
    steady = sum(found.verdict == "steady" for _, found in judged)
    said = [f"all {steady} runs" if steady == len(judged) else f"{steady} of {len(judged)} runs"] if steady else []
    for verdict, steps in _by_reason([(found.verdict, step) for step, found in judged]):
        if verdict == TOO_SHORT:
            said.append(f"{len(steps)} of {len(judged)} {verdict}")
        elif verdict != "steady":
            chance = any(found.incomparable and found.verdict == verdict for _, found in judged)
            why = "as chance has it of so many" if chance else "by too little to matter"
            said.append(f"{_runs(steps)} {verdict}, {why}")
    return "; ".join(said)


def _again(side: Side, step: tuple[str, int], what: Metric) -> Check:
    """A′ against A, by the metric that decides and by throughput."""
    asks = f"{side.name}, run again at the end, does the same"
    found = [_drift(side, step, one) for one in dict.fromkeys((what, METRICS[0]))]
    drifts = [one for one in found if one]
    off = [one for one in drifts if one.differs]
    if not off and found[0] is None:
        return Check("A′ = A", asks, None, f"{what.title} of one of them was not measured")
    return Check(
        "A′ = A",
        asks,
        not off,
        "; ".join(f"{one.title} {one.off * 100:.1f} % apart, {one.how}" for one in drifts),
        f"{side.name}, run again at the end, was {percent(off[0].off)} off itself in {off[0].title}, so something else "
        "changed with time"
        if off
        else "",
    )


@dataclass(frozen=True)
class _Drift:
    """How far A′ is off A in a metric, as a share. `p` is None of one run each: nothing tells drift from scatter."""

    title: str
    off: float
    p: float | None

    @property
    def differs(self) -> bool:
        """Beyond SAME however much the runs scatter: more runs must not be let off with more than one is."""
        return self.off > SAME or (self.p is not None and self.off > AGAIN and self.p <= 1 - CONFIDENCE)

    @property
    def how(self) -> str:
        if self.p is None:
            return f"of one run; {percent(SAME)} allowed"
        return f"p {self.p:.2f}; {percent(AGAIN)} allowed, {percent(SAME)} within scatter"


def _drift(side: Side, step: tuple[str, int], what: Metric) -> _Drift | None:
    """None where one of the runs has no such figure."""
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
    return _Drift(what.title, off, float(statistics.welch(log_first, log_last).p()) if several else None)


def _by_reason(reasons: Iterable[tuple[str, StepSummary]]) -> list[tuple[str, list[StepSummary]]]:
    """Every reason with its steps, the one of most steps first."""
    found = [(same[0][0], [step for _, step in same]) for same in group(list(reasons), lambda one: one[0])]
    return sorted(found, key=lambda one: -len(one[1]))


def _runs(steps: Sequence[StepSummary], most: int | None = None) -> str:
    """Their names; beyond `most`, how many more."""
    names = list(dict.fromkeys(step.run for step in steps))
    if most is None or len(names) <= most:
        return listed(names)
    return listed([*names[:most], f"{len(names) - most} more"])


def _clause(sentence: str) -> str:
    """A sentence as the end of another one."""
    name = "-" in sentence.split()[0]  # of a transaction, as Trade-Results
    return (sentence if name else sentence[0].lower() + sentence[1:]).rstrip(".")
