"""A profile of a real PostgreSQL by a role that has pg_monitor alone. The time between samples is made up."""

import csv
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import psycopg
import pytest
from psycopg.errors import QueryCanceled
from support.clusters import Cluster
from support.command_line import stallmark
from support.embedded_servers import copied
from support.waiting import eventually

from stallmark.analysis.profile import cautions, summarise_profile
from stallmark.analysis.profile_intervals import intervals_of
from stallmark.analysis.profile_rates import Measure, ProfileKind, rates_of
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.profile.collection import Clock, Collection
from stallmark.profile.command import source_for
from stallmark.profile.postgres import statement
from stallmark.record.profile import read_profile
from stallmark.record.profile_tables import RAW_TABLES, Profile

pytestmark = pytest.mark.server
COMMITS, INTERVAL_S = 200, 15.0
OBJECTS = "SELECT (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_authid)"


@pytest.fixture(scope="module")
def engine(template):
    with copied(template) as server:
        server.start()
        engine = EmbeddedEngine(server, "shop")
        engine.server = server
        engine.execute("CREATE TABLE sold (id bigint, what text)")
        engine.execute("CREATE ROLE watcher LOGIN PASSWORD 'w4tch-it'; GRANT pg_monitor TO watcher")
        engine.execute("CREATE ROLE stranger LOGIN PASSWORD 'w4tch-it'")
        yield engine


def collect(engine, folder, role="watcher", intervals=4, work=lambda: None, **options):
    url = engine.spec().replace("stallmark@", f"{role}:w4tch-it@", 1).replace("stallmark:", f"{role}:", 1)
    passed = [0.0]

    def wait(seconds: float) -> None:
        work()
        passed[0] += seconds

    clock = Clock(lambda: time.time() + passed[0], lambda: 3000.0 + passed[0], wait, lambda: 0.0)
    source = source_for(url, anonymous=options.get("anonymous", False))
    Collection(source, folder, intervals * INTERVAL_S, clock=clock, **options).run()
    return summarise_profile(folder)


def test_what_was_done_is_counted_and_nothing_is_created(engine, tmp_path):
    before = engine.query(OBJECTS)
    with engine.connect("work") as connection:

        def work() -> None:
            for number in range(COMMITS):
                connection.execute("INSERT INTO sold VALUES (%s, repeat('x', 500))", [number])
            connection.execute("SELECT pg_stat_force_next_flush()")
            connection.execute("SELECT 1")

        found = collect(engine, tmp_path / "p", work=work)
    assert found.means[Measure.TRANSACTIONS] * found.seen_s >= 3 * COMMITS
    assert found.means[Measure.LOG_MB] * found.seen_s * 1e6 >= 3 * COMMITS * 500
    assert {one.file_class for one in found.classes} >= {"data", "log"}
    data = found.classes[0]
    assert data.size_bytes and data.size_bytes > 1 << 20
    assert found.manifest.server.pool_bytes == 128 << 20 and set(found.manifest.missing) >= {"cores", "cpu_s"}
    assert engine.query(OBJECTS) == before
    assert b"w4tch-it" not in b"".join(path.read_bytes() for path in (tmp_path / "p").iterdir())


def test_its_tables_in_sql_and_as_csv_have_what_the_report_has(engine, tmp_path):
    """A row that did not change is not stored: the sum of differences is that of the report all the same."""
    folder, number = tmp_path / "p", iter(range(10))

    def work() -> None:
        # In the second interval nothing is written.
        if next(number) != 1:
            engine.execute("INSERT INTO sold SELECT n, repeat('x', 500) FROM generate_series(1, 1000) n")
            engine.execute("CHECKPOINT")

    found = collect(engine, folder, work=work)
    intervals = intervals_of(folder)
    rises = (
        "select {name}, coalesce(sum(n), 0)::double as n from (select {name}, {value} - lag({value}) over"
        " (partition by run, {name}, epoch order by sample) as n from {table} join samples using (run, sample))"
        " group by all"
    )
    writes = asked(folder, rises.format(table="file_counters", name="file_class", value="writes"))
    assert writes == {name: np.nansum(intervals.column(f"{name}.writes")) for name in writes}
    assert {"data", "log"} <= writes.keys() and writes["log"] > 0
    counted = asked(folder, rises.format(table="server_counters", name="counter", value="value"))
    for name in ("log_bytes", "checkpoint_pages", "pages_read"):
        assert counted[name] == np.nansum(intervals.column(f"server.{name}")), name
    written = asked(folder, rises.format(table="file_counters", name="file_class", value="write_bytes"))["log"]
    assert written == pytest.approx(found.means[Measure.LOG_MB] * found.seen_s * 1e6)
    states = (
        "select samples.sample, value::double from samples asof join"
        " (from server_counters where counter = 'connections') as stored"
        " on samples.run = stored.run and samples.sample >= stored.sample"
    )
    assert list(asked(folder, states).values())[1:] == intervals.column("server.connections").tolist()

    assert stallmark("export", folder, "--csv", tmp_path / "csv").exit_code == 0
    for name in RAW_TABLES:
        with (tmp_path / "csv" / f"{name}.csv").open(newline="") as file:
            rows = [row["sample"] for row in csv.DictReader(file)]
        assert rows == [str(sample) for sample in Profile(folder).table(name)["sample"].to_pylist()], name
    refused = stallmark("sql", folder, "copy samples to 'x.csv'")
    assert refused.exit_code == 3 and "Only one SELECT is answered, not COPY" in " ".join(refused.stderr.split())


