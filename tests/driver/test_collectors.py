"""The collectors against real servers, and what they make of machines that are not here."""

import mmap
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.driver.collectors import REGISTRY, block_devices, collectors_for
from stallmark.driver.collectors.base import Collector, Row
from stallmark.driver.collectors.block_devices import Mount, NoBlockDevice, device_behind, parse_diskstats
from stallmark.driver.collectors.device import Device
from stallmark.driver.collectors.host import Host
from stallmark.driver.collectors.postgres.counters import (
    Checkpoints,
    Database,
    Relations,
    ServerIO,
    UserIO,
    Wal,
)
from stallmark.driver.collectors.postgres.waits import Waits, wait_class
from stallmark.driver.engines.slow_device import DeviceCounters

from .conftest import Cluster, ClusterEngine, eventually

BLOCK = 8192
WAIT_CLASSES = ("io", "lock", "wal", "cpu", "client", "other")


@contextmanager
def opened(collector: Collector) -> Iterator[Collector]:
    collector.open()
    try:
        yield collector
    finally:
        collector.close()


def read(collector: Collector) -> list[Row]:
    with opened(collector):
        return collector.sample(0.0)


def one(rows: list[Row], **having: object) -> Row:
    [row] = [row for row in rows if all(row[name] == value for name, value in having.items())]
    return row


@pytest.fixture
def user(engine: ClusterEngine) -> Iterator[psycopg.Connection]:
    connection = engine.connect("stallmark-user")
    yield connection
    connection.close()


def flush(user: psycopg.Connection) -> None:
    """A session keeps its counts to itself for up to a second otherwise."""
    user.execute("SELECT pg_stat_force_next_flush()")
    user.execute("SELECT 1")


@pytest.fixture
def table(cluster: Cluster, engine: ClusterEngine) -> Iterator[tuple[str, int]]:
    """A table of four times the pool, frozen, none of it in the pool; and its bytes."""
    engine.execute(
        "CREATE TABLE big AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 16000) i"
    )
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


# A table for `relations` and a user for `user_io` are needed to have a row at all. The table comes first: it
# restarts the server.
def test_rows_have_the_columns_they_declare(engine: ClusterEngine, table, user: psycopg.Connection) -> None:
    for collector in collectors_for(engine):
        if collector.unavailable():
            continue
        with opened(collector):
            rows = collector.sample(0.0) + collector.finish()
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
        "device": {"late"},
    }
    for collector in collectors_for(engine):
        if collector.unavailable() is None and collector.name != "waits":
            columns = set(collector.columns.names)
            assert columns - filled(read(collector)) == absent.get(collector.name, set()), collector.name


def test_wal_io_is_in_server_io_from_18_on(cluster: Cluster, engine: ClusterEngine) -> None:
    kinds = {row["kind"] for row in read(ServerIO(engine))}
    assert kinds == ({"data", "temp", "wal"} if cluster.major >= 18 else {"data", "temp"})


def test_user_io_needs_18(cluster: Cluster, engine: ClusterEngine) -> None:
    sentence = UserIO(engine).unavailable()
    if cluster.major >= 18:
        assert sentence is None
    else:
        assert sentence == "PostgreSQL 16 does not count I/O per session: that needs PostgreSQL 18."


# Counters rise by what was done


def test_server_io_counts_the_blocks_of_a_scan(
    engine: ClusterEngine, table, user: psycopg.Connection
) -> None:
    name, size = table
    with opened(ServerIO(engine)) as collector:
        before = one(collector.sample(0.0), entity="client backend/relation/bulkread")
        assert before["reads"] == 0
        user.execute(f"SELECT count(*) FROM {name}")
        flush(user)
        after = one(collector.sample(1.0), entity="client backend/relation/bulkread")
    assert after["read_bytes"] == size
    assert 0 < after["reads"] <= size // BLOCK
    assert after["read_stall_ms"] > 0
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


def test_user_io_is_the_scan_of_that_user(engine: ClusterEngine, table, user: psycopg.Connection) -> None:
    if UserIO(engine).unavailable():
        pytest.skip("this version has no I/O per session")
    name, size = table
    user.execute(f"EXPLAIN SELECT count(*) FROM {name}")  # reads the catalogue
    flush(user)
    other = engine.connect("stallmark-user")
    with opened(UserIO(engine)) as collector:
        before = one(collector.sample(0.0), pid=user.info.backend_pid)
        user.execute(f"SELECT count(*) FROM {name}")
        flush(user)
        rows = collector.sample(5.0)
    after = one(rows, pid=user.info.backend_pid)
    assert {row["pid"] for row in rows} == {user.info.backend_pid, other.info.backend_pid}
    assert after["read_bytes"] - before["read_bytes"] == size
    assert after["epoch"] == before["epoch"]
    assert (
        len({row["epoch"] for row in rows}) == 2
    )  # a session that gets a known pid is not taken for the old one
    other.close()


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
        user.execute(
            "SELECT pg_logical_emit_message(false, 'test', repeat('x', 100000)) FROM generate_series(1, 20)"
        )
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


