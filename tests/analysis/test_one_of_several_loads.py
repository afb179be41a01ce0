"""The record of one load beside others is judged as a run of its own, as far as that can be told."""

import pyarrow as pa
import pytest
from support.manifests import a_manifest
from support.synthetic_loads import LoadsStep, alone_and_together, make_loads_run
from support.tables import get, put

from stallmark.analysis.driver_bound import DriverKind, driver_bound
from stallmark.analysis.experiment import summarise
from stallmark.analysis.loads import summarise_loads
from stallmark.analysis.read.throughput import read_load
from stallmark.analysis.read.times import Interval
from stallmark.analysis.step_summary import LawKind, NoteKind, StepSummary
from stallmark.record.reader import LoadRecord, Record
from stallmark.record.writer import RecordWriter

pytestmark = pytest.mark.thorough

STEPS = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)}, scan=(900.0, 300.0), reports=(0.5, 0.25))


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> Record:
    return Record(make_loads_run(tmp_path_factory.mktemp("once") / "run", STEPS))


@pytest.fixture(scope="module")
def mail(once):
    [run] = summarise([LoadRecord(once, "mail")]).runs
    return {step.step: step for step in run.steps}


def test_a_load_alone_is_judged_as_a_run_of_one_load(mail):
    alone = mail["mail alone"]
    assert alone.storage.reads_per_transaction == pytest.approx(2, rel=0.05)
    assert alone.waits.share and alone.cause.budget and alone.cause.demands
    assert LawKind.CPU in {law.kind for law in alone.cause.laws}
    assert alone.beside == ()


def test_beside_others_nothing_is_told_that_is_not_its_own(mail):
    beside = mail["together"]
    assert beside.storage.reads_per_transaction is None and beside.cause.demands is None
    assert [note.kind for note in beside.cause.notes] == [NoteKind.OTHER_LOADS]
    assert LawKind.CPU not in {law.kind for law in beside.cause.laws}
    assert set(beside.beside) == {"bank", "scan", "reports"}


SESSIONS = {"mail": {"io": 0.8, "lock": 0.02}, "bank": {"io": 0.1, "lock": 0.7}}


def together(record: Record, load: str) -> StepSummary:
    return next(step for step in summarise([LoadRecord(record, load)]).steps if step.beside)


@pytest.fixture
def waiting(tmp_path) -> Record:
    """The sampled sessions of mail wait for reads, those of bank for locks."""
    steps = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)})
    return Record(make_loads_run(tmp_path / "run", steps, waits=SESSIONS))


def test_beside_others_a_load_has_the_budget_of_its_own_sessions(waiting):
    for load, waits in SESSIONS.items():
        step = together(waiting, load)
        assert {name: step.waits.share[name] for name in waits} == pytest.approx(waits, abs=0.02)
        budget = step.cause.budget
        assert budget.response_ms == pytest.approx(step.latency.mean_ms)
        assert sum(budget.parts_ms.values()) == pytest.approx(budget.response_ms)
        assert budget.parts_ms["lock"] / budget.response_ms == pytest.approx(waits["lock"], abs=0.03)
        assert step.bottleneck.device_verdict.facts["lock_share"] == pytest.approx(waits["lock"], abs=0.02)
    points = {p.first.load: p.storage_share for p in summarise_loads([waiting]).points if not p.first.alone}
    assert points["mail"] > 2 * points["bank"] > 0


def test_waits_that_the_server_counts_of_all_loads_are_no_law_of_one(waiting):
    rows = [
        {
            "t": float(t), "server_time": float(t), "epoch": "start", "wait_type": "LCK_M_X", "wait_class": "lock",
            "benign": False, "waits": 10 * t, "wait_ms": 4000.0 * t, "signal_ms": 0.0, "max_ms": 9.0,
        }
        for t in range(76)
    ]  # fmt: skip
    put(waiting.folder, "server_waits", pa.Table.from_pylist(rows))
    alone, beside = summarise([LoadRecord(Record(waiting.folder), "bank")]).steps
    found = [LawKind.WAITS in {law.kind for law in step.cause.laws} for step in (alone, beside)]
    assert found == [True, False] and beside.waits.server_waits


def test_an_older_record_does_not_tell_whose_sessions_were_sampled(waiting):
    put(waiting.folder, "waits", get(waiting.folder, "waits").drop_columns("application"))
    older = Record(waiting.folder)
    step, alone = together(older, "mail"), summarise([LoadRecord(older, "mail")]).steps[0]
    assert alone.cause.budget and alone.waits.share["io"] == pytest.approx(0.8, abs=0.02)
    assert step.waits.share is None and step.cause.budget is None
    assert [note.kind for note in step.cause.notes] == [NoteKind.OTHER_USERS]


def test_beside_raw_io_alone_the_sessions_are_its_own_and_nothing_is_predicted(tmp_path):
    steps = [LoadsStep("all loads", {"bank": 200.0, "scan": 300.0})]
    record = LoadRecord(Record(make_loads_run(tmp_path / "run", steps)), "bank")
    [step] = summarise([record]).steps
    assert step.cause.budget and step.cause.demands is None
    assert [note.kind for note in step.cause.notes] == [NoteKind.OTHER_LOADS]


def test_loads_that_share_an_executor_share_its_core(tmp_path):
    loads = [{"name": name, "kind": "users", "counts": [], "workload": {"name": name}} for name in ("bank", "mail")]
    writer = RecordWriter(tmp_path / "run", a_manifest(loads=loads))
    row = {"machine": 0, "running": 5.0, "busy_us": 0, "think_us": 0, "lag_us": 0, "lag_max_us": 0}
    for name, executor, cpu_us in (("bank", 0, 600_000), ("mail", 0, 380_000), ("mail", 1, 200_000)):
        used = {"load": name, "executor": executor, "cpu_us": cpu_us}
        writer.append("users", [row | used | {"second": second} for second in range(10)])
    writer.close()
    interval = Interval(0, 0, 10, 10.0, False)
    for name in ("bank", "mail"):
        load = read_load(LoadRecord(Record(writer.folder), name), 10, [interval])
        assert set(load.users[0]["cpu_us"]) == {980_000} and set(load.users[0]["running"]) == {5.0}
        [finding] = [one for one in driver_bound(load, interval, "fixed") if one.kind is DriverKind.EXECUTOR_CPU]
        assert finding.facts["share"] == pytest.approx(0.98)
    assert 1 not in read_load(LoadRecord(Record(writer.folder), "bank"), 10, [interval]).users
