"""Doubts about a step: foreign reads, users that are missing, a driver that held the load back, failures."""

from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pytest
from support.findings import facts_of, kinds_of
from support.steps import changed_step
from support.synthetic import make_run
from support.synthetic_steps import STEADY, step_of

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.experiment import summarise
from stallmark.analysis.read.counters import Delta
from stallmark.analysis.read.io import Io
from stallmark.analysis.read.server_summary import SERVER
from stallmark.analysis.read.times import Interval
from stallmark.analysis.validity import ValidityKind, foreign_share
from stallmark.record.reader import Record

pytestmark = pytest.mark.thorough


def test_foreign_reads_make_a_step_invalid_when_they_matter(tmp_path):
    much = step_of(tmp_path / "much", replace(STEADY, foreign_reads_per_second=80))
    assert much.storage.foreign_io_share == pytest.approx(80 / 880, rel=1e-2)
    assert [one.kind for one in much.validity.invalid] == [ValidityKind.FOREIGN_IO]
    little = step_of(tmp_path / "little", replace(STEADY, foreign_reads_per_second=20))
    assert little.storage.foreign_io_share == pytest.approx(20 / 820, rel=1e-2) and not little.validity.invalid
    cached = step_of(tmp_path / "cached", replace(STEADY, reads_per_transaction=0, foreign_reads_per_second=1))
    assert cached.storage.foreign_io_share is None and not cached.validity.invalid


BESIDE = replace(STEADY, host_cpu=0.95, foreign_cpu=0.5)


def test_other_programs_on_the_cpus_make_a_step_invalid_when_it_waits_for_them(tmp_path):
    """30 users are in calls all the time: 6 waiting tasks are a fifth of that."""
    waited = step_of(tmp_path / "waited", replace(BESIDE, run_delay=6.0))
    assert waited.server.foreign_cpu_share == pytest.approx(0.5, abs=0.01)
    assert [one.kind for one in waited.validity.invalid] == [ValidityKind.FOREIGN_CPU]
    free = step_of(tmp_path / "free", replace(BESIDE, run_delay=0.2))
    assert free.server.foreign_cpu_share is None and not free.validity.invalid


def test_the_run_s_own_wait_for_cpus_is_no_fault(tmp_path):
    alone = step_of(tmp_path, replace(STEADY, host_cpu=0.97, run_delay=8.0))
    assert alone.server.foreign_cpu_share == pytest.approx(0.0, abs=0.01) and not alone.validity.invalid


@pytest.mark.parametrize("off", ["host", "server_cpu"])
def test_foreign_cpu_is_not_known_without_the_processes(tmp_path, off):
    step = step_of(tmp_path, replace(BESIDE, run_delay=6.0, off=(off,)))
    assert step.server.foreign_cpu_share is None and not step.validity.invalid


class Counted:
    """Counters that rise evenly, per second."""

    def __init__(self, open_s: float = 0.0, **values: float):
        self.values, self.open_s = values, open_s

    def delta(self, begin: float, end: float) -> Delta:
        values = {name: value * (end - begin) for name, value in self.values.items()}
        return Delta(begin, end, False, values, self.open_s)


NOTHING = Io(**dict.fromkeys((one.name for one in fields(Io)), None) | {"emulated": False, "wal_names": SERVER})


@pytest.mark.parametrize(
    ("read_mb_per_s", "open_s", "share"), [(80, 0, 0.2), (80, 2, None), (40, 2, 0.6), (98, 2, 0.02)]
)
def test_reads_are_foreign_if_few_samples_do_not_leave_that_open(read_mb_per_s, open_s, share):
    server, device = Counted(open_s, read_bytes=read_mb_per_s * 1e6), Counted(read_bytes=100e6, busy_ms=900)
    found = foreign_share(replace(NOTHING, data=server, data_device=device), Interval(0, 10, 20, 10, False))
    assert found == (None if share is None else pytest.approx(share))


def test_reads_of_raw_loads_are_not_foreign():
    """The device reads 100 MB/s: 40 are the server's and 50 a raw load's."""
    io = replace(NOTHING, data=Counted(read_bytes=40e6), data_device=Counted(read_bytes=100e6, busy_ms=900))
    step = Interval(0, 10, 20, 10, False)
    assert foreign_share(io, step) == pytest.approx(0.6)
    assert foreign_share(replace(io, raw_bytes=np.full(15, 100e6)), step) == pytest.approx(0.1)
    assert foreign_share(replace(io, raw_bytes=np.full(15, np.nan)), step) is None, "some may be of another device"


def test_littles_law_that_does_not_close_is_said(steady):

    class Missing(Record):
        """One transaction in ten is not in the record."""

        def batches(self, name, columns):
            for batch in super().batches(name, columns):
                if name == "transactions" and "latency_us" in batch.schema.names:
                    at = batch.schema.get_field_index("latency_us")
                    batch = batch.set_column(at, "latency_us", (batch.column(at).to_numpy() * 0.9).astype(int))
                yield batch

    validity = summarise([Record(steady)]).steps[0].validity
    assert not validity.invalid and not validity.driver_bound
    (found,) = summarise([Missing(steady)]).steps[0].validity.invalid
    assert found.kind == DriverKind.LITTLES_LAW and found.facts["users"] == pytest.approx(30)


