"""Maintenance beside the users of a run: over and over until the end, in the record and in the report."""

import threading
import time
from types import SimpleNamespace

import pytest
from support.findings import facts_of
from support.manifests import a_manifest
from support.synthetic import Truth, make_run
from support.waiting import eventually

from stallmark.analysis.experiment import summarise
from stallmark.analysis.kinds import ExperimentKind
from stallmark.engines.abilities import Maintenance, MaintenanceWork
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.experiment.maintenance import ConcurrentMaintenance
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.variant import During


class Work(MaintenanceWork):
    """Ends at once `times`, then waits to be given up; or fails."""

    def __init__(self, times: int, fails: bool = False):
        self.left, self.fails, self.given_up, self.is_closed = times, fails, threading.Event(), False

    def execute(self) -> None:
        if self.fails:
            raise CallFailed(ErrorClass.OTHER, "3201", "Cannot open backup device")
        self.left -= 1
        if self.left < 0:
            assert self.given_up.wait(30)
            raise CallFailed(ErrorClass.OTHER, "0", "cancelled")

    def cancel(self) -> None:
        self.given_up.set()

    def close(self) -> None:
        self.is_closed = True


class Ability(Maintenance):
    def __init__(self, work: Work):
        self.work, self.asked = work, ""

    def open(self, what: str) -> Work:
        self.asked = what
        return self.work


def beside(work: Work, folder) -> tuple[ConcurrentMaintenance, Ability, RecordWriter]:
    writer = RecordWriter(folder, a_manifest())
    ability, began = Ability(work), time.monotonic()
    engine = SimpleNamespace(maintenance={"backup": ability})
    return (
        ConcurrentMaintenance(During(backup="NUL"), engine, writer, lambda: time.monotonic() - began),
        ability,
        writer,
    )


def test_it_is_done_over_and_over_and_what_is_under_way_at_the_end_is_given_up(tmp_path):
    one, ability, writer = beside(work := Work(3), tmp_path / "run")
    one.begin()
    one.begin()
    eventually(lambda: work.left < 0)
    one.finish()
    writer.close()
    rows = Record(tmp_path / "run").table("maintenance").to_pylist()
    assert [(row["kind"], row["finished"], row["error"]) for row in rows] == [
        *[("backup", True, None)] * 3, ("backup", False, None),
    ]  # fmt: skip
    assert ability.asked == "NUL" and work.is_closed


class Forgetful(Work):
    """Forgets a cancel that comes before its last statement, as a server does."""

    def cancel(self) -> None:
        if self.left < 0:
            super().cancel()


def test_a_cancel_that_comes_too_early_is_sent_again(tmp_path):
    maintenance, _, writer = beside(work := Forgetful(0), tmp_path / "run")
    entered, left = threading.Event(), threading.Event()
    execute = work.execute
    work.execute = lambda: (entered.set(), left.wait(30), execute())
    maintenance.begin()
    assert entered.wait(30)
    threading.Timer(0.3, left.set).start()
    maintenance.finish()
    writer.close()
    [row] = Record(tmp_path / "run").table("maintenance").to_pylist()
    assert work.is_closed and not row["finished"] and row["error"] is None


def test_one_that_fails_ends_and_its_row_has_the_error(tmp_path):
    one, _, writer = beside(Work(0, fails=True), tmp_path / "run")
    one.begin()
    eventually(lambda: not one._thread.is_alive())
    one.finish()
    writer.close()
    [row] = Record(tmp_path / "run").table("maintenance").to_pylist()
    assert not row["finished"] and row["error"] == "Cannot open backup device (3201)"


def test_a_run_that_never_measured_had_none(tmp_path):
    one, _, writer = beside(work := Work(0), tmp_path / "run")
    one.finish()
    writer.close()
    assert work.is_closed and Record(tmp_path / "run").table("maintenance").num_rows == 0


class Disturbed(Record):
    """With backups of 10 s from second 5 on, when measuring begins, and the last one cut."""

    def batches(self, name, columns):
        if name != "maintenance":
            yield from super().batches(name, columns)
            return
        import pyarrow as pa

        rows = [
            {"kind": "backup", "started_s": 5.0 + 10 * n, "seconds": 10.0 if n < 3 else 2.0, "finished": n < 3,
             "error": None} for n in range(4)
        ]  # fmt: skip
        yield pa.RecordBatch.from_pylist(rows).select(columns)


def test_what_it_cost_the_users_is_said_beside_the_run_without_it(tmp_path):
    truth = Truth(noise=0.0, warm_up_s=5, measured_s=30)
    alone = Record(make_run(tmp_path / "a", truth))
    disturbed = Disturbed(make_run(tmp_path / "b", Truth(noise=0.0, tps=300.0, variant="backup")))
    summary = summarise([alone, disturbed])
    [facts] = facts_of(summary.findings, ExperimentKind.DISTURBED)
    assert (facts["maintenance"], facts["done"], facts["mean_s"]) == ("backup", 2, 10.0)
    assert facts["share"] == pytest.approx(1.0) and facts["per_s"] == pytest.approx(300)
    assert facts["alone_per_s"] == pytest.approx(400)
    steps = {step.variant: step for step in summary.steps}
    assert steps["backup"].storage.reads_per_transaction is None, (
        "the backup's reads are not to be told from the users'"
    )


@pytest.mark.parametrize("during", ["{}", "{backup: NUL, check: true}", "{rebuild: accounts}", "{check: false}"])
def test_one_thing_at_a_time(during, tmp_path):
    from stallmark.scenarios.read import read_scenario

    with pytest.raises(StallmarkError):
        read_scenario("user-ramp", (f"variants.0.during={during}",))