def asked(folder, statement: str) -> dict:
    """Return the answer of `stallmark sql`: its second column by its first."""
    done = stallmark("sql", folder, statement, "--json")
    assert done.exit_code == 0, done.stderr
    return dict(row.values() for row in json.loads(done.stdout))


def test_io_that_is_counted_late_is_said_of_long_transactions_alone(engine, tmp_path):
    assert ProfileKind.COUNTED_AT_END not in [one.kind for one in collect(engine, tmp_path / "quiet").cautions]
    with engine.connect("reports") as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("BEGIN")
        connection.execute("SELECT 1")
        report = pool.submit(connection.execute, "SELECT pg_sleep(60)")
        eventually(lambda: engine.query("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"))
        collect(engine, tmp_path / "busy")
        engine.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'")
        with pytest.raises(QueryCanceled):
            report.result()
        connection.execute("ROLLBACK")
    longest_s = intervals_of(tmp_path / "busy").longest_transaction_s
    assert longest_s is not None and 0 < longest_s < 60
    of_an_hour = replace(intervals_of(tmp_path / "busy"), longest_transaction_s=3600.0)
    manifest = read_profile(tmp_path / "busy")
    for intervals, said in ((of_an_hour, True), (replace(of_an_hour, longest_transaction_s=longest_s), False)):
        seen = cautions(manifest, intervals, rates_of(intervals, manifest), [], None)
        assert (ProfileKind.COUNTED_AT_END in [caution.kind for caution in seen]) == said


def test_a_role_without_pg_monitor_sees_less_and_that_is_said(engine, tmp_path):
    found = collect(engine, tmp_path / "p", role="stranger")
    assert set(found.manifest.missing) >= {"waits", "size_bytes"}
    assert found.means[Measure.TRANSACTIONS] is not None and not found.wait_classes


def test_a_restart_is_said_and_no_figure_is_taken_across_it(engine, tmp_path):
    turns = iter(range(10))

    def work() -> None:
        if next(turns) == 1:
            engine.execute("SELECT count(*) FROM pg_class")
            engine.server.stop()
            engine.server.start()

    found = collect(engine, tmp_path / "p", intervals=6, work=work)
    [lost] = [one for one in found.unseen if one.restart]
    assert lost.seconds <= 3 * INTERVAL_S
    assert min(found.rates.measures[Measure.TRANSACTIONS].amount) >= 0


@pytest.mark.parametrize("setting", ["track_io_timing", "track_wal_io_timing"])
def test_times_that_are_not_taken_are_an_epoch_of_their_own(engine, setting):
    """The counts go on, and would meet times that stood still."""
    major = engine.identity().version[0]
    text = statement("files", major)
    kinds = {"log"} if setting == "track_wal_io_timing" else {"data", "tempdb"}
    with engine.connect("work") as connection:
        epochs = {}
        for state in ("on", "off"):
            connection.execute(f"SET {setting} = {state}")
            epochs[state] = {row[0]: row[1] for row in connection.execute(text)}
    changed = {kind for kind, epoch in epochs["on"].items() if epochs["off"][kind] != epoch}
    assert changed == kinds & epochs["on"].keys()
    assert all(epochs["off"][kind].endswith(" untimed") for kind in changed)


ONE_ROW_COMMITS, QUERIES, WORKERS = 300, 20, 2


@pytest.fixture
def session(cluster: Cluster) -> Iterator[psycopg.Connection]:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE sold AS SELECT i AS id, 0 AS price FROM generate_series(1, 1000) i")
        connection.execute("ANALYZE sold")
        yield connection
        connection.execute("DROP TABLE sold")


def counts(session: psycopg.Connection, major: int, name: str) -> dict[str, tuple]:
    """Return the rows of a query of the profile, by their first column."""
    session.execute("SELECT pg_stat_force_next_flush()")
    return {row[0]: row for row in session.execute(statement(name, major))}


def test_bytes_of_the_log_are_those_written(cluster: Cluster, session: psycopg.Connection):
    """A commit of one row writes a page, whatever the length of its records. 18 counts what is written itself."""
    # A new segment is filled with zeros, and the first change of a page after a checkpoint is logged as a page.
    session.execute("SELECT pg_switch_wal()")
    session.execute("UPDATE sold SET price = 1")
    before = counts(session, cluster.major, "files")["log"]
    for number in range(ONE_ROW_COMMITS):
        session.execute("UPDATE sold SET price = 2 WHERE id = %s", [number])
    after = counts(session, cluster.major, "files")["log"]
    write_bytes = after[6] - before[6]
    assert write_bytes / ONE_ROW_COMMITS == pytest.approx(8192, rel=0.1)
    assert write_bytes / (after[5] - before[5]) == pytest.approx(8192, rel=0.1)


def test_each_parallel_worker_is_two_transactions(cluster: Cluster, session: psycopg.Connection):
    for name, value in (("max_parallel_workers_per_gather", WORKERS), ("parallel_setup_cost", 0)):
        session.execute(f"SET {name} = {value}")
    session.execute("SET min_parallel_table_scan_size = 0")
    session.execute("SET parallel_tuple_cost = 0")

    def both() -> dict[str, int]:
        rows = counts(session, cluster.major, "databases") | counts(session, cluster.major, "counters")
        return {name: row[2] for name, row in rows.items()}

    before = both()
    for _ in range(QUERIES):
        session.execute("SELECT sum(price) FROM sold")
    rises = {name: value - before[name] for name, value in both().items()}
    workers = rises.get("parallel_workers", QUERIES * WORKERS)
    assert workers == QUERIES * WORKERS
    assert rises["transactions"] - 2 * workers == pytest.approx(QUERIES, abs=8)
