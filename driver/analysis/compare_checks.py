"""May two sides be compared at all? Every check with what was found, whether it holds or not."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from stallmark.driver.analysis import compare_statistics as statistics
from stallmark.driver.analysis.compare_settings import differences, in_words, one_pool
from stallmark.driver.analysis.compare_sides import Side, experiment, name_of, steps_of
from stallmark.driver.analysis.comparison_summary import Check
from stallmark.driver.analysis.steadiness import incomparable
from stallmark.driver.analysis.summary import RunSummary, StepSummary
from stallmark.driver.analysis.thresholds import (
    AGAIN,
    CONFIDENCE,
    FOREIGN_IO,
    GROWTH,
    READS_AT_ONE_POOL,
    SAME,
)
from stallmark.driver.analysis.words import listed, per_transaction, percent

TOO_SHORT = "too short to tell"
"""As the steadiness of a step says it."""


def checks(a: Side, b: Side, step: tuple[str, int]) -> list[Check]:
    """Of one step of two sides, the most fundamental first."""
    steps_a, steps_b = a.steps(step), b.steps(step)
    both = [*steps_a, *steps_b]
    found = [
        _settings(a, b),
        _valid(both),
        _driver(both),
        _consistency([*a.runs, *b.runs]),
        _foreign(both),
        _clocks([*a.runs, *b.runs]),
        _growth(a, b),
        _reads(a, b, steps_a, steps_b),
        _steady(both),
        _again(a, step),
    ]
    return [check for check in found if check]


def _settings(a: Side, b: Side) -> Check:
    """Every run against the first of A: runs of one side must be alike as well."""
    first = a.runs[0].manifest
    found = [
        one
        for run in (*a.runs[1:], *b.runs)
        for one in dict.fromkeys(map(in_words, differences(first, run.manifest)))
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
    bad = [step for step in steps if step.invalid]
    words = list(dict.fromkeys(sentence for step in bad for sentence in step.invalid))
    return Check(
        "runs",
        "no run has a reason not to be compared",
        not bad,
        f"{len(bad)} of {len(steps)} have: {words[0]}" if bad else f"{len(steps)} runs, none has",
        f"{_runs(bad)} must not be compared: {_clause(words[0])}" if bad else "",
    )


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
    judged = [run for run in runs if any(one.get("holds") is not None for one in run.conditions)]
    broken = [run for run in judged if any(one.get("holds") is False for one in run.conditions)]
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
    return Check(
        "foreign I/O",
        f"at most {percent(FOREIGN_IO)} of the I/O was somebody else’s",
        most <= FOREIGN_IO if known else None,
        f"{percent(most)} at most" if known else "not known",
        f"somebody else used the storage: {percent(most)} of its I/O" if most > FOREIGN_IO else "",
    )


def _clocks(runs: Sequence[RunSummary]) -> Check:
    """Within an experiment runs are numbered: a later one must have begun later by the clock too."""
    back = []
    for name in dict.fromkeys(map(experiment, runs)):
        numbered = sorted(
            (run.manifest["sequence"], run.started, name_of(run))
            for run in runs
            if experiment(run) == name and run.manifest.get("sequence")
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
    sizes = [
        size for run in runs if (size := (run.manifest.get("database") or {}).get("bytes_before"))
    ]  # 0: not known
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
    name, asks = (
        "reads per transaction",
        f"at the same pool they differ by no more than {percent(READS_AT_ONE_POOL)}",
    )
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
            return Check(name, asks, None, f"{words}, {percent(off)} apart, within their scatter (p {p:.2f})")
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
    bad = [(step, found) for step, found in judged if found in unsteady]
    unknown = sum(found.verdict == TOO_SHORT for _, found in judged)
    return Check(
        "steadiness",
        "every run was steady while it was measured",
        False if bad else None if unknown else True,
        f"{len(bad)} of {len(judged)} {bad[0][1].verdict}"
        if bad
        else f"{unknown} of {len(judged)} runs too short to tell"
        if unknown
        else f"all {len(judged)} runs",
        f"{_runs([step for step, _ in bad])} {bad[0][1].verdict}" if bad else "",
    )


def _again(a: Side, step: tuple[str, int]) -> Check | None:
    """A′ against A. Of one run each nothing tells drift from scatter, and more than SAME is called a drift."""
    if not a.again:
        return None
    again = {name_of(run) for run in a.again}
    first, last = (
        [
            one.result_tps
            for one in steps_of([run for run in a.runs if (name_of(run) in again) == at_end], step)
        ]
        for at_end in (False, True)
    )
    asks = f"{a.name}, run again at the end, does the same"
    if not first or not last or min(first + last) <= 0:
        return Check("A′ = A", asks, None, "one of them was not measured")
    log_first, log_last = np.log(first), np.log(last)
    off = float(np.exp(abs(log_last.mean() - log_first.mean())) - 1)
    if min(len(first), len(last)) > 1:
        p = float(statistics.welch(log_first, log_last).p())
        differs, how = off > AGAIN and p <= 1 - CONFIDENCE, f", p {p:.2f}"
    else:
        differs, how = off > SAME, f", of one run; {percent(SAME)} allowed"
    return Check(
        "A′ = A",
        asks,
        not differs,
        f"{off * 100:.1f} % apart{how}",
        f"{a.name}, run again at the end, was {percent(off)} off itself, so something else changed with time"
        if differs
        else "",
    )


def _runs(steps: Sequence[StepSummary]) -> str:
    return listed(list(dict.fromkeys(step.run for step in steps)))


def _clause(sentence: str) -> str:
    """A sentence as the end of another one."""
    name = "-" in sentence.split()[0]  # of a transaction, as Trade-Results
    return (sentence if name else sentence[0].lower() + sentence[1:]).rstrip(".")
