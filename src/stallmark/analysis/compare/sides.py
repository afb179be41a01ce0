"""The sides of a comparison, which runs are pairs, and the ratios of their metrics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Literal

import numpy as np

from stallmark.analysis.compare.summary import Ratio, TransactionRatios
from stallmark.analysis.metrics import (
    METRICS,
    PRIMARIES,
    THROUGHPUT,
    Direction,
    Metric,
    compared_metrics,
    group,
    sampling_uncertainty,
)
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.errors import StallmarkError, WrongOption
from stallmark.stats import inference as statistics
from stallmark.stats.thresholds import REPLICATES

# The sides of a comparison: which runs are pairs, and in what order they were made.

Between = Literal["variants", "experiments"]


def steps_of(runs: Iterable[RunSummary], step: tuple[str, int]) -> list[StepSummary]:
    """Return the steps of that name and number of users."""
    return [run_step for run in runs for run_step in run.steps if (run_step.step, run_step.users) == step]


@dataclass(frozen=True)
class Side:
    """The runs of one variant, in the order of their starts. `again` are those of A′: the first variant, repeated at
    the end."""

    name: str
    runs: tuple[RunSummary, ...]
    again: tuple[RunSummary, ...] = ()

    def steps(self, step: tuple[str, int]) -> list[StepSummary]:
        """Return the step of that name and number of users of every run that has it."""
        return steps_of(self.runs, step)

    def having(self, step: tuple[str, int]) -> "Side":
        """Return the side with only those runs that have the step."""
        runs, again = (tuple(run for run in group_ if steps_of([run], step)) for group_ in (self.runs, self.again))
        return Side(self.name, runs, again)

    @property
    def all_steps(self) -> list[tuple[str, int]]:
        return list(dict.fromkeys((step.step, step.users) for run in self.runs for step in run.steps))


class Unpaired(StrEnum):
    """Reasons why runs are not paired."""

    BLOCKS = "each_side_by_itself"
    FEW_REPEATS = "too_few_repeats"
    EXPERIMENTS = "different_experiments"


@dataclass(frozen=True)
class Pairing:
    """Runs of A and of B; the n-th of each belong together unless they are `unpaired`. `left_out`: without
    a partner."""

    a: tuple[RunSummary, ...]
    b: tuple[RunSummary, ...]
    unpaired: Unpaired | None = None
    left_out: int = 0

    @property
    def paired(self) -> bool:
        return self.unpaired is None


def sides(runs: Sequence[RunSummary], between: Between | None = None) -> list[Side]:
    """Return the sides in the order of their first run: by variant if there are several, else by experiment. Raise
    StallmarkError for fewer than two sides."""
    runs = sorted(runs, key=lambda run: (run.started, run.folder))
    variants = list(dict.fromkeys(map(variant, runs)))
    experiments = list(dict.fromkeys(map(experiment, runs)))
    by = between or ("variants" if len(variants) > 1 else "experiments")
    if by == "variants":
        grouped = [(variant(same[0]), same) for same in group(runs, variant)]
    else:
        several = len(variants) > 1
        grouped = [
            (f"{variant(same[0])}, {experiment(same[0])}" if several else experiment(same[0]), same)
            for same in group(runs, lambda run: (variant(run), experiment(run)))
        ]
    if len(grouped) < 2:
        choice = f"variant {variants[0]!r} of experiment {experiments[0]!r}" if variants else "no variant"
        raise StallmarkError(
            f"There is nothing to compare: all runs that were measured to their end are of {choice}. Name such runs of "
            "another as well."
        )
    return [Side(name, tuple(same)) for name, same in grouped]


def chosen_pairs(all_sides: Sequence[Side], baseline: str | None, between: Between | None) -> list[tuple[Side, Side]]:
    """Pair every side with the baseline; between experiments, pair variants with the same variant of the first
    experiment.

    The baseline may also be an experiment, or a variant: its first side, and then no other variant is paired. Raise
    StallmarkError for a baseline that is not a side.
    """
    by_experiment = between == "experiments" and len({variant(side.runs[0]) for side in all_sides}) > 1
    first = next((side for side in all_sides if baseline in (None, *_names(side, by_experiment))), None)
    if first is None:
        names = ", ".join(
            repr(name) for name in dict.fromkeys(n for side in all_sides for n in _names(side, by_experiment))
        )
        raise WrongOption(f"--baseline {baseline}: no such side. Choose one of {names}.")
    if by_experiment:
        base = experiment(first.runs[0])
        every = baseline in (None, base)
        pairs = [
            (side, other)
            for side in all_sides
            for other in all_sides
            if experiment(side.runs[0]) == base
            and (every or side is first)
            and other is not side
            and variant(side.runs[0]) == variant(other.runs[0])
        ]
        # Without an equal variant elsewhere there is nothing to pair.
        if not pairs:
            missing = "No variant" if every else f"Variant {variant(first.runs[0])!r}"
            raise StallmarkError(
                f"{missing} of {base} was {'' if every else 'not '}run in another of these experiments: name one that "
                f"has {'one of them' if every else 'it'} too."
            )
        return pairs
    return [(first, other) for other in all_sides if other is not first]


def _names(side: Side, by_experiment: bool) -> list[str]:
    return [side.name, *([variant(side.runs[0]), experiment(side.runs[0])] if by_experiment else [])]


def with_again(all_sides: Sequence[Side]) -> list[Side]:
    """Mark the runs of each side that were made again at the end: declared by the scenario, or in another experiment
    after all of another side. (Two repeats in the order ABBA end with A too, and are not meant.)"""
    return [Side(side.name, side.runs, tuple(_again(side, all_sides))) for side in all_sides]


def applies_to_pair(side: Side, a: Side, b: Side) -> bool:
    """Return True if A′ of a side shows drift for a pair: it was made in between, and not by turns in one experiment,
    where drift affects both sides equally."""
    by_turns = not _share_no_experiment(a, b) and not _declared_again(side)
    first, last = min(run.started for run in side.runs), max(run.started for run in side.runs)
    between = any(first <= run.started <= last for run in (*a.runs, *b.runs))
    return bool(side.again) and between and not by_turns


def order(a: Side, b: Side) -> str:
    """Return the order of the runs by time: "ABBA"."""
    made = [(run.started, run.folder, "A") for run in a.runs] + [(run.started, run.folder, "B") for run in b.runs]
    return "".join(letter for *_, letter in sorted(made))


def confounded(a: Side, b: Side) -> bool:
    """Return True if drift over time is part of the difference: one side completely before the other, or A B A′."""
    return _switches(a, b) <= 1 or came_back(a, b) is not None


def came_back(a: Side, b: Side) -> Side | None:
    """Return the side that ran before and, as A′, after the other, or None if neither did."""
    if _switches(a, b) <= 1:
        return None
    return next((side for side in (a, b) if applies_to_pair(side, a, b)), None)


def pair_up(a: Side, b: Side) -> Pairing:
    """Pair the runs of one repeat of one experiment; where those are too few, leave all unpaired."""
    in_blocks = any(run.manifest.scenario.order == "blocks" for run in a.runs + b.runs)
    left, right = _by_repeat(a), _by_repeat(b)
    common = [key for key in left if key in right]
    whole = len(common) == len(a.runs) == len(b.runs)
    if in_blocks:
        return Pairing(a.runs, b.runs, Unpaired.BLOCKS)
    if common and (whole or len(common) >= REPLICATES):
        of_a, of_b = (tuple(side[key] for key in common) for side in (left, right))
        return Pairing(of_a, of_b, left_out=len(a.runs) + len(b.runs) - 2 * len(common))
    return Pairing(a.runs, b.runs, Unpaired.EXPERIMENTS if _share_no_experiment(a, b) else Unpaired.FEW_REPEATS)


def variant(run: RunSummary) -> str:
    return run.manifest.variant.name or run.folder


def name_of(run: RunSummary) -> str:
    """Return its folder with the experiment's: "20251121-101500-demo/01-hdd". Folders alone are not unique."""
    return f"{name}/{run.folder}" if (name := experiment(run)) else run.folder