def test_device_counts_what_is_written_past_the_page_cache(cluster: Cluster, engine: ClusterEngine) -> None:
    if reason := Device(engine).unavailable():
        pytest.skip(reason)
    size = 1 << 20
    with opened(Device(engine)) as collector:
        [before] = collector.sample(0.0)
        file = os.open(cluster.folder / "direct", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        try:
            assert os.write(file, mmap.mmap(-1, size)) == size
        finally:
            os.close(file)
        [after] = collector.sample(1.0)
    assert after["write_bytes"] - before["write_bytes"] >= size
    assert after["writes"] > before["writes"]
    assert after["busy_ms"] >= before["busy_ms"]
    assert after["entity"].startswith("data+wal: ") and after["role"] == "data+wal" and not after["emulated"]


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


def test_a_crash_begins_an_epoch_of_everything(
    cluster: Cluster, engine: ClusterEngine, table, user: psycopg.Connection
) -> None:
    before = epochs(engine)
    os.kill(user.info.backend_pid, signal.SIGKILL)  # the postmaster lives on and starts everything anew
    eventually(lambda: not psutil.pid_exists(user.info.backend_pid))
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
    def session(self):
        return ClusterEngine(self.cluster).session()


def test_waits_of_another_role_need_a_privilege(
    cluster: Cluster, engine: ClusterEngine, stranger: str
) -> None:
    assert Waits(ClusterEngine(cluster, stranger)).unavailable() is None  # its own sessions everybody may see
    waits = Waits(UsersOfAnotherRole(cluster, stranger))
    sentence = waits.unavailable()
    assert sentence is not None and "GRANT pg_monitor TO stranger" in sentence and "\n" not in sentence
    engine.execute("GRANT pg_monitor TO stranger")
    assert waits.unavailable() is None


def test_waits_never_take_hidden_sessions_for_busy_ones(
    cluster: Cluster, user: psycopg.Connection, stranger: str
) -> None:
    with opened(Waits(ClusterEngine(cluster, stranger))) as waits:
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
    assert ServerIO(engine).limited() is None
    engine.execute("ALTER DATABASE postgres SET track_io_timing = off")
    try:
        collector = ServerIO(engine)
        sentence = collector.limited()
        rows = [row for row in read(collector) if row["kind"] == "data"]
        assert collector.unavailable() is None
    finally:
        engine.execute("ALTER DATABASE postgres RESET track_io_timing")
    assert sentence is not None and "track_io_timing is off" in sentence and "counted" in sentence
    assert "reads" in filled(rows)
    assert not {name for name in filled(rows) if name.endswith("_stall_ms")}


def test_a_remote_servers_machine_is_not_this_one(engine: ClusterEngine) -> None:
    engine.is_local = False
    for kind in (Host, Device):
        sentence = kind(engine).unavailable()
        assert sentence is not None and "another machine" in sentence
    assert ServerIO(engine).unavailable() is None


# Waits


def test_waits_count_each_user_once_per_poll(cluster: Cluster, engine: ClusterEngine, user) -> None:
    holder = engine.connect("not a user")
    holder.execute("CREATE TABLE locked (i int); INSERT INTO locked VALUES (1)")
    holder.execute("BEGIN; UPDATE locked SET i = 2")
    busy = [engine.connect("stallmark-user") for _ in range(3)]
    statements = ["UPDATE locked SET i = 3", "UPDATE locked SET i = 4", "DO $$ BEGIN LOOP END LOOP; END $$"]
    threads = [
        threading.Thread(target=_until_cancelled, args=pair) for pair in zip(busy, statements, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stallmark-user' AND state = 'active'"
            " AND (wait_event_type = 'Lock' OR query LIKE 'DO%')"
        )
        eventually(lambda: engine.query(waiting) == [(3,)])
        with opened(Waits(engine)) as waits:
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
    samples = {
        kind: sum(row["samples"] for row in rows if row["wait_class"] == kind) for kind in WAIT_CLASSES
    }
    assert samples == {"lock": 20, "cpu": 10, "client": 10, "io": 0, "wal": 0, "other": 0}
    assert {row["second"] for row in rest} == {6} and sum(row["samples"] for row in rest) == 4


def _until_cancelled(connection: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(statement)


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


words = (
    st.none() | st.text(min_size=1) | st.sampled_from(["IO", "LWLock", "IPC", "Lock", "Client", "WALSync"])
)


@given(words, words, words)
def test_every_wait_has_a_class(state, event_type, event) -> None:
    kind, name = wait_class(state, event_type, event)
    assert kind in WAIT_CLASSES and name


# Devices

count = st.integers(min_value=0, max_value=2**63)


@st.composite
def diskstats(draw: st.DrawFn) -> dict[tuple[int, int, str], list[int]]:
    """As many fields as kernels have had: 11, 15 with discards, 17 with flushes, and two of the future."""
    width = draw(st.sampled_from([11, 15, 17, 19]))
    device = st.tuples(
        st.integers(0, 4095),
        st.integers(0, 2**20 - 1),
        st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True),
    )
    return draw(
        st.dictionaries(device, st.lists(count, min_size=width, max_size=width), max_size=5).filter(
            lambda lines: len({key[:2] for key in lines}) == len(lines)
        )
    )


@given(diskstats())
def test_diskstats_of_any_kernel(lines: dict[tuple[int, int, str], list[int]]) -> None:
    text = "".join(
        f"{major:4d} {minor:7d} {name} {' '.join(map(str, fields))}\n"
        for (major, minor, name), fields in lines.items()
    )
    parsed = parse_diskstats(text)
    assert parsed.keys() == {f"{major}:{minor}" for major, minor, _ in lines}
    for (major, minor, _), fields in lines.items():
        counters = parsed[f"{major}:{minor}"]
        assert (counters.reads, counters.read_bytes, counters.read_ms) == (
            fields[0],
            fields[2] * 512,
            fields[3],
        )
        assert (counters.writes, counters.write_bytes, counters.write_ms) == (
            fields[4],
            fields[6] * 512,
            fields[7],
        )
        assert (counters.busy_ms, counters.queue_ms) == (fields[9], fields[10])
        expected = (fields[15], fields[16]) if len(fields) >= 17 else (None, None)
        assert (counters.syncs, counters.sync_ms) == expected


def test_this_kernels_diskstats_are_its_sysfs() -> None:
    if not block_devices.SYS_BLOCK.is_dir():
        pytest.skip("no Linux")
    assert parse_diskstats(block_devices.DISKSTATS.read_text()).keys() >= {
        path.name
        for path in block_devices.SYS_BLOCK.iterdir()
        if (path / "stat").read_text().split()[0] != "0"
    }


def test_memory_is_no_device() -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("no Linux")
    with pytest.raises(NoBlockDevice, match=r"/dev/shm is in memory \(tmpfs\)"):
        device_behind(memory)


@pytest.mark.parametrize(
    ("mount", "sentence"),
    [
        (
            Mount("overlay", Path("/"), "overlay", "rw,upperdir=/does/not/exist"),
            "container's own layers",
        ),
        (Mount("overlay", Path("/"), "overlay", "rw"), "container's own layers"),
        (Mount("server:/export", Path("/mnt"), "nfs4", "rw"), "on nfs4, which is no block device"),
        (Mount("tank/db", Path("/tank"), "zfs", "rw"), "on zfs, which is no block device"),
        (Mount("/dev/null", Path("/mnt"), "fuse", "rw"), "on fuse, which is no block device"),
    ],
)
def test_what_lies_on_no_block_device_is_said(mount: Mount, sentence: str) -> None:
    with pytest.raises(NoBlockDevice, match=sentence):
        block_devices._behind_mount(Path("/mnt/database"), mount)


def test_an_overlay_is_where_its_upper_layer_is(tmp_path: Path) -> None:
    mount = Mount("overlay", Path("/"), "overlay", f"rw,lowerdir=/a,upperdir={tmp_path},workdir=/b")
    try:
        expected = device_behind(tmp_path)
    except NoBlockDevice as reason:
        pytest.skip(str(reason))
    assert block_devices._behind_mount(Path("/var/lib/database"), mount) == expected


@pytest.mark.parametrize(
    ("kind", "counts"), [(None, True), ("partition", False), ("dm", False), ("md", False)]
)
def test_syncs_are_counted_for_whole_disks_only(tmp_path: Path, monkeypatch, kind, counts) -> None:
    number = os.stat(tmp_path).st_dev
    folder = tmp_path / "devices" / "disk" / "part" if kind == "partition" else tmp_path / "devices" / "disk"
    folder.mkdir(parents=True)
    (tmp_path / "devices" / "disk" / "diskseq").write_text("42\n")
    if kind:
        (folder / kind).mkdir()
    (tmp_path / f"{os.major(number)}:{os.minor(number)}").symlink_to(folder)
    monkeypatch.setattr(block_devices, "SYS_BLOCK", tmp_path)
    device = device_behind(tmp_path)
    assert device.counts_syncs is counts and device.name == folder.name and device.epoch.endswith("disk 42")


class Emulation:
    def __init__(self, reads: int):
        self.reads = reads

    def counters(self) -> dict[str, DeviceCounters]:
        counted = DeviceCounters(self.reads, 8192, 3_000_000, 2, 16384, 4_000_000, 1, 5_000_000, 6_000_000, 0)
        return {"data": counted, "wal": counted}


def test_an_emulated_device_is_labelled_so(engine: ClusterEngine) -> None:
    engine.devices = Emulation(reads=10)
    with opened(Device(engine)) as collector:
        rows = collector.sample(0.0)
        engine.devices = Emulation(reads=0)
        again = collector.sample(1.0)
    emulated = [row for row in rows if row["emulated"]]
    assert [(row["entity"], row["role"]) for row in emulated] == [("data", "data"), ("wal", "wal")]
    assert {row["role"] for row in rows if not row["emulated"]} <= {"underlying"}
    row = emulated[0]
    assert (row["reads"], row["read_ms"], row["sync_ms"], row["busy_ms"], row["queue_ms"]) == (
        10,
        3.0,
        5.0,
        6.0,
        12.0,
    )
    assert one(again, entity="data")["epoch"] != row["epoch"]
