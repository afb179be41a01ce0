"""The collectors against real servers, and what they make of machines that are not here."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import Cluster, ClusterEngine, one
from support.collecting import opened, read
from support.waiting import eventually

from stallmark.collectors import ON_REQUEST, REGISTRY, collectors_for
from stallmark.collectors.host import EMULATED_ONLY, DeviceIO, Host, ServerCpu
from stallmark.collectors.postgres.counters import (
    Checkpoints,
    Database,
    LoadIO,
    Relations,
    RowLocks,
    ServerIO,
    UserWaits,
    Wal,
    wait_class,
)
from stallmark.collectors.sampler import Row
from stallmark.engines.mssql import engine as mssql
from stallmark.engines.postgres import engine as postgres
from stallmark.engines.postgres.engine import PostgresEngine

BLOCK = 8192


def flush(user: psycopg.Connection) -> None:
    """A session keeps its counts to itself for up to a second otherwise."""
    user.execute("SELECT pg_stat_force_next_flush()")
    user.execute("SELECT 1")


@pytest.fixture
def table(cluster: Cluster, engine: ClusterEngine) -> Iterator[tuple[str, int]]:
    """A table of four times the pool, frozen, none of it in the pool; and its bytes."""
    engine.execute("CREATE TABLE big AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 16000) i")
    engine.execute("VACUUM (FREEZE) big")
    engine.execute("CHECKPOINT")
    cluster.restart()
    [(size,)] = engine.query("SELECT pg_relation_size('big')")
    yield "big", size
    engine.execute("DROP TABLE big")


# What they say of themselves


def test_every_collector_describes_itself(engine: ClusterEngine) -> None:
    collectors = collectors_for(engine)
    assert [collector.name for collector in collectors] == [kind.name for kind in REGISTRY["postgresql"]]
    assert len({collector.name for collector in collectors}) == len(collectors)
    for collector in collectors:
        assert collector.title and collector.help.endswith(".") and collector.interval_s > 0


# A table for `relations` and a user for `load_io` are needed to have a row at all. The table comes first: it
# restarts the server.
def test_rows_have_the_columns_they_declare(engine: ClusterEngine, table, user: psycopg.Connection) -> None:
    for collector in collectors_for(engine):
        if collector.unavailable():
            continue
        with opened(collector):
            rows = [*collector.sample(0.0), *collector.finish()]
        assert rows, collector.name
        for row in rows:
            assert list(row) == collector.columns.names
        batch = pa.RecordBatch.from_pylist(rows, schema=collector.columns)
        assert batch.to_pylist() == rows


def filled(rows: list[Row]) -> set[str]:
    return {name for row in rows for name, value in row.items() if value is not None}


def test_columns_are_empty_only_where_the_version_has_none(
    cluster: Cluster, engine: ClusterEngine, table, user: psycopg.Connection
) -> None:
    absent: dict[str, set[str]] = {
        "wal": {"writes", "syncs", "write_ms", "sync_ms"} if cluster.major >= 18 else set(),
        "checkpoints": {"done"} if cluster.major < 18 else set(),
        "device": {*EMULATED_ONLY},
    }
    for collector in collectors_for(engine):
        if collector.unavailable() is None and collector.name not in ("waits", "row_locks"):
            columns = set(collector.columns.names)
            assert columns - filled(read(collector)) == absent.get(collector.name, set()), collector.name


def test_wal_io_is_in_server_io_from_18_on(cluster: Cluster, engine: ClusterEngine) -> None:
    kinds = {row["kind"] for row in read(ServerIO(engine))}
    assert kinds == ({"data", "temp", "wal"} if cluster.major >= 18 else {"data", "temp"})


def test_load_io_needs_18(cluster: Cluster, engine: ClusterEngine) -> None:
    sentence = LoadIO(engine).unavailable()
    if cluster.major >= 18:
        assert sentence is None
    else:
        assert sentence == "PostgreSQL 16 does not count I/O per session: that needs PostgreSQL 18."


# Counters rise by what was done


def test_server_io_counts_the_blocks_of_a_scan(engine: ClusterEngine, table, user: psycopg.Connection) -> None:
    name, size = table
    with opened(ServerIO(engine)) as collector:
        before = one(collector.sample(0.0), entity="client backend/relation/bulkread")
        user.execute(f"SELECT count(*) FROM {name}")
        flush(user)
        after = one(collector.sample(1.0), entity="client backend/relation/bulkread")
    assert after["read_bytes"] - before["read_bytes"] == size
    assert 0 < after["reads"] - before["reads"] <= size // BLOCK
    assert after["read_stall_ms"] > before["read_stall_ms"]
    assert after["server_time"] > before["server_time"]


def test_server_io_leaves_out_rows_of_zeros_after_the_first_sample(engine: ClusterEngine) -> None:
    counts = ("reads", "writes", "extends", "syncs", "hits", "evictions")
    with opened(ServerIO(engine)) as collector:
        first, second = collector.sample(0.0), collector.sample(1.0)
    idle = {row["entity"] for row in first if not any(row[count] for count in counts)}
    assert idle
    assert {row["entity"] for row in second} >= {row["entity"] for row in first} - idle
    assert all(any(row[count] for count in counts) for row in second)


def test_relations_count_the_blocks_of_a_scan(engine: ClusterEngine, table, user: psycopg.Connection) -> None:
    name, size = table
    with opened(Relations(engine)) as collector:
        before = one(collector.sample(0.0), relation=f"public.{name}")
        user.execute(f"SELECT count(*) FROM {name}")
        flush(user)
        after = one(collector.sample(1.0), relation=f"public.{name}")
    assert after["heap_reads"] - before["heap_reads"] == size // BLOCK
    assert after["index_reads"] == before["index_reads"]


@pytest.fixture
def load_io(clusters) -> Iterator[LoadIO]:
    with opened(LoadIO(ClusterEngine(clusters(18)))) as collector:
        yield collector


@pytest.mark.parametrize("cluster", [18], indirect=True)
def test_load_io_is_the_scan_of_that_load(engine: ClusterEngine, table, load_io: LoadIO) -> None:
    name, size = table
    loads = ("stallmark-user-mail", "stallmark-user-bank", "stallmark-stream-bank")
    sessions = {load: engine.connect(load) for load in loads}
    for session in sessions.values():
        session.execute(f"EXPLAIN SELECT count(*) FROM {name}")  # reads the catalogue
        flush(session)
    before = {row["application"]: row for row in load_io.sample(0.0)}
    for load, session in sessions.items():
        session.execute(f"{'EXPLAIN' if load.endswith('mail') else ''} SELECT count(*) FROM {name}")
        flush(session)
    after = {row["application"]: row for row in load_io.sample(1.0)}
    assert after.keys() == before.keys() == {*loads}
    rise = {load: after[load]["read_bytes"] - before[load]["read_bytes"] for load in loads}
    assert rise["stallmark-user-mail"] == 0 and rise["stallmark-user-bank"] == size
    assert 0 < rise["stallmark-stream-bank"] <= size  # some of it is in the pool by now
    assert all(after[load]["epoch"] == before[load]["epoch"] and after[load]["sessions"] == 1 for load in loads)
    for session in sessions.values():
        session.close()


@pytest.mark.parametrize("cluster", [18], indirect=True)
def test_load_io_begins_anew_where_a_session_took_its_counts_with_it(
    engine: ClusterEngine, user: psycopg.Connection, load_io: LoadIO
) -> None:
    [first] = load_io.sample(0.0)
    other = engine.connect("stallmark-user")
    flush(other)
    [joined] = load_io.sample(1.0)
    assert (first["sessions"], joined["sessions"]) == (1, 2) and joined["epoch"] == first["epoch"]
    other.close()
    alive = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stallmark-user'"
    eventually(lambda: engine.query(alive) == [(1,)])
    [left] = load_io.sample(2.0)
    assert left["sessions"] == 1 and left["epoch"] != joined["epoch"]
    assert load_io.sample(3.0)[0]["epoch"] == left["epoch"]


@pytest.mark.parametrize("cluster", [18], indirect=True)
def test_load_io_leaves_wal_to_others(engine: ClusterEngine, user: psycopg.Connection, load_io: LoadIO) -> None:
    def wal_writes() -> int:
        return one(read(ServerIO(engine)), entity="client backend/wal/normal")["writes"]

    flush(user)
    [before], wal_before = load_io.sample(0.0), wal_writes()
    for _ in range(5):
        user.execute("SELECT pg_logical_emit_message(true, 'test', 'x')")  # each commit writes WAL
    flush(user)
    [after] = load_io.sample(1.0)
    assert wal_writes() > wal_before
    assert after["writes"] == before["writes"] and after["write_bytes"] == before["write_bytes"]


def test_database_counts_rollbacks_and_knows_its_own(engine: ClusterEngine, user: psycopg.Connection) -> None:
    with opened(Database(engine)) as collector:
        before = one(collector.sample(0.0), own=True)
        for _ in range(7):
            user.execute("BEGIN")
            user.execute("ROLLBACK")
        flush(user)
        rows = collector.sample(1.0)
    after = one(rows, own=True)
    assert after["database"] == "postgres"
    assert after["rollbacks"] - before["rollbacks"] == 7
    assert {row["database"] for row in rows} >= {"postgres", "template1", "(shared by all)"}


def test_checkpoints_and_wal(cluster: Cluster, engine: ClusterEngine, user: psycopg.Connection) -> None:
    with opened(Checkpoints(engine)) as checkpoints, opened(Wal(engine)) as wal:
        [before], [wal_before] = checkpoints.sample(0.0), wal.sample(0.0)
        user.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 100000)) FROM generate_series(1, 20)")
        flush(user)
        user.execute("CHECKPOINT")
        eventually(lambda: checkpoints.sample(1.0)[0]["requested"] > before["requested"])
        [after], [wal_after] = checkpoints.sample(1.0), wal.sample(1.0)
    assert after["requested"] - before["requested"] == 1
    assert after["done"] is None if cluster.major < 18 else after["done"] - before["done"] == 1
    assert wal_after["bytes"] - wal_before["bytes"] > 2_000_000
    assert wal_after["records"] - wal_before["records"] >= 20


def test_host_is_what_the_kernel_says(engine: ClusterEngine) -> None:
    before, [row], after = psutil.cpu_times(), read(Host(engine)), psutil.cpu_times()
    assert before.user + before.nice <= row["user_s"] <= after.user + after.nice
    assert before.idle <= row["idle_s"] <= after.idle
    assert before.iowait <= row["iowait_s"] <= after.iowait
    assert row["cores"] == psutil.cpu_count()
    assert 0 < row["available_bytes"] < psutil.virtual_memory().total


# Epochs


def epochs(engine: ClusterEngine) -> dict[str, str]:
    kinds = (ServerIO, Wal, Checkpoints, Database, Relations)
    rows = {kind.name: read(kind(engine)) for kind in kinds}
    rows["database"] = [one(rows["database"], own=True)]
    rows["relations"] = [row for row in rows["relations"] if row["relation"] == "public.big"]
    return {name: rows[0]["epoch"] for name, rows in rows.items()}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_a_reset_begins_an_epoch_of_what_was_reset(engine: ClusterEngine, table) -> None:
    before = epochs(engine)
    assert changed(before, epochs(engine)) == set()
    engine.execute("SELECT pg_stat_reset_shared('io')")
    assert changed(before, epochs(engine)) == {"server_io"}
    before = epochs(engine)
    engine.execute("SELECT pg_stat_reset()")
    assert changed(before, epochs(engine)) == {"database", "relations"}


def test_a_table_made_anew_begins_an_epoch(engine: ClusterEngine, table) -> None:
    before = epochs(engine)
    engine.execute("DROP TABLE big; CREATE TABLE big (i int)")
    assert changed(before, epochs(engine)) == {"relations"}


def test_a_restart_begins_an_epoch_of_everything(cluster: Cluster, engine: ClusterEngine, table) -> None:
    before = epochs(engine)
    cluster.restart()
    assert changed(before, epochs(engine)) == set(before)


def is_alive(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def test_every_crash_begins_an_epoch_of_everything(cluster: Cluster, engine: ClusterEngine, table) -> None:
    for _ in range(2):  # before the second, a database has never been reset and the postmaster is the same
        before = epochs(engine)
        victim, witness = engine.connect("stallmark-user"), engine.connect("witness")
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        # the postmaster lives on, ends everybody and starts anew
        eventually(lambda witness=witness: not is_alive(witness))
        eventually(cluster.answers)
        assert changed(before, epochs(engine)) == set(before)


def test_after_a_reset_rows_of_zeros_are_stored_once_more(engine: ClusterEngine) -> None:
    with opened(ServerIO(engine)) as collector:
        everything = len(collector.sample(0.0))
        assert len(collector.sample(1.0)) < everything
        engine.execute("SELECT pg_stat_reset_shared('io')")
        assert len(collector.sample(2.0)) == everything


# What cannot be measured is said


@pytest.fixture
def stranger(engine: ClusterEngine) -> Iterator[str]:
    engine.execute("CREATE ROLE stranger LOGIN")
    yield "stranger"
    engine.execute("DROP OWNED BY stranger; DROP ROLE stranger")


class UsersOfAnotherRole(ClusterEngine):
    def session(self, call_timeout_s: float, application: str = "stallmark-user"):
        return ClusterEngine(self.cluster).session(call_timeout_s, application)


def test_waits_of_another_role_need_a_privilege(cluster: Cluster, engine: ClusterEngine, stranger: str) -> None:
    assert UserWaits(ClusterEngine(cluster, stranger)).unavailable() is None  # its own sessions everybody may see
    waits = UserWaits(UsersOfAnotherRole(cluster, stranger))
    sentence = waits.unavailable()
    assert sentence is not None and "GRANT pg_monitor TO stranger" in sentence and "\n" not in sentence
    engine.execute("GRANT pg_monitor TO stranger")
    assert waits.unavailable() is None


def test_waits_never_take_hidden_sessions_for_busy_ones(
    cluster: Cluster, user: psycopg.Connection, stranger: str
) -> None:
    with opened(UserWaits(ClusterEngine(cluster, stranger))) as waits:
        with pytest.raises(Exception, match="GRANT pg_monitor"):
            waits.sample(0.0)
        assert waits.finish() == []


def test_a_view_taken_away_is_named(cluster: Cluster, engine: ClusterEngine, stranger: str) -> None:
    engine.execute("REVOKE SELECT ON pg_stat_io FROM PUBLIC")
    try:
        sentence = ServerIO(ClusterEngine(cluster, stranger)).unavailable()
    finally:
        engine.execute("GRANT SELECT ON pg_stat_io TO PUBLIC")
    assert sentence is not None and "pg_stat_io" in sentence and "GRANT pg_monitor TO stranger" in sentence
    assert ServerIO(ClusterEngine(cluster, stranger)).unavailable() is None


def test_without_timing_there_are_counts_and_no_times(engine: ClusterEngine) -> None:
    assert ServerIO(engine).limitation() is None
    engine.execute("ALTER DATABASE postgres SET track_io_timing = off")
    try:
        collector = ServerIO(engine)
        sentence = collector.limitation()
        rows = [row for row in read(collector) if row["kind"] == "data"]
        assert collector.unavailable() is None
    finally:
        engine.execute("ALTER DATABASE postgres RESET track_io_timing")
    assert sentence is not None and "track_io_timing is off" in sentence and "counted" in sentence
    assert "reads" in filled(rows)
    assert not {name for name in filled(rows) if name.endswith("_stall_ms")}


def test_the_devices_of_a_server_on_a_socket_are_those_of_its_folders(cluster: Cluster) -> None:
    engine = PostgresEngine(cluster.url())
    assert engine.storage_here() == {"data": cluster.data, "wal": cluster.data / "pg_wal"}
    assert DeviceIO(engine).unavailable() == DeviceIO(ClusterEngine(cluster)).unavailable()


def test_who_may_not_read_where_the_data_lie_has_no_devices(cluster: Cluster, stranger: str) -> None:
    engine = PostgresEngine(cluster.url(stranger))
    assert engine.storage_here() == {}
    sentence = DeviceIO(engine).unavailable()
    assert sentence is not None and "not known" in sentence


def test_a_server_on_a_socket_is_on_this_machine(cluster: Cluster, engine: ClusterEngine) -> None:
    """Under an unprivileged user it has a user namespace of its own, as the embedded server."""
    pid = engine.process()
    assert pid is not None and str(pid) == (cluster.data / "postmaster.pid").read_text().split()[0]
    for kind in (Host, ServerCpu):
        assert kind(engine).unavailable() is None


def test_a_server_whose_process_is_not_seen_may_be_anywhere(
    engine: ClusterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClusterEngine, "process", lambda self: None)
    for kind in (Host, ServerCpu):
        sentence = kind(engine).unavailable()
        assert sentence is not None and "not seen on this machine" in sentence
    assert ServerIO(engine).unavailable() is None


def _risen(collector: ServerCpu, user_s: float) -> Row | None:
    """Return a sample if it has so much CPU time: that of a session is the server's once its process was waited for."""
    [sample] = collector.sample(1.0)
    return sample if sample["user_s"] >= user_s else None