def experiment(run: RunSummary) -> str:
    return run.manifest.experiment


def _again(side: Side, among: Sequence[Side]) -> list[RunSummary]:
    if declared := _declared_again(side):
        return declared
    ends = [
        max(run.started for run in other.runs)
        for other in among
        if _share_no_experiment(side, other) and _switches(side, other) == 2 and order(side, other)[0] == "A"
    ]
    return [run for run in side.runs if ends and run.started > min(ends)]


def _declared_again(side: Side) -> list[RunSummary]:
    return [run for run in side.runs if run.manifest.again]


def _share_no_experiment(a: Side, b: Side) -> bool:
    """Return True if no experiment holds runs of both."""
    return not set(map(experiment, a.runs)) & set(map(experiment, b.runs))


def _by_repeat(side: Side) -> dict[tuple[str, int], RunSummary]:
    return {(experiment(run), run.manifest.repeat): run for run in side.runs}


def _switches(a: Side, b: Side) -> int:
    letters = order(a, b)
    return sum(letter != other for letter, other in pairwise(letters))


# The ratios of metrics with intervals.


def declared_key(run: RunSummary) -> str:
    """Return the key of the primary metric that the run's scenario declared; throughput for older scenarios, which
    could not declare one."""
    return run.manifest.scenario.primary or PRIMARIES[0]


