"""I/O by kind of process: against workers whose every read and write is known."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import changed
from support.report_summaries import experiment, io, run, step
from support.synthetic import Truth, make_run
from support.synthetic_steps import STEADY, only_step, steady, step_of
from support.tables import InMemory

from stallmark.analysis.cautions import cautions
from stallmark.analysis.ceiling import mailboxes_of_ceilings, mailboxes_of_steps
from stallmark.analysis.environment_cautions import ServerKind
from stallmark.analysis.metrics import Point
from stallmark.analysis.read.io import MailIo, OwnCpu, cpu_of_run, read_io, summarise_mail_io, timer_iops
from stallmark.analysis.read.server_io import (
    AUTOVACUUM,
    DATA,
    ProcessIo,
    by_process,
    read_server_io,
    summarise_processes,
)
from stallmark.analysis.read.server_summary import SERVER, summarise_io
from stallmark.analysis.read.throughput import Load, read_load
from stallmark.analysis.read.times import Interval
from stallmark.analysis.step_summary import NoteKind
from stallmark.record.manifest.workload import Transaction
from stallmark.record.reader import Record
from stallmark.report.sections.server import processes

STEP = Interval(index=0, begin=10, end=30, planned_s=20, cut=False)
SECONDS = range(0, 41)
USERS, WORKER, CHECKPOINTER = (
    "client backend/relation/normal",
    "autovacuum worker/relation/vacuum",
    "checkpointer/relation/normal",
)

Bursts = dict[int, tuple[int, int]]
"""Reads and writes handed in by a second."""


def record_of(product: str, entities: dict[str, Bursts]) -> InMemory:
    """Make a record of these counters, whose rows of zeros are stored in the first sample alone."""
    rows = []
    for t in SECONDS:
        for entity, bursts in entities.items():
            reads, writes = (sum(one[part] for at, one in bursts.items() if at <= t) for part in (0, 1))
            if reads or writes or t == 0:
                row = {"t": float(t), "epoch": "start", "entity": entity, "kind": entity_kind(entity)}
                rows.append(row | {"reads": reads, "writes": writes, "extends": 0})
    return InMemory({"server_io": pa.Table.from_pylist(rows)}, server={"product": product})


def entity_kind(entity: str) -> str:
    return "data" if "/relation/" in entity else "wal"


def within(entities: dict[str, Bursts], product: str = "PostgreSQL", interval: Interval = STEP):
    record = record_of(product, entities)
    counted = read_io(record, read_server_io(record, [interval]))
    data = summarise_io(counted.data, interval, SERVER, "server")
    return summarise_processes(by_process(record, counted.server, DATA), interval), data


EVERY_SECOND = dict.fromkeys(range(1, 41), (100, 10))
BURSTS = st.dictionaries(st.integers(1, 40), st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=8)


@given(BURSTS, BURSTS)
def test_the_parts_are_all_of_the_server_s_and_each_is_where_it_was_handed_in(vacuumed, checkpointed):
    found, data = within({USERS: EVERY_SECOND, WORKER: vacuumed, CHECKPOINTER: checkpointed})
    by_name = {one.process: one for one in found}
    assert sum(one.reads for one in found) == pytest.approx(data.reads, abs=2)
    assert sum(one.writes for one in found) == pytest.approx(data.writes, abs=2)
    assert sum(one.read_share for one in found) == pytest.approx(1)
    # What a sample shows is dated back by 0.9 s: a part of those of 11 and 31 s lies within.
    inside = sum(reads for at, (reads, _) in vacuumed.items() if 12 <= at <= 30)
    partly = sum(vacuumed.get(at, (0, 0))[0] for at in (11, 31))
    assert inside - 1 <= by_name[AUTOVACUUM].reads <= inside + partly + 1


def test_a_worker_that_is_first_seen_late_has_all_that_it_handed_in():
    found, _ = within({USERS: EVERY_SECOND, WORKER: {20: (4000, 300)}, "client backend/wal/normal": EVERY_SECOND})
    worker = next(one for one in found if one.process == AUTOVACUUM)
    assert (worker.reads, worker.writes) == (4000, 300)
    assert worker.read_share == pytest.approx(4000 / 6000) and worker.write_share == pytest.approx(300 / 500)


def test_work_handed_in_before_and_after_is_not_the_step_s():
    found, _ = within({USERS: EVERY_SECOND, WORKER: {5: (4000, 300), 35: (9000, 900)}})
    worker = next(one for one in found if one.process == AUTOVACUUM)
    assert (worker.reads, worker.read_share, worker.write_share) == (0, 0.0, 0.0)


def test_where_the_server_does_not_tell_processes_apart_they_are_missing():
    assert within({"bank/relation/bank": EVERY_SECOND}, product="SQL Server")[0] is None
    assert within({USERS: EVERY_SECOND}, interval=Interval(0, 50, 60, 10, False))[0] is None


def test_nothing_read_has_no_shares():
    found, _ = within({USERS: dict.fromkeys(range(1, 41), (0, 10)), WORKER: {}})
    assert {one.read_share for one in found} == {None}


def vacuuming(read_share: float | None, write_share: float | None, **data):
    one = step()
    worker = ProcessIo(AUTOVACUUM, reads=1, writes=1, read_share=read_share, write_share=write_share)
    server = replace(one.server, processes=[worker])
    return replace(one, server=server, storage=replace(one.storage, data=io(**data)))


def said(one) -> list:
    kinds = [found for found in cautions([run([one])]) if found.kind is ServerKind.AUTOVACUUM]
    return [(found.facts["read_share"], found.facts["write_share"]) for found in kinds]


@pytest.mark.parametrize("shares", [(0.06, 0.01), (0.01, 0.04), (None, 0.04), (0.06, None)])
def test_much_of_autovacuum_is_a_caution(shares):
    one = vacuuming(*shares, reads=50_000, writes=9_000)
    assert said(one) == [(shares[0] or 0.0, shares[1] or 0.0)]
    assert "autovacuum" in [str(cell) for row in processes(experiment([run([one])])).rows for cell in row]


@pytest.mark.parametrize("shares", [(0.05, 0.03), (0.0, 0.0), (None, None)])
def test_little_of_it_is_none(shares):
    assert not said(vacuuming(*shares, reads=50_000, writes=9_000))


def test_a_share_of_hardly_any_i_o_is_none():
    assert not said(vacuuming(0.9, 0.9, reads=300, writes=300))


def test_unknown_shares_are_no_caution_and_no_table():
    one = step()
    assert one.server.processes is None
    assert not said(one) and processes(experiment([run([one])])) is None


# The run's own CPU time: never the host's.


INTERVAL = Interval(0, 10, 20, 10, False)


def used(tmp_path, truth: Truth) -> OwnCpu | None:
    record = Record(make_run(tmp_path / "run", truth))
    return cpu_of_run(read_load(record, 20, [INTERVAL]), read_io(record, read_server_io(record)), INTERVAL)


def test_it_is_of_server_and_client_whatever_else_runs(tmp_path):
    truth = replace(STEADY, host_cpu=0.95, foreign_cpu=0.5, run_delay=0.7)
    own = used(tmp_path, truth)
    assert own is not None and own.cores == pytest.approx(0.45 * truth.cores, abs=0.01)
    assert own.server_run_delay_s == pytest.approx(0.7 * own.seconds)
    assert own.client_s == pytest.approx((2 * truth.executor_cpu + 0.04) * own.seconds)


def test_without_the_server_s_processes_it_is_not_known(tmp_path):
    assert used(tmp_path, replace(STEADY, off=("server_cpu",))) is None


def test_a_client_elsewhere_is_no_part(tmp_path):
    own = used(tmp_path, replace(STEADY, off=("host",)))
    assert own is not None and own.client_s == 0.0 and own.cores == pytest.approx(STEADY.server_cores)


@pytest.mark.thorough
def test_other_work_raises_no_cpu_time_per_transaction(tmp_path):
    quiet = step_of(tmp_path / "quiet", replace(STEADY, host_cpu=0.5))
    noisy = step_of(tmp_path / "noisy", replace(STEADY, host_cpu=0.95, foreign_cpu=0.45))
    assert quiet.cause and noisy.cause and quiet.cause.demands and noisy.cause.demands
    assert noisy.cause.demands.cpu_ms == pytest.approx(quiet.cause.demands.cpu_ms, rel=0.02)


def test_old_records_have_no_cpu_time_per_transaction(tmp_path):
    step = step_of(tmp_path, replace(STEADY, off=("server_cpu",)))
    assert step.cause and step.cause.demands and step.cause.demands.cpu_ms is None
    assert NoteKind.CPU_UNKNOWN in [note.kind for note in step.cause.notes]


# The I/Os of a mail store as mailboxes: which are counted, and of which steps they are shown.


__all__ = ["steady"]


def point(*seen: MailIo | None, step: str = "20 users") -> Any:
    return Point(tuple(SimpleNamespace(variant="mail", step=step, mail_io=one) for one in seen))  # type: ignore[misc]


def test_reads_and_writes_of_the_measured_interval_are_counted() -> None:
    found = summarise_mail_io(io(reads=1_000, read_ms=8.0), None)
    assert found and found.iops == pytest.approx((1_000 + 4_021) / 60) and found.read_ms == 8.0
    assert found.mailboxes == int((1_000 + 4_021) / 60 / 0.12)
    assert summarise_mail_io(None, None) is None


def test_what_timers_read_is_not_counted() -> None:
    transactions = [Transaction(name="read", source="users"), Transaction(name="scan", source="timer")]
    own = {name: {"sampled": np.full(60, 3.0), "reads": np.full(60, 90.0)} for name in ("read", "scan")}
    ended = {name: np.full(60, 4.0) for name in ("committed", "rolled_back", "failed")}
    ended |= {"rolled_back": np.zeros(60), "failed": np.zeros(60)}
    load, interval = Load(60, counts={"scan": ended, "read": ended}, own_io=own), Interval(0, 0, 60, 60.0, False)
    assert timer_iops(load, transactions, interval) == pytest.approx(120)
    assert timer_iops(Load(60), transactions, interval) is None
    found = summarise_mail_io(io(reads=10_000, read_ms=8.0), 120.0)
    assert found and found.iops == pytest.approx(14_021 / 60 - 120) and found.apart_iops == 120.0


def test_repeats_are_shown_together_and_one_that_was_not_counted_hides_them() -> None:
    one, other = MailIo(24.0, 200, 8.0, 100.0), MailIo(36.0, 300, 12.0, None)
    [finding] = mailboxes_of_steps([point(one, other)])
    assert (finding.facts["iops"], finding.facts["mailboxes"], finding.facts["measured"]) == (30.0, 250, 2)
    assert finding.facts["read_ms"] == 10.0 and finding.facts["apart_iops"] is None
    assert finding.facts["step"] is None
    assert list(mailboxes_of_steps([point(one, None)])) == []


def test_of_several_steps_each_is_named() -> None:
    one = MailIo(24.0, 200, None, None)
    found = list(mailboxes_of_steps([point(one), point(one, step="40 users")]))
    assert [finding.facts["step"] for finding in found] == ["20 users", "40 users"]
    assert found[0].facts["read_ms"] is None


def test_of_a_ceiling_it_is_the_level_that_held() -> None:
    levels = {5.0: [SimpleNamespace(mail_io=MailIo(24.0, 200, 8.0, None))], 9.0: [SimpleNamespace(mail_io=None)]}
    ceiling = SimpleNamespace(variant="mail", holds=5.0, steps_at=levels.__getitem__)
    [finding] = mailboxes_of_ceilings([ceiling])  # type: ignore[list-item]
    assert (finding.facts["mailboxes"], finding.facts["step"]) == (200, None)
    none = SimpleNamespace(variant="mail", holds=None, steps_at=levels.__getitem__)
    assert list(mailboxes_of_ceilings([none])) == []  # type: ignore[list-item]


def test_a_run_of_mail_alone_has_mailboxes_and_another_workload_none(steady, tmp_path) -> None:
    step = only_step(steady)
    assert step.mail_io is None and list(mailboxes_of_steps([Point((step,))])) == []
    run = make_run(tmp_path / "run", STEADY)
    mail = only_step(changed(run, workload={"name": "mail", "scale": {"mailboxes": 100}})).mail_io
    assert mail and mail.iops > 0 and mail.mailboxes == int(mail.iops / 0.12)