@pytest.mark.parametrize(
    ("change", "kind", "facts"),
    [
        ({"overhead_share": 0.09}, DriverKind.OVERHEAD, {"machine": 0, "share": 0.09}),
        ({"executor_cpu": 0.95}, DriverKind.EXECUTOR_CPU, {"machine": 0, "share": 0.95}),
        ({"lag_ms": 6.0}, DriverKind.LATE_STARTS, {"late_ms": 6.0}),
    ],
)
def test_a_driver_that_holds_the_load_back_is_found(tmp_path, change, kind, facts):
    step = step_of(tmp_path, replace(STEADY, **change))
    found = {one.kind: one.facts for one in step.validity.driver_bound}
    assert {name: found[kind][name] for name in facts} == pytest.approx(facts, rel=0.01)
    assert step.validity.invalid == []  # the same users are not said to be missing as well


class Fewer(Record):
    """Two of five users get no session until long after measuring has begun."""

    def batches(self, name, columns):
        for batch in super().batches(name, columns):
            if "executor" in columns:
                rows = batch.to_pylist()
                rows = [row | {k: row[k] * 0.6 for k in row.keys() & {"running"}} for row in rows]
                rows = [row | {k: int(row[k] * 0.6) for k in row.keys() & {"busy_us", "think_us"}} for row in rows]
                batch = pa.RecordBatch.from_pylist(rows, schema=batch.schema)
            yield batch


def test_users_who_still_log_in_are_missing_and_not_the_drivers_overhead(steady):
    (step,) = summarise([Fewer(steady)]).steps
    assert step.validity.driver_bound == []
    assert facts_of(step.validity.invalid, ValidityKind.NOT_CONNECTED) == [
        {"users": 30, "connected_users": pytest.approx(18, rel=1e-6)}
    ]


@pytest.mark.parametrize(
    ("manifest", "host", "kinds"),
    [
        ({}, True, {CautionKind.LOCAL_DRIVER}),
        ({}, False, set()),  # a CPU share from SQL Server's own ring buffer says nothing of where the driver runs
        ({"server": {"at_own_address": True}}, False, {CautionKind.OWN_ADDRESS}),
        ({"server": {"at_own_address": False}}, False, set()),
        (
            {
                "server": {"at_own_address": True},
                "load_machines": [{"number": 1, "executors": 1, "clock_within_ms": 1.0}],
            },
            False,
            set(),
        ),
    ],
)
def test_only_where_it_was_seen_the_driver_is_said_to_use_the_servers_cpus(tmp_path, manifest, host, kinds):
    record = Record(make_run(tmp_path / "run", replace(STEADY, off=() if host else ("host",))))
    record.manifest = record.manifest.changed(**manifest)
    (run,) = summarise([record]).runs
    known = replace(run, steps=[changed_step(run.steps[0], cpu_busy_share=0.5)])
    said = set(kinds_of(cautions([known])))
    assert said & {CautionKind.LOCAL_DRIVER, CautionKind.OWN_ADDRESS} == kinds


def test_the_load_machine_that_holds_the_load_back_is_named(steady):
    class OfTwoMachines(Record):
        """Executor 1 is the only one of machine 2, and has no time to give away."""

        def batches(self, name, columns):
            for batch in super().batches(name, columns):
                if "executor" not in columns:
                    yield batch
                    continue
                rows = batch.to_pylist()
                for row in rows:
                    change = {"machine": row["executor"] + 1}
                    if row["executor"] == 1:
                        slow = {name: int(row[name] * 0.9) for name in ("busy_us", "think_us") if name in row}
                        change |= slow | {"cpu_us": 970_000}
                    row |= {name: value for name, value in change.items() if name in row}
                yield pa.RecordBatch.from_pylist(rows, schema=batch.schema)

    (step,) = summarise([OfTwoMachines(steady)]).steps
    assert [(one.kind, one.facts["machine"]) for one in step.validity.driver_bound] == [
        (DriverKind.OVERHEAD, 2),
        (DriverKind.EXECUTOR_CPU, 2),
    ]


def test_idle_users_of_an_open_loop_are_not_overhead(tmp_path):
    truth = replace(STEADY, overhead_share=0.6, arrivals="poisson")
    step = step_of(tmp_path, truth)
    assert step.validity.driver_bound == [] and step.validity.invalid == []
    late = step_of(tmp_path / "late", replace(truth, lag_ms=4.0))
    assert [one.kind for one in late.validity.driver_bound] == [DriverKind.LATE_STARTS]


@pytest.mark.parametrize("rolled_back", [0.0, 0.9])
def test_transactions_that_rolled_back_are_some_of_all(tmp_path, rolled_back):
    step = step_of(tmp_path, replace(STEADY, failed_per_second=2, rolled_back_share=rolled_back))
    assert step.throughput.rolled_back == pytest.approx(rolled_back * 400 * 30)
    assert not facts_of(step.validity.invalid, ValidityKind.TRANSACTIONS_FAILED)  # 2 of 402


def test_errors_are_kept_and_many_failures_invalidate(tmp_path):
    step = step_of(tmp_path, replace(STEADY, failed_per_second=8))
    (error,) = step.validity.errors
    assert (error.error_class, error.attempts, error.given_up) == ("deadlock", 8 * 4 * 30, 8 * 30)
    assert step.throughput.failed == 240 and step.throughput.retries == 720
    (facts,) = facts_of(step.validity.invalid, ValidityKind.TRANSACTIONS_FAILED)
    assert facts == {
        "share": pytest.approx(240 / 12240),
        "transaction": error.transaction,
        "said": error.message,
        "code": error.code,
    }