def ratio(metric: Metric, a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> Ratio:
    """Return B ÷ A over runs, as `ratio_of`."""
    values_a, values_b = ([metric.value(step) for step in steps] for steps in (a, b))
    compared = ratio_of(metric.title, metric.unit, metric.better, values_a, values_b, paired)
    return _widened(compared, 1 + sampling_uncertainty(a, b)) if metric.counted else compared


def _widened(compared: Ratio, by: float) -> Ratio:
    """Return the ratio with an interval that is wider by a factor. A ratio within the interval is not shown."""
    if compared.low is None or compared.high is None or by == 1:
        return compared
    low, high = compared.low / by, compared.high * by
    p = 1.0 if low <= 1 <= high else compared.p
    return replace(compared, low=low, high=high, p=p, p_adjusted=p)


def ratio_of(
    title: str, unit: str, better: Direction | None, a: Sequence[float | None], b: Sequence[float | None], paired: bool
) -> Ratio:
    """Return B ÷ A over runs; `paired`: the n-th of each belong together. Without interval below two runs on a side."""
    compared = Ratio(title, unit, better, None, None, len(a), len(b))
    known = [value for value in (*a, *b) if value is not None and value > 0]
    if not a or not b or len(known) < len(a) + len(b):
        return compared
    log_a, log_b = np.log(known[: len(a)]), np.log(known[len(a) :])
    mean_a, mean_b = float(np.exp(log_a.mean())), float(np.exp(log_b.mean()))
    compared = replace(compared, a=mean_a, b=mean_b, ratio=mean_b / mean_a)
    if min(len(a), len(b)) < 2:
        return compared
    student = (statistics.paired if paired else statistics.welch)(log_a, log_b)
    low, high = (float(np.exp(end)) for end in student.interval())
    df, error, p = float(student.df), float(student.error), float(student.p())
    return replace(compared, low=low, high=high, df=df, p=p, p_adjusted=p, detectable=statistics.detectable(error, df))


def adjusted(family: Sequence[Ratio]) -> list[Ratio]:
    """Return the same with Holm's p-values among those that have one."""
    judged = [measured for measured in family if measured.p is not None]
    p_values = iter(statistics.holm([measured.p for measured in judged if measured.p is not None]))
    return [
        metric_ratio if metric_ratio.p is None else replace(metric_ratio, p_adjusted=next(p_values), family=len(judged))
        for metric_ratio in family
    ]


def other_ratios(primary: str, a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[Ratio]:
    """Return the ratios of every metric but the primary one, adjusted among themselves."""
    return adjusted([ratio(metric, a, b, paired) for metric in compared_metrics() if metric.key != primary])


def transaction_ratios(a: Sequence[StepSummary], b: Sequence[StepSummary], paired: bool) -> list[TransactionRatios]:
    """Return the ratios of every type of transaction, adjusted among all types, or None for a single type."""
    names = [transaction.name for transaction in a[0].transactions] if a else []
    if len(names) < 2:
        return []
    flat = []
    for name in names:
        for metric, title, unit in _OF_TYPES:
            values_a, values_b = ([metric.value_of_type(step, name) for step in side] for side in (a, b))
            flat.append(ratio_of(title, unit, metric.better, values_a, values_b, paired))
    flat = adjusted(flat)
    return [
        TransactionRatios(name, rate, latency) for name, rate, latency in zip(names, flat[::2], flat[1::2], strict=True)
    ]


_OF_TYPES = (
    (THROUGHPUT, "rate", "committed per second"),
    (METRICS["latency"], METRICS["latency"].title, METRICS["latency"].unit),
)


def mean_of_runs(values: Sequence[float | None]) -> float | None:
    """Return the geometric mean, or the arithmetic one if a value is 0, or None if no value is known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return float(np.exp(np.mean(np.log(known)))) if min(known) > 0 else float(np.mean(known))


def declared_metric(runs: Sequence[RunSummary]) -> Metric:
    """Return the primary metric that the scenario of the first run declared; throughput, where it could not yet.

    Raise StallmarkError for one that only a later version knows.
    """
    key = declared_key(runs[0])
    if key not in PRIMARIES:
        raise StallmarkError(
            f"{runs[0].folder} declares the primary metric {key!r}, which this version does not know: "
            "use the version that made it."
        )
    return METRICS[key]
