"""I/O by kind of process: against workers whose every read and write is known."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest
from support.report_summaries import experiment, io, run, step

from stallmark.analysis.cautions import cautions
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import SERVER, read_io, summarise_io
from stallmark.analysis.read.server_io import AUTOVACUUM, DATA, by_process, read_server_io, summarise_processes
from stallmark.analysis.read.server_summary import ProcessIo
from stallmark.analysis.server_cautions import ServerKind
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


class Rows:
    """Stands for a record with these counters, of which rows of zeros are stored in the first sample alone."""

    loads = ()

    def __init__(self, product: str, entities: dict[str, Bursts]):
        self.manifest = a_manifest(server={"product": product})
        rows = []
        for t in SECONDS:
            for entity, bursts in entities.items():
                reads, writes = (sum(one[part] for at, one in bursts.items() if at <= t) for part in (0, 1))
                if reads or writes or t == 0:
                    row = {"t": float(t), "epoch": "start", "entity": entity, "kind": entity_kind(entity)}
                    rows.append(row | {"reads": reads, "writes": writes, "extends": 0})
        self.table = pa.Table.from_pylist(rows)

    @property
    def whole(self):
        return self

    def batches(self, name: str, columns: list[str]):
        if name == "server_io":
            yield from self.table.select([c for c in columns if c in self.table.column_names]).to_batches()


def entity_kind(entity: str) -> str:
    return "data" if "/relation/" in entity else "wal"


def within(entities: dict[str, Bursts], product: str = "PostgreSQL", interval: Interval = STEP):
    record = Rows(product, entities)
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
