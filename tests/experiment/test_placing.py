"""A scenario's database on SQL Server is made while nobody else drives the server; on PostgreSQL it lies in tablespaces
that are there."""

import io
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from rich.console import Console
from sqlalchemy.dialects import mssql
from sqlalchemy.schema import CreateTable
from support.findings import facts_of
from support.manifests import a_manifest
from support.mssql_server import MANAGED_INSTANCE, answering, engine_at, runs_on, says_it_is
from support.synthetic import Truth, make_run
from support.tds.answers import Count, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column
from support.waiting import eventually

from stallmark import engines
from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import ExperimentKind
from stallmark.engines.abilities import Maintenance, MaintenanceWork
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.runs import ConcurrentMaintenance, Run
from stallmark.experiment.target import Target, arrangement, locations, place
from stallmark.record.manifest.storage import DirectIo
from stallmark.record.reader import Record, find_records
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.read import read_any_scenario
from stallmark.scenarios.variant import During, PlaceChoice, Variant
from stallmark.schema.bank import tables as bank
from stallmark.schema.ddl import ddl_of
from stallmark.storage import block_devices
from stallmark.transactions import find_workload


@pytest.fixture
def script() -> Script:
    """A server without the database "bank"."""
    script = Script(databases=["master"])
    says_it_is(script)
    script.sql("'CREATE ANY DATABASE'", Rows([Column("may", INT)], [(1,)]))
    script.sql("'ServerName'", Rows([Column("name", nvarchar(128))], [("DB",)]))
    script.sql("sys.extended_properties", Rows([Column("value", nvarchar(3750))], []))
    script.sql(r"SELECT DB_ID\(", Rows([Column("id", INT)], [(None,)]))
    script.sql("CREATE DATABASE|SET AUTO_CLOSE OFF$", Count(0))
    return script


@pytest.fixture
def server(script: Script) -> Iterator[Responder]:
    with answering(script) as server:
        yield server


@pytest.fixture
def engine(server: Responder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MssqlEngine:
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))
    return engine_at(server)


def placed(read, database="{files: [{path: /data/bank.mdf}]}"):
    device = "emulated_array:\n  data: {spindles: 8, read_ms: 2, write_ms: 2, sync_ms: 1, mb_per_s: 150}\n"
    return read(device, f"database: {database}\n", "    emulated_array: bare\n", "    buffer_pool: 16MiB\n")


def locked(script: Script, taken: int) -> None:
    script.sql("'stallmark.run'", Rows([Column("taken", INT)], [(taken,)]))


def words(server: Responder) -> list[str]:
    found = [(word, it.text) for it in server.requests for word in ("stallmark.run", "CREATE DATABASE")]
    return [word for word, text in found if word in (text or "")]


def test_the_server_is_ours_alone_before_anything_is_made(script, server, engine, read):
    locked(script, 0)
    with pytest.raises(StallmarkError, match="cannot be opened"):  # the responder has not really made it
        place(engine, placed(read))
    assert words(server) == ["stallmark.run", "CREATE DATABASE"]


def test_a_second_run_makes_nothing(script, server, engine, read):
    locked(script, -1)
    with pytest.raises(StallmarkError, match="Another Stallmark drives"):
        place(engine, placed(read))
    assert words(server) == ["stallmark.run"]


def test_where_files_cannot_be_placed_the_lock_is_not_even_taken(read):
    azure = Script(databases=["master"])
    says_it_is(azure, "12.0.2000.8", MANAGED_INSTANCE)
    with answering(azure) as managed:
        with pytest.raises(StallmarkError, match="asks for `database`, but Azure SQL puts"):
            place(engine_at(managed), placed(read))
        assert words(managed) == []


def test_where_the_service_places_tempdb_nothing_is_made(read):
    rds = Script(databases=["master"])
    says_it_is(rds)
    runs_on(rds, rds=True)
    rds.sql("'CREATE ANY DATABASE'", Rows([Column("may", INT)], [(1,)]))
    tempdb = "{files: [{path: /data/bank.mdf}], tempdb: {change_server: true, files: [{path: /t/tempdb.mdf}]}}"
    with answering(rds) as managed:
        with pytest.raises(StallmarkError, match=r"asks for `database\.tempdb`, but Amazon RDS puts"):
            place(engine_at(managed), placed(read, tempdb))
        assert words(managed) == []


TABLESPACES = "{tables: [{names: [growing], tablespace: pg_default, index_tablespace: %s}]}"


def test_on_postgresql_tables_lie_in_tablespaces_of_the_server(database: EmbeddedEngine, read):
    engine = PostgresEngine(database.spec())
    with pytest.raises(StallmarkError, match=r'no tablespace fast for tables.* CREATE TABLESPACE "fast" LOCATION'):
        place(engine, placed(read, TABLESPACES % "fast"))
    scenario = placed(read, TABLESPACES % "pg_default")
    place(engine, scenario)
    parts = arrangement(engine, scenario)("bank", ddl_of(bank.METADATA))
    asked = {name: table.dialect_options["postgresql"]["tablespace"] for name, table in parts.tables.tables.items()}
    assert asked == {
        "bank.history": "pg_default", "bank.accounts": None, "bank.tellers": None, "bank.branches": None,
    }  # fmt: skip
    with pytest.raises(StallmarkError, match="asks for files, but PostgreSQL makes its files itself"):
        place(engine, placed(read))