def test_the_server_s_cpu_time_holds_that_of_ended_sessions(engine: ClusterEngine) -> None:
    with opened(ServerCpu(engine)) as collector:
        [before] = collector.sample(0.0)
        engine.query("SELECT count(*) FROM generate_series(1, 2000000) AS n WHERE n % 7 = 3")
        after = eventually(lambda: _risen(collector, before["user_s"] + 0.05), "the session's CPU time is the server's")
    assert after["system_s"] >= before["system_s"] and after["epoch"] == before["epoch"]


@pytest.mark.parametrize(("dialect", "own"), [("postgresql", postgres.OWN_SESSIONS), ("mssql", mssql.OWN_SESSIONS)])
def test_there_is_a_connection_left_for_each(dialect: str, own: int) -> None:
    """Beside the users'. Two more: the lock of the run, and what is asked in between."""
    requested = [kind for kinds in ON_REQUEST.get(dialect, {}).values() for kind in kinds]
    names = {kind.name for kind in (*REGISTRY[dialect], *requested)} - {"host", "server_cpu", "kernel_cpu", "device"}
    assert len(names) + 2 <= own


@pytest.mark.parametrize(("dialect", "module"), [("postgresql", postgres), ("mssql", mssql)])
def test_there_is_a_connection_left_for_each_further_database(dialect: str, module: Any) -> None:
    """PostgreSQL's waits for rows have a second connection, for the catalogue."""
    requested = [kind for kinds in ON_REQUEST.get(dialect, {}).values() for kind in kinds]
    kinds = [kind for kind in (*REGISTRY[dialect], *requested) if kind.of_each_database]
    assert kinds and len(kinds) + (dialect == "postgresql") == module.OF_EACH_DATABASE


