"""Sentences on the validity and the steadiness of a step, of service levels and settings: beside a summary in which
it would be false.

As test_false_sentences.py: a case gives two summaries that differ in one thing. With the first the kind is told, with
the second, of which its sentence would be false, it is not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.manifests import a_manifest, changed, on
from support.mssql_records import step as step_of_sql_server
from support.synthetic import EMULATED, make_run
from support.synthetic_loads import STEP_S, alone_and_together, make_loads_run
from support.synthetic_series import autoregressive
from support.synthetic_steps import STEADY, only_step, step_of
from support.tables import get, put
from support.wording import kinds_in

from stallmark.analysis import validity_gates as gates
from stallmark.analysis.compare.settings import IntentKind, intended_differences
from stallmark.analysis.experiment import marks, summarise
from stallmark.analysis.finding import Kind
from stallmark.analysis.read.io_latency import IoLatencySummary
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.times import CyclesBy, Interval
from stallmark.analysis.read.transactions import Lateness
from stallmark.analysis.run import RunSummary
from stallmark.analysis.service_level import ServiceLevelKind, judge_reads, make_objective
from stallmark.analysis.steady import CycleKind, Marks, Rate, SteadyKind, cut_to_whole_cycles, judge, missing_checkpoint
from stallmark.analysis.step_summary import StepSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.analysis.validity_gates import GateKind
from stallmark.record.manifest.course import Unheard
from stallmark.record.manifest.storage import Device, Devices
from stallmark.record.manifest.workload import Counted
from stallmark.record.reader import LoadRecord, Record
from stallmark.report.text import sentence


@dataclass(frozen=True)
class Given:
    """A run that may be compared, and folders for others."""

    sound: RunSummary
    folder: Callable[[], Path]  # a new one


Summary = Callable[[Given], Any]
CASES: dict[Kind, tuple[Summary, Summary]] = {}


@pytest.fixture
def given(sound, tmp_path_factory) -> Given:
    return Given(sound, lambda: tmp_path_factory.mktemp("false"))


# Service levels. ---------------------------------------------------------------------------------------------

OLTP = make_objective("oltp", None, "p95")


def reads(p95_ms: float | None = None, files_ms: float | None = 7.0, count: int = 5000, kept: bool = True) -> Any:
    """Judge reads of a histogram, if one was kept, and of the file counters."""
    histogram = IoLatencySummary("read", min(count, 150), 1.0, 1.0, {"p95": p95_ms}, None)
    files = IoSummary("server", 60.0, count, count * 8192, files_ms, files_ms, 0, 0, None, None, None, None)
    return judge_reads(OLTP, [histogram] if kept else [], files)


LEVELS: dict[ServiceLevelKind, tuple[dict[str, Any], dict[str, Any]]] = {
    ServiceLevelKind.READS_TAKE: ({}, {"files_ms": None}),
    ServiceLevelKind.READS_NOT_KNOWN: ({"files_ms": None}, {}),
    ServiceLevelKind.NO_HISTOGRAM: ({"kept": False}, {}),
    ServiceLevelKind.TOO_FEW_READS: ({}, {"p95_ms": 9.0}),
    ServiceLevelKind.READS_NOT_MEASURED: ({"files_ms": None}, {"files_ms": None, "count": 0}),
    ServiceLevelKind.NOTHING_READ: ({"files_ms": None, "count": 0}, {"files_ms": None}),
}
for level, (told, untested_steps) in LEVELS.items():
    CASES[level] = lambda _, told=told: reads(**told), lambda _, untested_steps=untested_steps: reads(**untested_steps)


# Why a step is invalid. --------------------------------------------------------------------------------------


def marked(given: Given, because: str | None) -> Any:
    return marks(replace(given.sound, incomplete_because=because), given.sound.steps[0])


def cut(given: Given, second: float | None) -> StepSummary:
    return step_of(given.folder(), replace(STEADY, cut_at=second))


def beside(given: Given, ended_s: int) -> list[StepSummary]:
    """The steps of a load, the last beside another one that ended by itself."""
    folder = make_loads_run(given.folder() / "run", alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)}))
    whole = Record(folder)
    loads = [load.changed(ended_s=ended_s) if load.name == "mail" else load for load in whole.manifest.loads]
    changed(folder, loads=loads)
    return summarise([LoadRecord(Record(folder), "bank")]).steps


def with_last_step(given: Given, **keys: Any) -> StepSummary:
    """The only step of a record that has these keys in its manifest."""
    folder = make_run(given.folder() / "run", STEADY)
    [planned] = Record(folder).manifest.steps
    changed(folder, steps=[planned.changed(**keys)])
    return only_step(folder)


def until(given: Given, second: float) -> StepSummary:
    """A record whose view of files was read until then."""
    folder = make_run(given.folder() / "run", STEADY)
    rows = get(folder, "server_io")
    return only_step(put(folder, "server_io", rows.filter(pa.array(rows["t"].to_numpy() < second))))


def logged(given: Given, *lines: Mapping[str, Any]) -> StepSummary:
    return step_of_sql_server(given.folder() / "run", error_log=lines)


LINE = {"t": 12.0, "log_time": "2026-03-02 09:00", "number": 825, "text": "A read succeeded after failing."}
CASES |= {
    ValidityKind.RUN_INCOMPLETE: (lambda given: marked(given, "It was stopped."), lambda given: marked(given, None)),
    ValidityKind.ENDED_EARLY: (lambda given: cut(given, 25.0), lambda given: cut(given, None)),
    ValidityKind.LOADS_MISSED: (lambda given: beside(given, 3 * STEP_S - 9), lambda given: beside(given, 3 * STEP_S)),
    ValidityKind.BY_HAND: (
        lambda given: with_last_step(given, spawn_rate=2.0),
        lambda given: with_last_step(given, spawn_rate=None),
    ),
    ValidityKind.COUNTERS_INCOMPLETE: (lambda given: until(given, 25.0), lambda given: until(given, 99.0)),
    ValidityKind.STORAGE_ERROR: (lambda given: logged(given, LINE), logged),
}


# Steadiness and checkpoints. ---------------------------------------------------------------------------------

TEN_MINUTES = autoregressive(600, 0.5, seed=1)
RISING = TEN_MINUTES * (1 + 0.2 * np.arange(600) / 600)
SCATTERED = autoregressive(30, 0.5, noise=0.4, seed=1)
MEASURED = Interval(0, 100, 400, 300.0, False)


def checkpoints(*seconds: float) -> Any:
    return [missing_checkpoint(cut_to_whole_cycles(MEASURED, Marks(np.array(seconds), CyclesBy.COUNT, 1.0)), None)]


CASES |= {
    SteadyKind.TOO_FEW_SECONDS: (lambda _: judge(TEN_MINUTES[:19]), lambda _: judge(TEN_MINUTES)),
    SteadyKind.NOTHING_DONE: (lambda _: judge(0 * TEN_MINUTES), lambda _: judge(TEN_MINUTES)),
    SteadyKind.NOT_TOLD: (lambda _: judge(SCATTERED), lambda _: judge(TEN_MINUTES)),
    SteadyKind.STEADY: (lambda _: judge(TEN_MINUTES), lambda _: judge(RISING)),
    CycleKind.NO_CHECKPOINT: (lambda _: checkpoints(), lambda _: checkpoints(200.5)),
}


# What a side was made with. -----------------------------------------------------------------------------


INTENTS: dict[IntentKind, dict[str, Any]] = {
    IntentKind.POOL: {"memory": {"reached_bytes": 64 << 20}},
    IntentKind.DATA_DEVICE: {"devices": {"data": {"name": "vdb"}}},
    IntentKind.ARRAY: {"array": {"raid": "RAID 10"}},
    IntentKind.LOG_DEVICE: {"devices": {"wal": {"name": "vdb"}}},
    IntentKind.ROW_VERSIONING: {"variant": {"row_versioning": True}},
    IntentKind.RESOURCE_POOL: {"variant": {"resource_pool": {"cpu_percent": 50}}},
    IntentKind.SETTING: {"variant": {"settings": {"work_mem": "64MB"}}},
    IntentKind.DURING: {"variant": {"during": {"backup": "/backup"}}},
}
for intent, parts in INTENTS.items():
    CASES[intent] = (
        lambda _, parts=parts: list(intended_differences(a_manifest(**parts))),
        lambda _: list(intended_differences(a_manifest())),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CASES])
def test_a_sentence_that_would_be_false_is_not_told(kind, given):
    true, false = (kinds_in([summary(given)]) for summary in CASES[kind])
    assert kind in true and kind not in false


# Kinds that are told in several cases: their words in each. --------------------------------------------------


def late(mean_s: float = 0.0, waiting_last: float = 1.0) -> Any:
    return gates.lag(Lateness(mean_s, 3.0, 40.0, 1.0, waiting_last))


UNKNOWN = Device(why="/data lies on tmpfs")
ONE, OTHER = Device(name="vdb"), Device(name="vdc")


@pytest.mark.parametrize(
    ("devices", "same"),
    [
        (Devices(data=ONE, wal=ONE), True),
        (Devices(data=ONE, wal=OTHER), False),
        (Devices(data=UNKNOWN, wal=UNKNOWN), False),  # two that are not known
        (Devices(**on(EMULATED)), False),  # two arrays of the same make
    ],
)
def test_a_log_is_said_to_lie_on_the_same_only_where_that_is_known(devices, same):
    [log] = [one for one in intended_differences(a_manifest(devices=devices)) if one.kind is IntentKind.LOG_DEVICE]
    assert log.facts["with_data"] is same and ("the same" in sentence(log)) is same


@pytest.mark.parametrize(("after", "words"), [(48, "commits were lost"), (52, "done twice")])
def test_counts_that_differ_are_explained_by_their_direction(after, words):
    numbers = {"trade_result": Counted(before=0, after=after)}
    failure = gates.commits(numbers, {"trade_result": 50}, {}, Unheard()).failure
    assert failure.kind is GateKind.COMPLETED and words in sentence(failure)


def test_of_a_lag_only_what_is_true_is_said():
    behind, queued = (sentence(gate.failure) for gate in (late(mean_s=0.3), late(waiting_last=90.0)))
    assert "late on average" in behind and "queued up" not in behind
    assert "queued up" in queued and "late on average" not in queued


def test_latencies_of_which_there_are_none_are_neither_zero_nor_too_short():
    """An open loop in which nothing ended for ten minutes."""
    found = judge(np.full(600, np.nan), Rate.LATENCY)
    assert found.finding.kind is SteadyKind.NOTHING_DONE and found.seconds == 600
    assert "no transaction was committed" in sentence(found.finding)


@pytest.mark.parametrize(
    ("given_reads", "words"),
    [
        ({"p95_ms": 9.0}, "within the ideal"),
        ({"p95_ms": 15.0}, "above the ideal"),
        ({"p95_ms": 25.0}, "above 20 ms"),
        ({}, "This is a mean"),
    ],
)
def test_reads_are_said_to_be_within_what_they_are_within(given_reads, words):
    text = sentence(reads(**given_reads).finding)
    assert words in text
    for others in {"within the ideal", "above the ideal", "above 20 ms", "This is a mean"} - {words}:
        assert others not in text