def test_the_embedded_server_is_placed_by_its_folders(database: EmbeddedEngine, read):
    with pytest.raises(StallmarkError, match=r"asks for `database`.* placed with --data-dir and --wal-dir"):
        place(database, placed(read, TABLESPACES % "pg_default"))


def test_the_other_server_s_word_is_refused_with_the_right_one(script, server, engine, read):
    with pytest.raises(StallmarkError, match="SQL Server has filegroups: write `filegroup` and `indexes`"):
        place(engine, placed(read, TABLESPACES % "fast"))
    assert words(server) == []
    with pytest.raises(StallmarkError, match=r"no filegroup has that name .of PostgreSQL, name a `tablespace`"):
        placed(read, "{tables: [{names: [growing], filegroup: fast}]}")
    with pytest.raises(StallmarkError, match="tablespace must not be empty"):
        placed(read, "{tables: [{names: [growing], tablespace: ''}]}")


def test_what_came_with_2019_is_refused_before(read):
    old = Script(databases=["master"])
    says_it_is(old, "14.0.3465.1")
    tables = "{tables: [{names: [branches], sequential_key: true}]}"
    with answering(old) as server:
        with pytest.raises(StallmarkError, match="from 2019 on"):
            place(engine_at(server), placed(read, tables))
        assert words(server) == []


LOADS = """
name: placed
loads:
  bank: {workload: bank, scale: {branches: 3}, users: 4}
  mail: {workload: mail, scale: {mailboxes: 1000}, users: 5}
database:
  files: [{path: /data/all.mdf}]
  filegroups: [{name: post, files: [{path: /mail/post.ndf}]}]
  tables: [{names: [NAMED], filegroup: post}]
warm_up: 5s
measure: 10s
variants: [{name: one}]
"""


def test_each_load_of_a_scenario_has_places_of_its_own(script, server, engine, tmp_path):
    locked(script, 0)
    path = tmp_path / "placed.yaml"
    path.write_text(LOADS.replace("NAMED", "mail.*"))
    scenario = read_any_scenario(str(path))
    with pytest.raises(StallmarkError, match="cannot be opened"):  # as above
        place(engine, scenario)
    [made] = [it.text for it in server.requests if "CREATE DATABASE" in (it.text or "")]
    data, post = (int(re.search(rf"{file}', SIZE = (\d+)MB", made)[1]) for file in ("all.mdf", "post.ndf"))
    assert 1_000 < data < 2_000 and post > 1_000 * 15, "bodies of 1,000 mailboxes"
    parts = arrangement(engine, scenario)("bank+mail", ddl_of(find_workload("bank+mail").metadata))
    for table in parts.tables.sorted_tables:
        statement = str(CreateTable(table).compile(dialect=mssql.dialect()))
        assert ("ON [post]" in statement) == (table.schema == "mail")
    path.write_text(LOADS.replace("NAMED", "mail.bodies"))
    with pytest.raises(StallmarkError, match=r"bank and mail have no table mail\.bodies"):
        read_any_scenario(str(path))


MOVES_TEMPDB = "{files: [{path: /data/bank.mdf}], tempdb: {change_server: true, files: [{path: /t/tempdb.mdf}]}}"


@pytest.mark.parametrize("make", [True, False])
def test_a_database_of_others_is_refused_before_the_server_is_changed(read, monkeypatch, tmp_path, make):
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))
    script = Script(databases=["master", "bank", "tempdb"])
    says_it_is(script)
    script.sql("'CREATE ANY DATABASE'", Rows([Column("may", INT)], [(1,)]))
    script.sql("'ServerName'", Rows([Column("name", nvarchar(128))], [("DB",)]))
    script.sql(r"SELECT DB_ID\(", Rows([Column("id", INT)], [(5,)]))
    script.sql(r"SELECT DB_NAME\(\)", Rows([Column("name", nvarchar(128))], [("bank",)]))
    columns = [Column("schema_name", nvarchar(128)), Column("one", nvarchar(128))]
    script.sql("FROM sys.objects", Rows(columns, [("dbo", "thesis")]))
    locked(script, 0)
    scenario = placed(read, MOVES_TEMPDB)
    with answering(script) as server:
        target = Target(engine_at(server).spec())
        if make:
            with (
                pytest.raises(StallmarkError, match=r"holds what is not Stallmark's: dbo\.thesis"),
                target.engine(scenario.contents, scenario),
            ):
                pass
        else:
            with target.engine(scenario.contents, scenario, make=False):
                pass
        assert words(server) == []
        assert not any("ALTER DATABASE" in (request.text or "") for request in server.requests)


# Settings of the server that somebody changed while a run lasted are in the record's notes


