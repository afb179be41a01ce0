"""Every kind of finding beside a summary in which its sentence would be false, and is not told.

A case gives the findings of two summaries that differ in one thing: with the first the kind is told, with the second,
of which its sentence would be false, it is not. A kind that another test holds so is registered with that test. A new
kind needs one of the two, here or in another file of this name.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from support import report_summaries as summaries
from support.comparisons import QUIET, made, with_manifest, with_step
from support.searches import searched
from support.steps import changed_step
from support.wording import kinds, kinds_in

from stallmark.analysis.attribution import IoTime
from stallmark.analysis.bottleneck import DeviceKind, device_verdict
from stallmark.analysis.cause import explain
from stallmark.analysis.cause_evidence import CauseKind, ChangeKind
from stallmark.analysis.cautions import CautionKind, PageCacheKind, cautions
from stallmark.analysis.ceiling import (
    CeilingKind,
    FlashKind,
    MailIoKind,
    ceiling_findings,
    ceilings,
    mailboxes_of_steps,
)
from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.plan import plan_runs
from stallmark.analysis.compare.settings import DifferenceKind, StorageKind, undeclared_differences
from stallmark.analysis.compare.summary import CheckKind, PairKind, ReasonKind
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.conclusions import conclusions
from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.environment_cautions import AboveKind, ArrayKind, HistoryKind, ServerKind, shallow_history
from stallmark.analysis.finding import (
    DataKind,
    EndKind,
    ExperimentKind,
    Finding,
    Kind,
    caution,
    early_ends,
    info,
    mixed_versions,
)
from stallmark.analysis.load_steps import LoadsKind, few_done
from stallmark.analysis.metrics import points
from stallmark.analysis.pool_curve import CurveKind
from stallmark.analysis.profile_rates import ProfileKind
from stallmark.analysis.queries import (
    QueryCell,
    QueryComparison,
    QueryKind,
    QueryVariant,
    query_cautions,
    query_findings,
)
from stallmark.analysis.read.active_set import ActiveSet, FlashUse
from stallmark.analysis.read.io import MailIo
from stallmark.analysis.read.times import Cycles, CyclesBy, ReadKind
from stallmark.analysis.read.transactions import MaintenanceSummary
from stallmark.analysis.run import RunKind, RunSummary
from stallmark.analysis.steady import CycleKind, Judgement, Steadiness, SteadyKind
from stallmark.analysis.step_summary import Law, LawKind, NoteKind, StepCause, StepSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.analysis.validity_gates import Gate, GateKind
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Condition
from stallmark.record.manifest.workload import TradeHistory, Waited

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Given:
    """Runs and steps of known truth: a run that may be compared, and two steps whose reads take 27 and 9 ms."""

    sound: RunSummary
    slow: StepSummary
    fast: StepSummary
    folder: Callable[[str], Path]  # a new one


Case = Callable[[Given], tuple[Iterable[Any], Iterable[Any]]]
CASES: dict[Kind, Case] = {}
DRIFTING = info(SteadyKind.TREND, of="TPS", seconds=60, drift=0.3, drift_low=0.2, drift_high=0.4, p=1e-9)


@pytest.fixture(scope="module")
def given(sound, slow, fast, tmp_path_factory) -> Given:
    return Given(sound, slow, fast, tmp_path_factory.mktemp)


def case(kind: Kind) -> Callable[[Case], Case]:
    def register(function: Case) -> Case:
        assert kind not in CASES
        CASES[kind] = function
        return function

    return register


# The bottleneck of a step. -----------------------------------------------------------------------------------


def judged(io: float) -> Finding | None:
    """The verdict on a device for which users wait this share of their time."""
    shares = {"io": io, "cpu": 1 - io} | dict.fromkeys(("lock", "wal", "client", "other"), 0.0)
    return device_verdict(shares, 0.9, None, 0.2, False, (IoTime(), IoTime()), None)


# The conclusions of an experiment. ---------------------------------------------------------------------------


def of_variants(*changes: dict[str, Any], axis: str = "variant", repeats: int = 1, **of_runs: Any) -> list[Finding]:
    """The conclusions of variants with these changes to a step."""
    runs = []
    for number, more in enumerate(changes, 1):
        for repeat in range(1, repeats + 1):
            name = f"v{number}"
            at = {"variant": name, "key": f"{name}-{repeat}", "run": f"{name}-{repeat}", "repeat": repeat}
            step = changed_step(summaries.step(device=summaries.VDA, emulated_roles=()), **at)
            runs.append(summaries.run([changed_step(step, **more)], **of_runs))
    return list(conclusions(axis, runs))


def of_runs(*runs: RunSummary, axis: str = "variant") -> list[Finding]:
    return list(conclusions(axis, runs))


FOREIGN = [summaries.FOREIGN_IO]
BOUND = [caution(DriverKind.EXECUTOR_CPU, machine=0, share=0.97)]


@case(ExperimentKind.DATA_WRONG)
def _(_):
    wrong, right, unknown = (Condition(name="balances agree", holds=holds) for holds in (False, True, None))
    return of_variants({}, conditions=[right, wrong]), of_variants({}, conditions=[right, unknown])


@case(ExperimentKind.NOTHING_MEASURED)
def _(_):
    run = summaries.run([summaries.step()])
    return of_runs(replace(run, steps=[])), of_runs(run)


@case(ExperimentKind.STEPS_LEFT_OUT)
def _(_):
    return of_variants({}, {"invalid": FOREIGN}), of_variants({}, {})


@case(ExperimentKind.NO_STEADY_STATE)
def _(_):
    steady = Steadiness(Judgement.STEADY, info(SteadyKind.STEADY), "TPS", 60)
    never = replace(steady, verdict=Judgement.NEVER, finding=DRIFTING)
    return of_variants({"steadiness": never}), of_variants({"steadiness": steady})


@case(ExperimentKind.MOST_USERS)
def _(_):
    [run] = summaries.user_ramp().runs
    return of_runs(run, axis="users"), of_runs(replace(run, steps=run.steps[:1]), axis="users")


@case(ExperimentKind.POOL)
def _(_):
    def sized(*sizes: int) -> list[Finding]:
        return of_variants(*({"buffer_pool_bytes": size} for size in sizes), axis="buffer_pool")

    return sized(16 << 20, 64 << 20), sized(16 << 20, 16 << 20)


@case(ExperimentKind.POOL_GAIN)
def _(_):
    def sized(*tps: float) -> list[Finding]:
        steps = [{"buffer_pool_bytes": size << 20, "tps": rate} for size, rate in zip((16, 32, 64), tps, strict=True)]
        return of_variants(*steps, axis="buffer_pool")

    return sized(100.0, 110.0, 200.0), sized(100.0, 200.0, 90.0)


@case(ExperimentKind.DEVICES)
def _(_):
    def on(**more: Any) -> list[Finding]:
        return of_variants({"device": summaries.VDA}, {"device": summaries.NVME} | more, axis="device")

    return on(), on(reads_per_transaction=4.0)


@case(ExperimentKind.DEVICES_UNLIKE)
def _(_):
    def on(*roles: str) -> list[Finding]:
        return of_variants(
            {"device": summaries.VDA}, {"device": summaries.NVME, "emulated_roles": roles}, axis="device"
        )

    return on("data"), on()


@case(ExperimentKind.ONE_VARIANT)
def _(_):
    return of_variants({}), of_variants({}, {})


@case(ExperimentKind.VARIANTS_ALIKE)
def _(_):
    return of_variants({"tps": 100.0}, {"tps": 104.0}), of_variants({"tps": 100.0}, {"tps": 106.0})


@case(ExperimentKind.VARIANTS)
def _(_):
    return of_variants({"tps": 100.0}, {"tps": 106.0}), of_variants(
        {"tps": 100.0}, {"tps": 106.0, "driver_bound": BOUND}
    )


@case(ExperimentKind.STREAMS)
def _(_):
    streams: Any = SimpleNamespace(streams=2, per_hour=40.0)
    return of_variants({}, {"streams": streams}), of_variants({}, {})


@case(ExperimentKind.DISTURBED)
def _(_):
    return of_variants({}, {"maintenance": MaintenanceSummary("backup", 1, 9.0, 0.5, False)}), of_variants({}, {})


@case(ExperimentKind.OVER_LIMIT)
def _(_):
    def gated(passed: bool, voids: bool = False) -> list[Finding]:
        return of_variants({"gates": [Gate(GateKind.LIMITS, 9.0, 5.0, "ms", passed, voids)]})

    return gated(False), gated(True)


@case(ExperimentKind.DRIVER_LIMITS)
def _(_):
    return of_variants({}, {"driver_bound": BOUND}), of_variants({}, {})


@case(ExperimentKind.ONE_RUN_EACH)
def _(_):
    return of_variants({}, {}), of_variants({}, {}, repeats=2)


@case(ExperimentKind.SPREAD)
def _(_):
    return of_variants({}, {}, repeats=2), of_variants({}, {})


@case(ExperimentKind.RATE_GIVEN)
def _(given):
    def arriving(arrivals: str, **more: Any) -> list[Any]:
        def change(run: RunSummary) -> RunSummary:
            [step] = run.manifest.steps
            return with_manifest(run, steps=(step.changed(arrivals=arrivals),), **more)

        runs = [change(run) for run in made(given.sound, **QUIET)]
        return [*cautions(runs), *compare_runs(runs).pairs[0].cautions]

    return arriving("poisson"), arriving("closed")


# Pairs, and why they must not be compared. -------------------------------------------------------------------


def compared(given: Given, change: Callable[[RunSummary], RunSummary] = lambda run: run, **tps: Any) -> list[Any]:
    """The comparison of A with B, whose runs are changed."""
    order = tps.pop("order", "")
    runs = made(given.sound, order, **(tps or QUIET))
    return [compare_runs([change(run) if run.steps[0].variant == "B" else run for run in runs])]


def pairs(kind: Kind, true: Callable[[Given], list[Any]], false: Callable[[Given], list[Any]] = compared) -> None:
    case(kind)(lambda given: (true(given), false(given)))


ALIKE = {"A": [400.0, 404.0, 396.0], "B": [402.0, 398.0, 403.0]}
ONCE = {"A": [400.0], "B": [480.0]}
pairs(PairKind.DIFFERENCE, compared, lambda given: compared(given, **ALIKE))
pairs(PairKind.NO_DIFFERENCE, lambda given: compared(given, **ALIKE))
pairs(PairKind.INDICATIVE, lambda given: compared(given, **ONCE))
pairs(PairKind.NOT_COMPARABLE, lambda given: compared(given, bound))
pairs(PairKind.ONE_SIDE_FIRST, lambda given: compared(given, order="AAABBB", **QUIET))
pairs(PairKind.SEVERAL_PAIRS, lambda given: compared(given, **QUIET, C=[400.0, 403.0, 404.0]))
pairs(PairKind.FLASH_WARMING, lambda given: compared(given, warming))
pairs(PairKind.INCOMPLETE, lambda given: cut(given))
pairs(PairKind.READS_WITHIN_SCATTER, lambda given: scattered(given, 2.0, 2.3, 2.6, 2.2, 1.9, 2.5))
pairs(PairKind.CHECKS_UNKNOWN, lambda given: compared(given, lambda run: replace(run, conditions=[])))


def cut(given: Given) -> list[Any]:
    first, *others = made(given.sound, **QUIET)
    return [compare_runs([replace(first, incomplete_because="stopped"), *others])]


def bound(run: RunSummary) -> RunSummary:
    return with_step(run, driver_bound=BOUND)


def warming(run: RunSummary) -> RunSummary:
    use = FlashUse("cache", 1 << 30, 0.5, 0.5, 8.0, 0.0, None, None, 1 << 29, 0.4, 0.6, warming=True)
    return with_step(run, flash=use)


def scattered(given: Given, *reads: float) -> list[Any]:
    runs = zip(made(given.sound, **QUIET), reads, strict=True)
    return [compare_runs([with_step(run, reads_per_transaction=one) for run, one in runs])]


# Causes. -----------------------------------------------------------------------------------------------------

THREE = (-0.02, 0.0, 0.02)


def repeated(step: StepSummary, **parts_ms: float) -> list[StepSummary]:
    """Three runs of the step with these parts of the response time."""
    budget = step.cause.budget
    runs = []
    for spread in THREE:
        parts = {name: ms * (1 + spread) for name, ms in (budget.parts_ms | parts_ms).items()}
        changed = replace(budget, parts_ms=parts, response_ms=sum(parts.values()))
        runs.append(changed_step(step, cause=replace(step.cause, budget=changed)))
    return runs


def explained(a: Sequence[StepSummary], b: Sequence[StepSummary]) -> list[Any]:
    return [explain(a, b)]


def by_reads(given: Given) -> list[Any]:
    return explained([given.slow] * 3, [given.fast] * 3)


def by_cpu(given: Given) -> list[Any]:
    return explained(repeated(given.slow, cpu=30.0), repeated(given.slow, cpu=10.0))


def by_fewer_reads(given: Given) -> list[Any]:
    read = given.slow.cause.budget.parts_ms["read"]
    fewer = [changed_step(step, reads_per_transaction=1.0) for step in repeated(given.slow, read=read / 2)]
    return explained(repeated(given.slow), fewer)


def by_both(given: Given, lock: float = 15.0) -> list[Any]:
    parts = given.slow.cause.budget.parts_ms
    return explained(repeated(given.slow), repeated(given.slow, read=parts["read"] + 10, lock=parts["lock"] + lock))


def the_same(given: Given, **parts_ms: float) -> list[Any]:
    return explained(repeated(given.slow, **parts_ms), repeated(given.slow, **parts_ms)[::-1])


def undivided(given: Given, ms: float = 40.0) -> list[Any]:
    return explained(repeated(given.slow, unknown=1.0), repeated(given.slow, unknown=ms))


def with_causes(given: Given, **changes: Any) -> list[Any]:
    return explained([given.slow] * 3, [changed_step(given.fast, cause=replace(given.fast.cause, **changes))] * 3)


LITTLE = {"read": 0.5, "log": 0.5, "other_io": 0.0, "cpu": 8.0}
pairs(CauseKind.STORAGE, by_reads, by_cpu)
pairs(CauseKind.NOT_STORAGE, by_cpu, by_reads)
pairs(CauseKind.ONE_OF_SEVERAL, by_both, by_reads)
pairs(CauseKind.UNCHANGED, the_same, by_reads)
pairs(CauseKind.LITTLE_IO, lambda given: the_same(given, **LITTLE), the_same)
pairs(
    CauseKind.NOT_LOOKED_AT,
    lambda given: explained([changed_step(given.slow, cause=StepCause(None))], [given.fast]),
    by_reads,
)
pairs(CauseKind.NOT_DIVIDED, undivided, by_reads)
pairs(CauseKind.LOCKS, by_both, by_reads)
pairs(ChangeKind.READ_TIME, by_reads, by_fewer_reads)
pairs(ChangeKind.PART, by_cpu, by_reads)
pairs(ChangeKind.NUMBER, by_fewer_reads, by_reads)


def by_cpu_time(given: Given, cpu_ms: float | None = 30.0) -> list[Any]:
    """The CPU part fell; so did the CPU time of a transaction, from `cpu_ms`."""

    def using(steps: list[StepSummary], ms: float | None) -> list[StepSummary]:
        return [
            changed_step(one, cause=replace(one.cause, demands=replace(one.cause.demands, cpu_ms=ms))) for one in steps
        ]

    return explained(using(repeated(given.slow, cpu=30.0), cpu_ms), using(repeated(given.slow, cpu=10.0), 10.0))


def by_io_above(given: Given, above: float = 0.9) -> list[Any]:
    """Reads took longer, `above` of it above the device."""

    def of(read: float, share: float) -> list[StepSummary]:
        steps = repeated(given.slow, read=read)
        budgets = [replace(one.cause.budget, above_ms={"read": read * share}) for one in steps]
        return [
            changed_step(one, cause=replace(one.cause, budget=budget))
            for one, budget in zip(steps, budgets, strict=True)
        ]

    return explained(of(20.0, 0.0), of(90.0, above))


def by_reads_that_scatter(given: Given, scatter: float = 20.0) -> list[Any]:
    """Reads took 30 ms more in every sum, while reads and CPU of single runs went opposite ways."""

    def of(read: float) -> list[StepSummary]:
        apart = (-scatter, scatter, 0.0)
        return [repeated(given.slow, read=read + one, cpu=30.0 - one)[n] for n, one in enumerate(apart)]

    return explained(of(30.0), of(60.0))


pairs(CauseKind.UNCERTAIN, by_reads_that_scatter, lambda given: by_reads_that_scatter(given, 0.0))
NO_IO = {"read": 0.0, "log": 0.0, "other_io": 0.0}
pairs(ChangeKind.CPU_TIME, by_cpu_time, lambda given: by_cpu_time(given, 10.0))
pairs(ChangeKind.ABOVE, by_io_above, lambda given: by_io_above(given, 0.1))
pairs(
    ChangeKind.LITTLE_IO,
    lambda given: explained(repeated(given.slow, cpu=30.0, **NO_IO), repeated(given.slow, cpu=10.0, **NO_IO)),
    by_cpu,
)


@case(CauseKind.NO_DEVICE)
def _(given):
    budget = given.fast.cause.budget
    return (
        with_causes(given, budget=replace(budget, device_known=False)),
        with_causes(given, budget=replace(budget, device_known=True)),
    )


@case(CauseKind.LAW_FAILED)
def _(given):
    open_law = Law(info(LawKind.READS), 1.0, 2.0, 0.05, closed=False)
    return with_causes(given, laws=[open_law]), with_causes(given, laws=[replace(open_law, closed=None)])


# Ceilings. ---------------------------------------------------------------------------------------------------


def ceiling(*runs: RunSummary) -> list[Any]:
    return list(ceiling_findings(ceilings(runs), Claims(runs)))


def at_the_end(run: RunSummary, *changes: dict[str, Any]) -> RunSummary:
    """The search, with changes to its steps of 7 users, the lowest level that broke."""
    steps, left = [], list(changes)
    for step in run.steps:
        steps.append(changed_step(step, **left.pop(0)) if step.users == 7 and left else step)
    return replace(run, steps=steps)


ENDS: dict[CeilingKind, dict[str, Any]] = {
    CeilingKind.AT_LEAST: {"outcome": "at_least", "holds": 64, "breaks": None},
    CeilingKind.NONE: {"outcome": "none", "holds": None, "breaks": 4},
    CeilingKind.UNCONFIRMED: {"outcome": "unconfirmed"},
    CeilingKind.ENDED: {"outcome": None, "holds": None, "breaks": None},
}
for end, outcome in ENDS.items():
    pairs(
        end,
        lambda given, outcome=outcome: ceiling(searched(given.sound, **outcome)),
        lambda given: ceiling(searched(given.sound)),
    )
pairs(
    CeilingKind.REPEATS,
    lambda given: ceiling(searched(given.sound), searched(given.sound, repeat=2)),
    lambda given: ceiling(searched(given.sound)),
)
LIMITED, FREE = ({"device_verdict": judged(share)} for share in (0.9, 0.1))
pairs(
    CeilingKind.LIMIT,
    lambda given: ceiling(at_the_end(searched(given.sound), LIMITED, LIMITED)),
    lambda given: ceiling(at_the_end(searched(given.sound), LIMITED, FREE)),
)
pairs(
    CeilingKind.DRIVER,
    lambda given: ceiling(at_the_end(searched(given.sound), {"driver_bound": BOUND})),
    lambda given: ceiling(searched(given.sound)),
)


# Mailboxes. --------------------------------------------------------------------------------------------------


def mailboxes(*seen: MailIo | None) -> list[Any]:
    steps = [replace(summaries.step(key=str(number)), mail_io=io) for number, io in enumerate(seen)]
    return list(mailboxes_of_steps(points(steps)))


COUNTED = MailIo(24.0, 200, 8.0, None)
pairs(MailIoKind.MAILBOXES, lambda _: mailboxes(COUNTED, COUNTED), lambda _: mailboxes(COUNTED, None))


# Runs of queries. --------------------------------------------------------------------------------------------


def queries(
    runs: int = 3, plan_changed: bool = False, dops: Sequence[int | None] = (None,), seconds: float = 9.0, **more: Any
) -> list[Any]:
    """The findings and cautions of queries in two variants."""
    cells = [QueryCell("Q1", dop, seconds, 0.5, 1, plan_changed=plan_changed) for dop in dops]
    variants = [
        QueryVariant(name, summaries.VDA, None, runs, 9.0, None, None, cells, 0.5, 1) for name in ("disks", "flash")
    ]
    found = QueryComparison(**{"baseline": "disks", "phase": "power", "factor": 1} | more, names=["Q1"], dops=[*dops],
                            variants=variants)  # fmt: skip
    claims: Any = SimpleNamespace(reasons_against=lambda a, b: [])
    return [*query_findings(found, [], claims), *query_cautions(found)]


pairs(QueryKind.FEW_RUNS, lambda _: queries(runs=2), lambda _: queries())
pairs(QueryKind.PLANS, lambda _: queries(plan_changed=True), lambda _: queries())
pairs(QueryKind.PARALLEL, lambda _: queries(dops=(1, 4)), lambda _: queries(dops=(4,)))
pairs(QueryKind.DOPS_IN_TURN, lambda _: queries(dops=(1, 4)), lambda _: queries(dops=(4,)))
pairs(QueryKind.ROUNDED_UP, lambda _: queries(seconds=0.09), lambda _: queries(seconds=0.1))
pairs(QueryKind.OTHER_PARAMETERS, lambda _: queries(phase="throughput"), lambda _: queries())
pairs(QueryKind.NO_TPC_RESULT, lambda _: queries(), lambda _: of_variants({}))


# Loads. ------------------------------------------------------------------------------------------------------

pairs(LoadsKind.FEW_DONE, lambda _: few_done(summaries.step(tps=0.01)), lambda _: few_done(summaries.step()))


# Experiments. ------------------------------------------------------------------------------------------------


@case(EndKind.EXPERIMENT)
def _(given):
    ended = with_manifest(given.sound, ended={"before": "C", "because": "the array is full"}).manifest
    return list(early_ends([ended])), list(early_ends([given.sound.manifest]))


@case(DataKind.MIXED_VERSIONS)
def _(given):
    def versions(*some: int | None) -> list[Any]:
        workload = given.sound.manifest.workload
        changed = [with_manifest(given.sound, workload=workload.changed(version=one)).manifest for one in some]
        return [found for found in [mixed_versions(changed)] if found]

    return versions(1, 2), versions(1, None)


@case(PairKind.CAME_BACK)
def _(given):
    def again(count: int) -> list[Any]:
        order = "AAABBB" + "A" * count
        runs = made(given.sound, order, A=[400.0, 402.0, 401.0, *[400.0] * count], B=[480.0, 478.0, 484.0])
        scenario = given.sound.manifest.scenario.changed(order="blocks")
        return [compare_runs([with_manifest(run, scenario=scenario, again=n >= 6) for n, run in enumerate(runs)])]

    return again(3), again(0)


# Cautions, the first of which stand on the slide. -------------------------------------------------------------


def cautioned(
    step: dict[str, Any] | None = None, of_run: dict[str, Any] | None = None, times: int = 1, **of_manifest: Any
) -> list[Any]:
    """The cautions of a run on a real device, with these changes, or of several that are alike."""
    changed = changed_step(summaries.step(device=summaries.VDA, emulated_roles=()), **(step or {}))
    run = replace(summaries.run([changed]), **({"growth_share": 0.0} | (of_run or {})))
    return list(cautions([with_manifest(run, **{"collectors": {}} | of_manifest)] * times))


def by_step(kind: Kind, told: dict[str, Any], untested_steps: dict[str, Any]) -> None:
    pairs(kind, lambda _: cautioned(told), lambda _: cautioned(untested_steps))


def cycles(count: int, whole: bool = True) -> dict[str, Any]:
    return {"cycles": Cycles(count, count, 0, 60, 60, whole, 20.0, CyclesBy.COUNT, 1.0, info(CycleKind.WHOLE))}


def as_judged(verdict: Judgement) -> dict[str, Any]:
    return {"steadiness": Steadiness(verdict, info(SteadyKind.STEADY), "TPS", 60)}


def waited(steady: bool) -> dict[str, Any]:
    return {"waited": Waited(at_least_s=1, at_most_s=9, seconds=9, steady=steady)}


AS_STEADY = as_judged(Judgement.STEADY)
STEP_CAUTIONS: dict[Kind, tuple[dict[str, Any], dict[str, Any]]] = {
    CautionKind.EMULATED: ({"emulated_roles": ("data",)}, {"emulated_roles": ()}),
    CautionKind.EMULATED_LATE: ({"device_late_share": 0.2}, {"device_late_share": 0.01}),
    CautionKind.FEW_CHECKPOINTS: (cycles(2), cycles(3)),
    CautionKind.IRREGULAR_CHECKPOINTS: (cycles(3, whole=False), cycles(3)),
    CautionKind.UNSTEADY: (as_judged(Judgement.NEVER), AS_STEADY),
    CautionKind.WARM_UP_MEASURED: (as_judged(Judgement.LATE), AS_STEADY),
    CautionKind.TOO_SHORT: (as_judged(Judgement.TOO_SHORT), AS_STEADY),
    CautionKind.NOT_STEADY_IN_TIME: (waited(False), waited(True)),
    CautionKind.BESIDE: ({"beside": ("mail",)}, {"beside": ()}),
    CautionKind.CPU_IN_READ_TIME: ({"data_io": summaries.io(read_ms=0.5)}, {"data_io": summaries.io(read_ms=9.0)}),
    ArrayKind.FLASH_WARMING: (
        {"flash": FlashUse("cache", 1, 0.5, 0.5, 8.0, 0.0, None, None, 1, 0.4, 0.6, warming=True)},
        {"flash": FlashUse("cache", 1, 0.5, 0.5, 8.0, 0.0, None, None, 1, 0.4, 0.4)},
    ),
}  # fmt: skip
for one, (told, untested_steps) in STEP_CAUTIONS.items():
    by_step(one, told, untested_steps)

REFUSED = Condition(name="balances agree", holds=None, refused="The server has no memory left.")
HOST = {"title": "Host", "help": "", "interval_s": 1.0, "unavailable": None}
RUN_CAUTIONS: dict[Kind, tuple[dict[str, Any], dict[str, Any]]] = {
    CautionKind.DERIVED: ({}, {"workload": {"name": "mine"}}),
    CautionKind.LOCAL_DRIVER: (
        {"collectors": {"host": HOST}},
        {"collectors": {"host": HOST | {"unavailable": "apart"}}},
    ),
    CautionKind.OWN_ADDRESS: ({"server": {"at_own_address": True}}, {"server": {"at_own_address": False}}),
    CautionKind.RESTORED: ({"reset": "restore shop.bak"}, {"reset": "continue"}),
    CautionKind.NOT_RESET: ({"reset": "continue", "times": 2}, {"reset": "restore", "times": 2}),
    CautionKind.COLD_START: ({"cache_start": "cold"}, {"cache_start": "prefilled"}),
    CautionKind.GREW: ({"of_run": {"growth_share": 0.2}}, {"of_run": {"growth_share": 0.01}}),
    CautionKind.RESUMED: ({"resumed_after_s": 90.0}, {"resumed_after_s": None}),
    CautionKind.CONDITION_REFUSED: ({"of_run": {"conditions": [REFUSED]}}, {"of_run": {"conditions": []}}),
}
for one, (told, untested_steps) in RUN_CAUTIONS.items():
    pairs(
        one,
        lambda _, told=told: cautioned(**told),
        lambda _, untested_steps=untested_steps: cautioned(**untested_steps),
    )


FITS = caution(ReadKind.ACTIVE_FITS_DRAM, active_bytes=1, at_most=False, dram_bytes=2)
by_step(
    ArrayKind.ACTIVE,
    {"active": ActiveSet(None, None, None, None, None, None, None, [FITS])},
    {"active": ActiveSet(None, None, None, None, None, None, None, [])},
)
CONDITIONED = {"steady": False, "size_bytes": 1 << 30, "round_s": 5.0, "rounds_ms": [2.0, 5.0, 9.0]}
pairs(
    ArrayKind.NOT_PRECONDITIONED,
    lambda _: cautioned(precondition=CONDITIONED),
    lambda _: cautioned(precondition=CONDITIONED | {"steady": True}),
)


@case(HistoryKind.SHALLOW)
def _(_):
    deep, shallow = (TradeHistory(5_000, days) for days in (300.0, 1.0))
    found = [shallow_history(one, ["memory"], "PostgreSQL") for one in (shallow, deep)]
    return found[:1], [one for one in found[1:] if one]


@case(PairKind.PLAN_LEFT_OUT)
def _(given):
    good = made(given.sound, A=[400.0, 404.0, 402.0])
    plans = [plan_runs(runs, 0.05) for runs in ([bound(made(given.sound, A=[300.0])[0]), *good], good)]
    return [plans[0].left_out], [one.left_out for one in plans[1:] if one.left_out]


@case(CautionKind.NOT_SHOWN)
def _(_):
    span = ("2026-01-01T00:00:00+00:00", "2026-01-01T00:01:00+00:00")
    file = {"name": "array", "file": "a.csv", "format": "csv", "time_zone": "UTC", "offset_s": 0.0, "span": span}
    external = {"external": {"array": file | {"samples": 60, "interval_s": 1.0, "counters": 1}}}
    with patch("stallmark.capabilities.installed", return_value=()):
        return cautioned(**external), cautioned()


@case(CautionKind.FEW_RUNS)
def _(given):
    return list(cautions(made(given.sound, A=[1.0], B=[2.0]))), list(cautions(made(given.sound, **QUIET)))


# Settings that must be alike. --------------------------------------------------------------------------------

DIFFERENCES: dict[DifferenceKind, dict[str, Any]] = {
    DifferenceKind.WORKLOAD: {"workload": {"name": "mail"}},
    DifferenceKind.WORKLOAD_VERSION: {"workload": {"version": 99}},
    DifferenceKind.SCALE: {"workload": {"scale": {"branches": 99}}},
    DifferenceKind.SEED: {"workload": {"seed": 99}},
    DifferenceKind.MIX: {"workload": {"mix": {"transfer": 1.0}}},
    DifferenceKind.LOCALITY: {"workload": {"locality": 0.5}},
    DifferenceKind.SERVER: {"server": {"product": "Another"}},
    DifferenceKind.SERVER_VERSION: {"server": {"version": "99"}},
    DifferenceKind.DESIGN: {"scenario": {"database": {"compression": "page"}}},
    DifferenceKind.CACHE_START: {"cache_start": "as it is"},
    DifferenceKind.RESET: {"reset": "continue"},
    DifferenceKind.OBSERVATION: {"scenario": {"observe": ["query store"]}},
    DifferenceKind.CPU: {"machine": {"cpu": "Another"}},
    DifferenceKind.CORES: {"machine": {"cores": 99}},
    DifferenceKind.MEMORY: {"machine": {"memory_bytes": 1}},
    DifferenceKind.SETTING: {"server": {"settings": {"block_size": "1"}}},
    DifferenceKind.POOL: {"memory": {"reached_bytes": 1}},
}


def whole(manifest: Manifest) -> Manifest:
    """A manifest that says everything that may differ."""
    scenario = manifest.scenario.changed(database={"compression": "none"}, observe=["io latency"])
    workload = manifest.workload.changed(mix={"transfer": 0.5})
    return manifest.changed(scenario=scenario, workload=workload, cache_start="cold", reset="restore")


def with_parts(manifest: Manifest, parts: dict[str, Any]) -> Manifest:
    changes = {
        name: getattr(manifest, name).changed(**part) if isinstance(part, dict) else part
        for name, part in parts.items()
    }
    return manifest.changed(**changes)


for difference, parts in DIFFERENCES.items():
    pairs(
        difference,
        lambda given, parts=parts: list(undeclared_differences(m := whole(given.sound.manifest), with_parts(m, parts))),
        lambda given: list(undeclared_differences(m := whole(given.sound.manifest), m)),
    )
STEP_DIFFERENCES: dict[DifferenceKind, dict[str, Any]] = {
    DifferenceKind.ARRIVALS: {"arrivals": "poisson"},
    DifferenceKind.RATE: {"rate": 9.0},
    DifferenceKind.THINK_TIME: {"think_ms": 9.0},
    DifferenceKind.MEASURED: {"end_s": 999.0},
}
for difference, change in STEP_DIFFERENCES.items():
    pairs(
        difference,
        lambda given, change=change: list(undeclared_differences(
            m := given.sound.manifest, m.changed(steps=[one.changed(**change) for one in m.steps])
        )),
        lambda given: list(undeclared_differences(given.sound.manifest, given.sound.manifest)),
    )  # fmt: skip


MACHINES = [{"number": number, "executors": 1, "clock_within_ms": 1.0} for number in (1, 2)]
pairs(
    DifferenceKind.LOAD_MACHINES,
    lambda given: list(undeclared_differences(m := given.sound.manifest, m.changed(load_machines=MACHINES))),
    lambda given: list(undeclared_differences(given.sound.manifest, given.sound.manifest)),
)


# Kinds that other tests hold, and those that none does yet. --------------------------------------------------

ANSWER = "analysis/test_answer.py::"
CLAIMS = "report/test_claims.py::test_every_output_claims_of_a_pair_what_its_runs_allow"
CURVE, CEILING = "analysis/test_pool_curve.py::", "analysis/test_ceiling.py::"
VALID, CYCLES = "analysis/test_step_validity.py::", "analysis/test_cycles.py::"
LOADS, QUERIES = "analysis/test_loads.py::", "analysis/test_query_runs.py::"
BETWEEN, COMPARE = "analysis/test_cause_between.py::", "analysis/test_compare.py::"
STORAGE_OF_STEPS = f"{ANSWER}test_storage_is_said_to_limit_only_the_steps_in_which_every_run_says_so"
VERDICT, GATES = "analysis/test_verdict.py::", "analysis/test_validity_gates.py::"
STORAGE, CHECKS = "analysis/test_compare_storage.py::", "analysis/test_compare_checks.py::"
ELSEWHERE: dict[Kind, str] = {
    **dict.fromkeys(ReasonKind, f"{COMPARE}test_a_run_that_is_not_what_it_should_be_is_not_compared"),
    ReasonKind.METRICS_DIFFER: f"{CHECKS}test_sides_that_declare_different_metrics_are_not_compared",
    ReasonKind.SETTINGS_DIFFER: f"{COMPARE}test_what_no_variant_declares_must_be_the_same",
    ReasonKind.PLANS_DIFFER: f"{CHECKS}test_a_plan_that_changed_is_said_in_the_verdict_and_does_not_forbid_it",
    ReasonKind.DEVICES_DIFFER: f"{STORAGE}test_an_emulated_device_beside_a_real_one_is_no_verdict",
    ReasonKind.STORAGE_CHANGED: f"{STORAGE}test_storage_that_changed_during_a_run_is_not_compared",
    StorageKind.ONE_DISK: "analysis/test_cautions.py::test_folders_on_one_disk_are_no_two_devices",
    **dict.fromkeys(
        (DriverKind.OVERHEAD, DriverKind.EXECUTOR_CPU, DriverKind.LATE_STARTS),
        f"{VALID}test_a_driver_that_holds_the_load_back_is_found",
    ),
    CurveKind.KNOWN: f"{CURVE}test_a_curve_that_jumps_between_its_sizes_is_not_known",
    CurveKind.FELL: f"{CURVE}test_no_size_is_enough_where_throughput_falls_with_memory",
    CurveKind.MAY_BE_ENOUGH: f"{CURVE}test_enough_is_not_said_where_the_driver_was_the_bottleneck",
    **dict.fromkeys(DeviceKind, f"{VERDICT}test_storage_above_the_device_limits_as_the_device_does"),
    DeviceKind.LATENCY_LIMITS: f"{VERDICT}test_a_device_that_is_seldom_busy_limits_by_its_latency",
    DeviceKind.CPUS_LIMIT: f"{VERDICT}test_cpus_that_others_use_are_not_said_to_limit",
    DeviceKind.CPUS_BUSY_OTHERWISE: f"{VERDICT}test_cpus_that_others_use_are_not_said_to_limit",
    DeviceKind.NOT_TOLD: f"{VERDICT}test_idle_users_of_a_saturated_machine_are_told_of_its_cpus",
    **dict.fromkeys(ServerKind, "collectors/mssql/test_server_state.py::test_what_is_sampled_is_judged"),
    ServerKind.AUTOVACUUM: "analysis/test_io.py::test_little_of_it_is_none",
    GateKind.MIX: f"{GATES}test_a_mix_within_a_percent_or_within_chance_passes",
    GateKind.FOLLOWERS: f"{GATES}test_followers_may_differ_by_what_is_under_way",
    GateKind.ABORTS: f"{GATES}test_aborts",
    GateKind.LOCKS: f"{GATES}test_locks",
    GateKind.LIMITS: f"{GATES}test_limits_need_ten_beyond_them_and_do_not_void_a_step",
    GateKind.LAG: f"{GATES}test_lag_is_lateness_or_a_queue_that_grows",
    GateKind.CONSISTENCY: f"{GATES}test_conditions_left_out_do_not_count",
    GateKind.COMPLETED: f"{GATES}test_completed_lies_between_committed_and_that_with_unknown_outcomes",
    ExperimentKind.AGAINST_FIRST: CLAIMS,
    ExperimentKind.KNEE: f"{ANSWER}test_users_only_queue_if_their_latency_grew_and_the_driver_kept_up",
    ExperimentKind.FLASH: f"{ANSWER}test_flash_is_told_over_all_runs_that_have_it",
    ExperimentKind.STORAGE_LIMITS: STORAGE_OF_STEPS,
    ExperimentKind.STORAGE_LIMITS_SOMETIMES: STORAGE_OF_STEPS,
    ExperimentKind.STORAGE_DOES_NOT_LIMIT: STORAGE_OF_STEPS,
    ExperimentKind.STORAGE_NOT_KNOWN: STORAGE_OF_STEPS,
    CauseKind.CPUS_BUSY: f"{BETWEEN}test_a_cause_says_where_a_device_was_not_judged",
    CauseKind.NOT_SPLIT: f"{BETWEEN}test_waiting_for_io_that_nobody_timed_leaves_the_cause_open",
    ChangeKind.WAITED_FOR: f"{BETWEEN}test_fewer_evictions_are_the_pools_doing_and_not_the_devices",
    PairKind.ONLY_ONE_SIDE: f"{COMPARE}test_steps_that_only_one_side_has_are_named",
    PairKind.NO_COMMON_STEP: f"{COMPARE}test_a_side_without_a_step_in_common_is_named",
    ReasonKind.PROBE_OF_OTHER_DEVICE:
        "analysis/test_compare_storage.py::test_a_probe_of_a_real_device_is_not_for_a_run_on_an_emulated_one",
    ReasonKind.DRIFTED: f"{COMPARE}test_the_first_variant_run_again_must_be_what_it_was",
    CurveKind.ENOUGH: f"{CURVE}test_enough_is_not_said_where_the_driver_was_the_bottleneck",
    CurveKind.STILL_BUYS: f"{CURVE}test_all_of_the_data_stand_for_twice_as_much",
    CurveKind.NOT_KNOWN: f"{CURVE}test_a_curve_that_jumps_between_its_sizes_is_not_known",
    FlashKind.FOR_MEMORY: f"{CURVE}test_flash_is_not_compared_without_evidence",
    FlashKind.NO_GAIN: f"{CURVE}test_flash_is_not_compared_without_evidence",
    FlashKind.BEYOND_MEMORY: f"{CURVE}test_flash_is_not_compared_without_evidence",
    FlashKind.READS_FOR_MEMORY: CURVE
    + "test_predicted_reads_stand_in_for_flash_only_where_reads_were_slow_and_no_run_had_flash",
    CeilingKind.FOUND: f"{CEILING}test_what_is_no_ceiling_is_called_none",
    CeilingKind.RATIO: f"{CEILING}test_ceilings_of_unlike_settings_or_of_the_driver_have_no_ratio",
    LoadsKind.VARIANTS: f"{LOADS}test_an_emulated_device_is_not_compared_with_a_real_one",
    LoadsKind.LEVELS: f"{LOADS}test_without_limits_no_service_level_is_told",
    LoadsKind.AT_ONCE: f"{LOADS}test_loads_at_once_without_anything_to_hold_them_against_are_told",
    LoadsKind.OF_LOAD: f"{LOADS}test_a_search_over_several_loads_is_told_once_with_the_rates_of_the_level_that_held",
    LoadsKind.HOST: f"{LOADS}test_a_host_that_hardly_works_is_no_caution",
    LoadsKind.QUERIES_WAITED: f"{LOADS}test_queries_at_a_rate_count_from_when_they_were_due",
    LoadsKind.CELLS: f"{LOADS}test_steps_without_cells_have_no_scaling",
    LoadsKind.TOGETHER: f"{LOADS}test_devices_are_compared_load_by_load_with_the_most_users",
    LoadsKind.VERDICTS: f"{LOADS}test_variants_that_were_repeated_have_a_verdict_for_each_load",
    QueryKind.LACKS: f"{QUERIES}test_a_query_that_failed_or_took_too_long_leaves_no_figure",
    LoadsKind.RAW_ENDED: f"{LOADS}test_a_raw_load_that_ran_to_the_end_did_not_end_early",
    LoadsKind.READS_UNLIKE: f"{LOADS}test_reads_that_no_load_accounts_for_are_told",
    QueryKind.RELATIVE: f"{QUERIES}test_an_emulated_device_is_not_held_against_a_real_one",
    QueryKind.FIGURE: f"{QUERIES}test_an_emulated_device_is_not_held_against_a_real_one",
    ValidityKind.FOREIGN_IO: f"{VALID}test_foreign_reads_make_a_step_invalid_when_they_matter",
    ValidityKind.FOREIGN_CPU: f"{VALID}test_the_run_s_own_wait_for_cpus_is_no_fault",
    DriverKind.LITTLES_LAW: f"{VALID}test_littles_law_that_does_not_close_is_said",
    ValidityKind.NOT_CONNECTED: f"{VALID}test_users_who_still_log_in_are_missing_and_not_the_drivers_overhead",
    ValidityKind.TRANSACTIONS_FAILED: f"{VALID}test_errors_are_kept_and_many_failures_invalidate",
    ValidityKind.SERVER_STARTED: "analysis/test_server_lost.py::test_one_that_started_before_is",
    ValidityKind.CONNECTIONS_LOST:
        "analysis/test_server_lost.py::test_connections_lost_one_by_one_are_no_loss_of_the_server",
    NoteKind.SERVER_LOST: "analysis/test_server_lost.py::test_one_that_started_before_is",
    ValidityKind.COUNTERS_BEGAN_AGAIN:
        "analysis/test_summary.py::test_counters_that_begin_again_in_the_warm_up_do_no_harm",
    SteadyKind.TREND: "analysis/test_steadiness.py::test_a_drift_too_small_to_matter_does_no_harm_however_sure_it_is",
    SteadyKind.LEVEL_CHANGED: "analysis/test_steadiness.py::test_a_pause_is_neither_a_trend_nor_a_change",
    SteadyKind.STEADY_LATE: "analysis/test_steadiness.py::test_a_steady_interval_is_called_so",
    CycleKind.WHOLE: f"{CYCLES}test_fewer_than_three_leave_the_interval_as_it_is",
    CycleKind.TOO_FEW: f"{CYCLES}test_figures_are_over_the_whole_cycles",
    CycleKind.IRREGULAR: f"{CYCLES}test_regular_cycles_are_always_whole_and_leave_at_least_three_fifths",
    **dict.fromkeys(RunKind, "analysis/test_run_notes.py::test_nothing_is_said_of_a_run_in_which_nothing_happened"),
    PairKind.POOLED: f"{COMPARE}test_experiments_that_are_taken_together_without_being_asked_for_are_told",
    PairKind.NO_PARTNER: f"{COMPARE}test_a_variant_that_one_experiment_alone_has_is_told",
    **dict.fromkeys(PageCacheKind, "analysis/test_page_cache.py::test_each_outcome_has_its_caution"),
    CautionKind.COUNTED_AT_END: "analysis/test_cautions.py::test_short_queries_and_those_of_many_streams_are_not",
    CautionKind.READS_AHEAD: "analysis/test_cautions.py::test_times_that_agree_with_the_device_are_of_whole_reads",
    ValidityKind.NOT_TIMED: "analysis/test_summary.py::test_io_that_was_not_timed_for_a_while_has_no_times",
    ReadKind.FEW_SAMPLES: "analysis/test_read_counters.py::"
    + "test_figures_of_few_samples_are_given_with_their_uncertainty",
    ArrayKind.SIZE_UNKNOWN: "analysis/test_cautions.py::test_of_an_array_whose_dram_and_flash_nobody_named_it_is_said",
    ArrayKind.DRIFTED: "analysis/test_compare_storage.py::test_storage_that_changed_during_a_run_is_not_compared",
    ArrayKind.SMALL_PROBE: "analysis/test_compare_storage.py::"
    + "test_probes_that_the_arrays_memory_could_hold_prove_nothing",
    AboveKind.ABOVE: "analysis/test_cautions.py::test_no_step_is_named_whose_time_was_in_the_device_or_at_a_cpu",
}  # fmt: skip
ALWAYS = frozenset(map(str, [PairKind.METHOD, CautionKind.SCATTER, ProfileKind.SEEN, *CheckKind]))
"""Kinds that are told whatever was found, as a row of a table: their facts decide the words."""


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CASES])
def test_a_sentence_that_would_be_false_is_not_told(kind, given):
    true, false = (kinds_in(list(findings)) for findings in CASES[kind](given))
    assert kind in true and kind not in false


def cases_of_other_files() -> set[Kind]:
    files = set(TESTS.rglob("test_false_*.py")) - {Path(__file__)}
    return {kind for file in files for kind in run_path(str(file))["CASES"]}


def test_every_kind_has_its_false_case():
    covered = {str(kind) for kind in (*CASES, *ELSEWHERE, *cases_of_other_files())}
    assert set(kinds()) - covered - ALWAYS == set(), "give these a case in which their sentence is false"


@pytest.mark.parametrize(("kind", "test"), [pytest.param(*one, id=str(one[0])) for one in ELSEWHERE.items()])
def test_the_test_that_holds_a_kind_is_there(kind, test):
    file, name = test.split("::")
    assert name in functions_in(file), f"{test} is gone: give {kind} another"
    source = (TESTS / file).read_text(encoding="utf-8")
    assert f"{type(kind).__name__}.{kind.name}" in source or str(kind) in source


@cache
def functions_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("tps", [104.0, 106.0])
def test_best_of_all_is_said_only_if_all_may_be_compared(tps: float) -> None:
    faster = {"tps": 400.0, "driver_bound": BOUND}
    for more, every in (({}, True), ({"not_comparable": faster}, False)):
        found = of_variants({"tps": 100.0}, {"tps": tps}, *more.values())
        kinds_of_all = (ExperimentKind.VARIANTS, ExperimentKind.VARIANTS_ALIKE)
        assert [one.facts["every"] for one in found if one.kind in kinds_of_all] == [every]
