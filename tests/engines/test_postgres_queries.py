"""PostgreSQL's figures of a query: reads, spill, workers and waits, over all its workers; the shape of its plan."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy

import pytest

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.statements import PostgresQueries, plan_hash
from stallmark.errors import CallFailed, ErrorClass

ROWS = 60_000
GROUPED = "SELECT b, COUNT(*), MAX(c) FROM t GROUP BY b ORDER BY b"


@pytest.fixture(scope="module")
def engine(embedded_server) -> EmbeddedEngine:
    engine = EmbeddedEngine(embedded_server, "queries")
    engine.execute(
        "CREATE TABLE t AS SELECT g AS a, g % 100 AS b, repeat('x', 100) AS c "
        f"FROM generate_series(1, {ROWS}) g; CREATE INDEX t_a ON t (a)"
    )
    engine.execute("VACUUM ANALYZE t")
    engine.execute("ALTER DATABASE queries SET min_parallel_table_scan_size = 0")
    engine.execute("ALTER DATABASE queries SET parallel_setup_cost = 0")
    engine.execute("ALTER DATABASE queries SET parallel_tuple_cost = 0")
    return engine


@pytest.fixture
def opened(engine: EmbeddedEngine) -> Iterator[Callable[[float], PostgresQueries]]:
    made: list[PostgresQueries] = []

    def open_(timeout_s: float = 60) -> PostgresQueries:
        made.append(engine.queries(timeout_s))
        return made[-1]

    yield open_
    for session in made:
        session.close()


def test_reads_are_of_all_workers_and_rows_are_the_answer_s(opened, engine):
    [(pages,)] = engine.query("SELECT relpages FROM pg_class WHERE relname = 't'")
    session = opened()
    for dop in (1, 2):
        session.set_dop(dop)
        found = session.measures(session.execute(GROUPED))
        assert found.rows == 100 and found.actual_dop == dop
        assert pages <= found.logical_reads <= pages + 100
        assert found.physical_reads * 8192 == found.read_bytes <= found.logical_reads * 8192
        assert found.spill_bytes == 0 and found.grant_kib is None and found.cpu_ms is None
    assert session.limited is None


def test_what_is_read_from_disk_waits(opened, engine):
    engine.caches.empty()
    found = (session := opened()).measures(session.execute(GROUPED))
    assert found.physical_reads > 100 and found.wait_ms["data file read"] > 0


def test_a_sort_that_does_not_fit_spills(opened):
    session = opened()
    session.set_dop(1)
    found = session.measures(session.execute("SELECT * FROM t ORDER BY c, a DESC"))
    assert found.rows == ROWS
    assert found.spill_bytes > ROWS * 100 and found.wait_ms["temporary file write"] > 0


def test_each_pass_of_a_sort_counts_as_spill(opened, engine):
    """PostgreSQL's own totals, `temp_bytes` and "Disk" of EXPLAIN, are the size of the file in the end (16 and 18)."""
    engine.execute("ALTER DATABASE queries SET work_mem = '64kB'")
    session = opened()
    engine.execute("ALTER DATABASE queries RESET work_mem")
    session.set_dop(1)
    answer = session.execute("SELECT * FROM t ORDER BY c, a DESC")
    [explained] = json.loads(answer.plan)
    sort = explained["Plan"]
    assert (sort["Node Type"], sort["Sort Space Type"]) == ("Sort", "Disk")
    assert session.measures(answer).spill_bytes > 2 * 1024 * sort["Sort Space Used"]


def test_the_degree_of_parallelism_goes_back_to_the_server_s_own(opened, engine):
    engine.execute("ALTER DATABASE queries SET max_parallel_workers_per_gather = 1")
    session = opened()
    used = []
    for dop in (None, 1, None, 1, 2):
        session.set_dop(dop)
        used.append(session.measures(session.execute(GROUPED)).actual_dop)
    assert used == [2, 1, 2, 1, 2]


def test_a_query_that_takes_too_long_is_given_up_and_the_next_one_works(opened):
    session = opened(1)
    with pytest.raises(CallFailed) as failed:
        session.execute("SELECT pg_sleep(30)")
    assert failed.value.kind is ErrorClass.TIMEOUT
    assert session.measures(session.execute(GROUPED)).rows == 100


def test_a_query_that_is_wrong_says_so(opened):
    with pytest.raises(CallFailed, match="nothing_there"):
        opened().execute("SELECT * FROM nothing_there")


def test_the_shape_of_a_plan_is_its_operators_tables_and_indexes(opened):
    session = opened()
    session.set_dop(1)

    def shape(text: str) -> str:
        return session.measures(session.execute(text)).plan_hash

    same = {shape(f"SELECT c FROM t WHERE a = {number}") for number in (1, 20_000, -5)}
    assert len(same) == 1
    others = {shape("SELECT c FROM t WHERE a + 0 = 1"), shape("SELECT c FROM t AS other WHERE a = 1"), shape(GROUPED)}
    assert len(others) == 3 and not same & others


def test_neither_costs_nor_counts_are_of_the_shape(opened):
    session = opened()
    [explained] = json.loads(session.execute(GROUPED).plan)
    plan = explained["Plan"]
    other = deepcopy(plan)
    other |= {"Total Cost": 1.5, "Actual Rows": 7, "Shared Read Blocks": 123456}
    assert plan_hash(other) == plan_hash(plan)
    assert plan_hash(other | {"Node Type": "Another"}) != plan_hash(plan)


def test_without_times_there_are_no_waits(opened, engine):
    engine.execute("ALTER DATABASE queries SET track_io_timing = off")
    try:
        session = opened()
        assert session.measures(session.execute(GROUPED)).wait_ms is None
        assert "track_io_timing is off" in session.limited
    finally:
        engine.execute("ALTER DATABASE queries RESET track_io_timing")