@pytest.fixture
def notes(read, bank: EmbeddedEngine, tmp_path: Path, monkeypatch):
    """Makes a run, in which this is done in place of a load; returns the notes on settings."""

    def run(meanwhile) -> list[str]:
        monkeypatch.setattr(Run, "_drive", lambda self, writer: meanwhile())
        scenario = read(
            "start_cache: prefilled", "", "reset: restore", "reset: continue",
            "emulated_array:\n  data: {spindles: 8, read_ms: 2, write_ms: 2, sync_ms: 1, mb_per_s: 150}\n", "",
            "  - name: bare\n    emulated_array: bare\n", "", "    buffer_pool: 8MiB\n", "    emulated_array: bare\n",
        )  # fmt: skip
        runner = Runner(scenario, EmbeddedEngine(bank.server, "bank"), tmp_path, Show(Console(file=io.StringIO())))
        assert runner.run().incomplete_because is None
        [record] = find_records([runner.folder])
        return [note for note in record.manifest.notes if "ettings of the server" in note]

    return run


def test_what_changed_is_named_with_both_values(notes, bank: EmbeddedEngine):
    try:
        told = notes(lambda: bank.execute("ALTER DATABASE bank SET synchronous_commit = off"))
    finally:
        bank.execute("ALTER DATABASE bank RESET synchronous_commit")
    assert told == ["Settings of the server changed during the run: synchronous_commit was on and is off."]


def test_what_stayed_is_not_noted(notes):
    assert notes(lambda: None) == []


def test_settings_that_cannot_be_read_again_are_not_taken_for_the_same(notes, monkeypatch):
    def fail(_) -> None:
        raise CallFailed(ErrorClass.OTHER, "42501", "permission denied")

    [told] = notes(lambda: monkeypatch.setattr(engines, "settings", fail))
    assert told.startswith("Whether settings of the server changed during the run is not known (")


# Maintenance beside the users of a run: over and over until the end, in the record and in the report


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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


# Device and file system of an embedded server's folders, as they are shown before a load


def engine_in(**folders: Path):
    return SimpleNamespace(directories=lambda: folders)


def test_it_names_the_folder_its_device_and_its_file_system(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("stallmark.experiment.target.device_behind", lambda folder: SimpleNamespace(name="sdx"))
    mounted = max((p for p in psutil.disk_partitions(all=True) if tmp_path.is_relative_to(p.mountpoint)),
                  key=lambda p: len(p.mountpoint))  # fmt: skip
    monkeypatch.setattr("stallmark.experiment.target.direct_io", lambda folder: DirectIo("past"))
    data, wal = locations(engine_in(data=tmp_path, wal=tmp_path / "wal"))
    assert data.startswith(f"data: {tmp_path},") and f"on sdx ({mounted.fstype})" in data and "direct I/O" in data
    assert f"on sdx ({mounted.fstype})" in wal and "direct" not in wal


@pytest.mark.parametrize(
    ("goes", "told"), [("past", "direct I/O"), ("through", "reads may come from memory"), ("unknown", "perhaps")]
)
def test_direct_io_is_claimed_only_if_it_was_seen(tmp_path: Path, monkeypatch, goes, told):
    monkeypatch.setattr("stallmark.experiment.target.direct_io", lambda folder: DirectIo(goes))
    [data] = locations(engine_in(data=tmp_path))
    assert told in data and data.endswith(", direct I/O") is (goes == "past")
    monkeypatch.setattr("stallmark.experiment.target.direct_io", lambda folder: None)
    [data] = locations(engine_in(data=tmp_path))
    assert "direct" not in data


def test_without_a_device_it_says_why(tmp_path: Path, monkeypatch):
    def none(folder: Path):
        raise block_devices.InMemory(f"{folder} is in memory (tmpfs): no device is behind it.")

    monkeypatch.setattr("stallmark.experiment.target.device_behind", none)
    [data] = locations(engine_in(data=tmp_path))
    assert "in memory (tmpfs)" in data


def test_a_server_by_url_has_no_folders_here():
    assert list(locations(engine_in())) == []


def test_the_folders_of_variants_are_said_too_and_need_not_be_there_yet(tmp_path: Path, monkeypatch):
    looked_at = []

    def device(folder: Path):
        looked_at.append(folder)
        return SimpleNamespace(name="sdx")

    monkeypatch.setattr("stallmark.experiment.target.device_behind", device)
    place = PlaceChoice(data=str(tmp_path / "new"), log=str(tmp_path))
    scenario = SimpleNamespace(variants=[Variant(name="home"), Variant(name="fast", place=place)])
    _, data, log = locations(engine_in(data=tmp_path), scenario)
    assert data.startswith(f"fast: data: {tmp_path / 'new'},") and log.startswith(f"fast: log: {tmp_path},")
    assert looked_at == [tmp_path] * 3
    assert list(locations(engine_in(), scenario)) == []
    scenario = SimpleNamespace(variants=[Variant(name="fast", place=PlaceChoice(data=str(tmp_path)))])
    assert list(locations(engine_in(data=tmp_path), scenario))[2] == "fast: log: with the data"