# Which tables' rows the users are seen to wait for


@pytest.fixture
def rows(engine: ClusterEngine) -> Iterator[None]:
    engine.execute("CREATE TABLE hot (i int PRIMARY KEY, v int); INSERT INTO hot VALUES (1, 0), (2, 0)")
    engine.execute('CREATE SCHEMA "Odd"; CREATE TABLE "Odd".cold (i int); INSERT INTO "Odd".cold VALUES (1)')
    yield
    engine.execute('DROP TABLE hot; DROP SCHEMA "Odd" CASCADE')


def _until_cancelled(connection: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(statement)


@contextmanager
def waiting(engine: ClusterEngine, *statements: str) -> Iterator[None]:
    """A user for each statement, all of whom wait."""
    users = [engine.connect(f"stallmark-user-{number}") for number, _ in enumerate(statements)]
    threads = [threading.Thread(target=_until_cancelled, args=pair) for pair in zip(users, statements, strict=True)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: engine.query("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(len(users),)])
        yield
    finally:
        for user in users:
            user.cancel()
        for thread in threads:
            thread.join()
        for user in users:
            user.close()


def looked(engine: ClusterEngine) -> dict[str | None, int]:
    """Samples by table, of three looks."""
    with opened(RowLocks(engine)) as collector:
        for tick in range(3):
            assert collector.sample(5 + tick / 10) == []
        found = collector.finish()
        assert {(row["second"], row["polls"]) for row in found} == {(5, 3)}
        return {row["relation"]: row["samples"] for row in found}


def test_every_user_in_the_queue_for_a_row_is_counted_with_its_table(engine, rows) -> None:
    with engine.connect("stallmark-user") as holder:
        holder.execute('BEGIN; UPDATE hot SET v = 1; SELECT FROM "Odd".cold FOR UPDATE')
        with waiting(
            engine,
            *["UPDATE hot SET v = 2 WHERE i = 1"] * 3,
            "SELECT FROM hot WHERE i = 2 FOR SHARE",
            'DELETE FROM "Odd".cold',
        ):
            assert looked(engine) == {"public.hot": 12, '"Odd".cold': 3}
        holder.rollback()


def test_who_waits_for_a_key_that_another_inserts_waits_for_no_known_row(engine, rows) -> None:
    with engine.connect("stallmark-user") as holder:
        holder.execute("BEGIN; INSERT INTO hot VALUES (3, 0)")
        with waiting(engine, "INSERT INTO hot VALUES (3, 1)"):
            assert looked(engine) == {"unknown": 3}
        holder.rollback()


def test_who_waits_for_a_whole_table_waits_for_no_row_and_nobody_is_a_row_too(engine, rows) -> None:
    with engine.connect("stallmark-user") as holder:
        holder.execute("BEGIN; LOCK hot")
        with waiting(engine, "UPDATE hot SET v = 2"):
            assert looked(engine) == {None: 0}
        holder.rollback()


def test_others_than_the_users_are_left_out(engine, rows) -> None:
    with engine.connect("somebody") as holder, engine.connect("somebody else") as other:
        holder.execute("BEGIN; UPDATE hot SET v = 1")
        thread = threading.Thread(target=_until_cancelled, args=(other, "UPDATE hot SET v = 2"))
        thread.start()
        eventually(lambda: engine.query("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(1,)])
        assert looked(engine) == {None: 0}
        other.cancel()
        thread.join()
        holder.rollback()


# Waits of the users


WAIT_CLASSES = ("io", "lock", "wal", "cpu", "client", "other")


def test_waits_count_each_user_once_per_poll(cluster: Cluster, engine: ClusterEngine, user) -> None:
    holder = engine.connect("not a user")
    holder.execute("CREATE TABLE locked (i int); INSERT INTO locked VALUES (1)")
    holder.execute("BEGIN; UPDATE locked SET i = 2")
    busy = [engine.connect(f"stallmark-user{load}") for load in ("", "-bank", "-mail")]
    statements = ["UPDATE locked SET i = 3", "UPDATE locked SET i = 4", "DO $$ BEGIN LOOP END LOOP; END $$"]
    threads = [threading.Thread(target=_until_cancelled, args=pair) for pair in zip(busy, statements, strict=True)]
    for thread in threads:
        thread.start()
    try:
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'stallmark-user%'"
            " AND state = 'active' AND (wait_event_type = 'Lock' OR query LIKE 'DO%')"
        )
        eventually(lambda: engine.query(waiting) == [(3,)])
        with opened(UserWaits(engine)) as waits:
            for tick in range(10):
                assert waits.sample(5 + tick / 10) == []
            rows = waits.sample(6.0)
            rest = waits.finish()
    finally:
        for connection in busy:
            connection.cancel()
        for thread in threads:
            thread.join()
        holder.execute("ROLLBACK; DROP TABLE locked")
        for connection in (*busy, holder):
            connection.close()
    assert {row["second"] for row in rows} == {5} and {row["polls"] for row in rows} == {10}
    samples = {kind: sum(row["samples"] for row in rows if row["wait_class"] == kind) for kind in WAIT_CLASSES}
    assert samples == {"lock": 20, "cpu": 10, "client": 10, "io": 0, "wal": 0, "other": 0}
    locked = {row["application"]: row["samples"] for row in rows if row["wait_class"] == "lock"}
    assert locked == {"stallmark-user": 10, "stallmark-user-bank": 10}
    assert {row["application"] for row in rows if row["wait_class"] == "cpu"} == {"stallmark-user-mail"}
    assert {row["second"] for row in rest} == {6} and sum(row["samples"] for row in rest) == 4


@pytest.mark.parametrize(
    ("state", "event_type", "event", "expected"),
    [
        ("active", None, None, ("cpu", "CPU")),
        ("active", "IO", "DataFileRead", ("io", "IO:DataFileRead")),
        ("active", "IO", "AioIoCompletion", ("io", "IO:AioIoCompletion")),
        ("active", "IPC", "BufferIO", ("io", "IPC:BufferIO")),
        ("active", "IPC", "BufferIo", ("io", "IPC:BufferIo")),
        ("active", "IO", "WALSync", ("wal", "IO:WALSync")),
        ("active", "IO", "WalWrite", ("wal", "IO:WalWrite")),
        ("active", "LWLock", "WALWrite", ("wal", "LWLock:WALWrite")),
        ("active", "LWLock", "BufferMapping", ("other", "LWLock:BufferMapping")),
        ("active", "Lock", "tuple", ("lock", "Lock:tuple")),
        ("active", "Client", "ClientRead", ("client", "Client:ClientRead")),
        ("active", "IPC", "ExecuteGather", ("other", "IPC:ExecuteGather")),
        ("idle", "Client", "ClientRead", ("client", "idle")),
        ("idle in transaction", "Client", "ClientRead", ("client", "idle in transaction")),
        ("idle", "LWLock", "ProcArray", ("client", "idle")),
        ("disabled", "IO", "DataFileRead", ("io", "IO:DataFileRead")),
        (None, None, None, ("other", "starting")),
    ],
)
def test_wait_classes(state, event_type, event, expected) -> None:
    assert wait_class(state, event_type, event) == expected


words = st.none() | st.text(min_size=1) | st.sampled_from(["IO", "LWLock", "IPC", "Lock", "Client", "WALSync"])


@given(words, words, words)
def test_every_wait_has_a_class(state, event_type, event) -> None:
    kind, name = wait_class(state, event_type, event)
    assert kind in WAIT_CLASSES and name
