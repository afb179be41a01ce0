"""Managed services: recognised by the server's answers, refused what they do not have, with what helps instead."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mssql_server import AZURE_DATABASE, ENTERPRISE, EXPRESS, MANAGED_INSTANCE, STANDARD, rows, runs_on
from support.tds.answers import Count, Cut, Error, Hold, Rows
from support.tds.datatypes import nvarchar
from support.tds.tokens import Column

from stallmark.collectors.mssql.io_latency import IoLatency
from stallmark.collectors.mssql.moments import ErrorLog
from stallmark.engines.mssql import examine, settings, variant_settings
from stallmark.engines.mssql.address import BOX, CLOUD_SQL, DATABASE, MANAGED, RDS, Service, recognise
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, ErrorClass, NotGivenBack, StallmarkError
from stallmark.experiment.preflight import _refuse_what_the_engine_cannot
from stallmark.scenarios.read import read_scenario

AZURE_VERSION = "12.0.2000.8"
SIGNS = {BOX: {}, RDS: {"rds": True}, CLOUD_SQL: {"cloud_sql": True}, MANAGED: {}, DATABASE: {}}
EDITIONS = {MANAGED: MANAGED_INSTANCE, DATABASE: AZURE_DATABASE}


def made(new_server, service: Service, version: str = "16.0.4085.2"):
    """A server of the service, to whose login everything is allowed that anybody may be."""
    edition = EDITIONS.get(service, ENTERPRISE)
    server = new_server(version=AZURE_VERSION if service in EDITIONS else version, edition=edition)

    def allowed(request) -> list:
        names = re.findall(r"AS \[(.+?)\]", request.text) or [str(n) for n in range(request.text.count("IS_ROLE") + 1)]
        return [rows(names, [1] * len(names))]

    server.script.sql("HAS_PERMS_BY_NAME", allowed)
    server.script.sql(r"IS_SRVROLEMEMBER\('sysadmin'\) AS may", rows(["may"], [0]))
    server.script.sql("AS .mirrored.", rows(["in an availability group", "mirrored"], [0, 0]))
    runs_on(server.script, **SIGNS[service])
    return server


@pytest.mark.parametrize("service", SIGNS, ids=lambda service: service.name)
def test_it_is_recognised_by_its_answers(new_server, service):
    assert made(new_server, service).engine().service is service


@pytest.mark.parametrize(("service", "grantor"), [(BOX, ""), (CLOUD_SQL, " AS CustomerDbRootRole")])
def test_a_database_that_is_hidden_is_not_called_absent(new_server, service, grantor):
    """DB_ID is NULL for a login without VIEW ANY DATABASE (DB_ID (Transact-SQL), Microsoft)."""
    server = new_server()
    server.script.databases = None
    server.script.sql(
        "CREATE DATABASE", Error(1801, "Database 'bank' already exists. Choose a different database name.")
    )
    runs_on(server.script, **SIGNS[service])
    with pytest.raises(StallmarkError, match=f"hidden from this login: GRANT VIEW ANY DATABASE TO it{grantor}, or"):
        server.engine().make_database("bank")


@pytest.mark.parametrize("service", [BOX, CLOUD_SQL], ids=lambda service: service.name)
def test_who_may_not_make_a_database_is_told_what_the_service_can_give(new_server, service):
    server = new_server()
    server.script.sql("CREATE ANY DATABASE", rows(["may"], [0]))
    runs_on(server.script, **SIGNS[service])
    said = str(server.engine().placement.refusal())
    assert f"GRANT CREATE ANY DATABASE TO it{service.grantor}" in said and ("dbcreator" in said) is (service is BOX)


def test_rds_is_recognised_without_its_database():
    """DB_ID is NULL for a login without VIEW ANY DATABASE (DB_ID (Transact-SQL), Microsoft)."""
    asked: list[str] = []
    recognise(ENTERPRISE, lambda sql: asked.append(sql) or [(None, None)])  # type: ignore[func-returns-value]
    assert "COALESCE(DB_ID('rdsadmin'), OBJECT_ID('msdb.dbo.rds_" in asked[0]


def test_a_server_that_does_not_answer_is_nobody_s():
    def denied(sql: str) -> list[tuple]:
        raise CallFailed(ErrorClass.OTHER, "229", "The SELECT permission was denied")

    assert recognise(ENTERPRISE, denied) is BOX
    assert recognise(ENTERPRISE, lambda sql: []) is BOX
    assert recognise(MANAGED_INSTANCE, denied) is MANAGED  # its edition says so


LOST = {
    "given up": CallFailed(ErrorClass.TIMEOUT, "HYT00", "Query timeout expired"),
    "cut": CallFailed(ErrorClass.CONNECTION_LOST, "08S01", "Communication link failure"),
    "a latch": CallFailed(ErrorClass.TIMEOUT, "845", "Time-out occurred while waiting for buffer latch"),
    "the driver": CallFailed(ErrorClass.OTHER, "HY000", "The driver did not supply an error"),
}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
def test_a_question_that_was_lost_says_nothing_of_the_service(lost):
    def fail(sql: str) -> list[tuple]:
        raise lost

    with pytest.raises(CallFailed):
        recognise(ENTERPRISE, fail)


def test_it_is_asked_again_after_a_question_that_was_lost(new_server):
    server = new_server()
    server.script.sql("CustomerDbRootRole", Cut(), times=1)
    runs_on(server.script, rds=True)
    engine = server.engine()
    with pytest.raises(CallFailed):
        _ = engine.service
    assert engine.service is RDS


@given(st.sampled_from([2, 3, 4, 6, 9, 11, 12]), st.none() | st.integers(1, 32767), st.none() | st.integers(0, 1))
def test_of_two_signs_the_database_counts(edition, rds, cloud_sql):
    found = recognise(edition, lambda sql: [(rds, cloud_sql)])
    assert found is (RDS if rds is not None else CLOUD_SQL if cloud_sql is not None else BOX)


def refusals(engine: MssqlEngine) -> dict[str, str | None]:
    return {
        "buffer_pool": engine.memory.refusal(),
        "reset: restore": engine.backup.refusal(),
        "during: {backup: …}": engine.maintenance["backup"].refusal(),
        "database": engine.placement.refusal(),
        "resource_pool": engine.variant_settings["resource_pool"].refusal(),
    }


@pytest.mark.parametrize(
    ("service", "refused"),
    [
        (BOX, set()),
        (RDS, {"buffer_pool", "reset: restore", "during: {backup: …}", "resource_pool"}),
        (CLOUD_SQL, {"buffer_pool"}),
        (MANAGED, {"reset: restore", "during: {backup: …}", "database"}),
        (DATABASE, {"buffer_pool", "reset: restore", "during: {backup: …}", "database", "resource_pool"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_it_keeps_to_itself_is_refused_whatever_the_login_may(new_server, service, refused):
    found = refusals(made(new_server, service).engine())
    assert {key for key, why in found.items() if why} == refused
    assert set(service.refused_keys) - {"database.tempdb"} == refused
    for key in refused & {"buffer_pool", "reset: restore"}:
        assert "--set" in str(found[key])


@pytest.mark.parametrize("service", (RDS, CLOUD_SQL, MANAGED, DATABASE), ids=lambda service: service.name)
def test_a_reason_is_a_clause_that_names_the_service(service):
    reasons = [value for name, value in vars(service).items() if name.endswith("_reason") and value]
    assert reasons and all(service.name.split()[0] in reason and not reason.endswith(".") for reason in reasons)


@pytest.mark.parametrize(("service", "whom"), [(BOX, "this login does not have"), (RDS, "Amazon RDS gives to nobody")])
def test_nobody_is_advised_to_take_a_role_that_the_service_does_not_give(new_server, service, whom):
    engine = made(new_server, service, "15.0.4430.1").engine()
    assert engine.caches.refusal() == f"emptying the caches needs the role sysadmin, which {whom}"


@pytest.mark.parametrize("service", [BOX, CLOUD_SQL], ids=lambda service: service.name)
def test_a_role_is_advised_only_if_the_service_gives_it(new_server, service):
    """Nobody is a member of dbcreator on Cloud SQL ("Users", Cloud SQL for SQL Server)."""
    server = new_server()
    names = ["the right BACKUP DATABASE", "the role dbcreator or the database itself"]
    server.script.sql("BACKUP DATABASE", rows(names, [1, 0]))
    server.script.sql("AS .mirrored.", rows(["in an availability group", "mirrored"], [0, 0]))
    runs_on(server.script, **SIGNS[service])
    said = str(server.engine().backup.refusal())
    assert ("dbcreator" in said) is (service is BOX) and "the database itself as well" in said


@pytest.mark.parametrize(("service", "memory"), [(BOX, "8192 KB"), (RDS, "4096 KB"), (MANAGED, "8192 KB")])
def test_event_sessions_have_the_memory_that_the_service_gives(new_server, service, memory):
    """xe_session_max_memory: 4 MB on RDS unless it was raised."""
    server = made(new_server, service)
    server.script.sql("server_event_sessions", rows(["name"]))
    server.script.sql(r"FROM sys\.database_files AS log", rows(["database", "log_file"], [7, 2]))
    server.script.sql("(CREATE|DROP) EVENT SESSION")
    collector = IoLatency(server.engine())
    collector.open()
    collector.close()
    asked = server.asked("CREATE EVENT SESSION")
    assert len(asked) == 2 and all(f"MAX_MEMORY = {memory}," in text for text in asked)


@pytest.mark.parametrize(
    ("service", "procedure"), [(BOX, "sys.sp_readerrorlog"), (RDS, "rdsadmin.dbo.rds_read_error_log")]
)
def test_the_error_log_is_read_by_the_procedure_of_the_service(new_server, service, procedure):
    server = made(new_server, service)
    server.script.sql("read_?error_?log", rows(["LogDate", "ProcessInfo", "Text"]))
    assert ErrorLog(server.engine()).unavailable() is None
    assert {re.findall(r"EXEC (\S+) 0, 1,", text)[0] for text in server.asked("EXEC ")} == {procedure}


@pytest.mark.parametrize(
    ("service", "left", "overrides"),
    [
        (RDS, "buffer_pool", []),
        (RDS, "reset: restore", ["buffer_pool=null"]),
        (RDS, None, ["buffer_pool=null", "reset=continue"]),
        (MANAGED, "reset: restore", []),
        (MANAGED, None, ["reset=continue"]),
        (CLOUD_SQL, "buffer_pool", []),
        (CLOUD_SQL, None, ["buffer_pool=null"]),
        (DATABASE, None, ["buffer_pool=null", "reset=continue"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["user-ramp-sqlserver", "buffer-pool-sqlserver"])
def test_the_shipped_scenarios_run_in_the_form_that_is_possible(new_server, name, service, left, overrides):
    server = made(new_server, service)
    server.script.sql("is_auto_close_on", rows(["closes"], [0]))
    scenario = read_scenario(name, overrides)
    if left is None:
        _refuse_what_the_engine_cannot(scenario, server.engine())
        return
    with pytest.raises(StallmarkError, match=f"asks for `{left}`, but {service.name}"):
        _refuse_what_the_engine_cannot(scenario, server.engine())


# The table of docs/sql-server.md

PAGE = (Path(__file__).parents[3] / "docs/sql-server.md").read_text()
COLUMNS = (BOX, RDS, MANAGED, DATABASE)


def table() -> dict[str, list[str]]:
    """The rows of the table of managed services by their feature, a cell for each service."""
    text = PAGE.partition("| feature | ")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines()[2:]]
    return {feature.replace("`", ""): row for feature, *row in cells}


def test_every_cell_has_its_source():
    sources = dict(re.findall(r"^\[([\w-]+)\]: (https://\S+)$", PAGE, re.MULTILINE))
    assert len(table()) >= 12
    for feature, row in table().items():
        assert len(row) == len(COLUMNS), feature
        for cell in row:
            named = re.findall(r"\]\[([\w-]+)\]", cell)
            assert named and set(named) <= sources.keys(), (feature, cell)
    assert set(re.findall(r"\]\[([\w-]+)\]", PAGE)) == sources.keys()


def test_the_table_says_what_is_refused():
    rows_ = table()
    for at, service in enumerate(COLUMNS):
        said = {key for key in ("buffer_pool", "reset: restore", "during: {backup: …}", "database", "database.tempdb",
                                "resource_pool") if rows_[key][at].startswith("no")}  # fmt: skip
        assert said == set(service.refused_keys), service.name
    assert f"{RDS.event_memory_kib // 1024} MB" in rows_["memory of an event session"][1]
    assert f"{BOX.event_memory_kib // 1024} MB" in rows_["memory of an event session"][0]
    for service, cell in zip((BOX, RDS), rows_["error log"], strict=False):
        assert service.error_log.removeprefix("sys.") in cell


@pytest.mark.parametrize(("service", "named"), [(BOX, None), (RDS, "Amazon RDS"), (MANAGED, MANAGED.name)])
def test_the_record_says_which_service_it_was(new_server, service, named):
    server = made(new_server, service)
    server.script.databases = None  # its journals are in master
    server.script.sql("sys.extended_properties", rows(["value"]))
    server.script.sql("'ServerName'", rows(["name"], ["DB"]))
    assert settings.read(server.engine()).configuration.get("service") == named


@pytest.mark.parametrize("service", SIGNS, ids=lambda service: service.name)
def test_the_doctor_names_the_service_and_what_it_keeps(new_server, service):
    said = [each.sentence for each in examine._service(made(new_server, service).engine())]
    assert len(said) == (service is not BOX)
    for sentence in said:
        assert all(word in sentence for word in (service.name, *(f"`{key}`" for key in service.refused_keys)))


# Maintenance beside users: the statements of a backup, a check and a rebuild, cut at the end, and who may


@pytest.mark.parametrize(
    ("kind", "what", "says", "statement"),
    [
        ("backup", "NUL", {}, "BACKUP DATABASE [bank] TO DISK = N'NUL' WITH COPY_ONLY, INIT"),
        ("check", "", {}, "DBCC CHECKDB WITH NO_INFOMSGS"),
        ("rebuild", "bank.accounts", {}, "ALTER INDEX ALL ON [bank].[accounts] REBUILD WITH (ONLINE = ON)"),
        # Online index operations are of Enterprise ("Editions and supported features of SQL Server").
        ("rebuild", "bank.accounts", {"edition": STANDARD}, "REBUILD WITH (ONLINE = OFF)"),
    ],
)
def test_each_is_one_statement(new_server, kind, what, says, statement):
    server = new_server(**says)
    server.script.sql("BACKUP DATABASE|DBCC|ALTER INDEX", Count(0))
    work = server.engine().maintenance[kind].open(what)
    work.execute()
    work.close()
    [asked] = server.asked(statement)
    assert asked.endswith(statement)


def test_what_is_under_way_at_the_end_is_given_up(new_server):
    server = new_server()
    server.script.sql("DBCC", Hold())
    work = server.engine().maintenance["check"].open("")
    failed: list[CallFailed] = []

    def execute() -> None:
        try:
            work.execute()
        except CallFailed as error:
            failed.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    while thread.is_alive():
        work.cancel()
        thread.join(0.05)
    assert len(failed) == 1
    work.close()


@pytest.mark.parametrize(
    ("says", "rights", "refused"),
    [
        ({}, (1, 1), set()),
        ({}, (0, 1), {"backup"}),
        ({}, (1, 0), {"check", "rebuild"}),
        ({"edition": MANAGED_INSTANCE, "version": "12.0.2000.8"}, (1, 1), {"backup"}),
        ({"edition": AZURE_DATABASE, "version": "12.0.2000.8"}, (1, 1), {"backup"}),
    ],
)
def test_who_may_do_what(new_server, says, rights, refused):
    server = new_server(**says)
    server.script.sql("HAS_PERMS_BY_NAME", rows(["backup", "owner"], rights))
    every = server.engine().maintenance
    assert {kind for kind, ability in every.items() if ability.refusal()} == refused


# Row versions and Resource Governor as a variant has them: made, and given back also after a kill


class Database:
    """READ_COMMITTED_SNAPSHOT and Resource Governor as they stand; `statements` are those that changed it."""

    def __init__(self, script):
        self.on, self.enabled, self.classifier, self.pending = False, False, 0, False
        self.refuses: Error | None = None  # to change the database
        self.statements: list[str] = []
        script.sql("is_read_committed_snapshot_on", lambda _: [rows(["name", "on"], ["bank", self.on])])
        script.sql("FROM sys.resource_governor_configuration", lambda _: [
            rows(["on", "function", "pending"], [self.enabled, self.classifier, self.pending])
        ])  # fmt: skip
        script.sql("sys.extended_properties", Rows([Column("value", nvarchar(3750))], []))
        script.sql("sp_addextendedproperty", Error(15247, "User does not have permission.", severity=16))
        script.sql("^ALTER DATABASE", self._set)
        script.sql("RESOURCE|WORKLOAD GROUP|stallmark_classifier", self._changed)
        script.sql("HAS_PERMS_BY_NAME", rows(["may"], [1]))

    def _set(self, asked):
        if self.refuses:
            return [self.refuses]
        self.on = "SNAPSHOT ON" in asked.text
        return self._changed(asked)

    def _changed(self, asked):
        self.statements.append(asked.text)
        return [Count(0)]


@pytest.fixture
def database(script) -> Database:
    return Database(script)


@pytest.fixture
def notes(tmp_path) -> Callable[[], list[str]]:
    """Return what is noted to be given back; on this machine, as this login may not write into master."""
    return lambda: [path.name for path in (tmp_path / "changed-settings").glob("*")]


def test_row_versions_are_turned_on_for_a_variant_and_off_again(engine, database, notes, tmp_path):
    with engine.hold():
        engine.variant_settings["row_versioning"].make(True)
        assert database.on and ["row_versioning" in name for name in notes()] == [True]
        folder = tmp_path / "changed-settings"
        assert [path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())] == [0o700, 0o600]
        engine.variant_settings["row_versioning"].make(False)
        engine.variant_settings["row_versioning"].make(True)
    assert not database.on and not notes()
    assert database.statements[0] == "ALTER DATABASE [bank] SET READ_COMMITTED_SNAPSHOT ON WITH NO_WAIT"


def test_what_is_so_already_is_not_touched(engine, database, notes):
    engine.variant_settings["row_versioning"].make(False)
    engine.variant_settings["row_versioning"].give_back()
    assert not database.statements and not notes()


def test_a_killed_run_is_put_right_by_the_next(engine, database, notes):
    engine.variant_settings["row_versioning"].make(True)
    with MssqlEngine(engine.spec()).hold():
        assert not database.on and not notes()


def test_a_database_that_others_are_in_is_left_alone(engine, database, notes, monkeypatch):
    """Error 5070: "Database state cannot be changed while other users are using the database"."""
    monkeypatch.setattr(variant_settings, "ALONE_WITHIN_S", -1)
    database.refuses = Error(5070, "Database state cannot be changed while others use it", severity=16)
    with pytest.raises(StallmarkError, match="Others are in the database bank"):
        engine.variant_settings["row_versioning"].make(True)


def test_what_cannot_be_given_back_is_said_with_the_statement(engine, database, notes):
    engine.variant_settings["row_versioning"].make(True)
    database.refuses = Error(5011, "User does not have permission to alter database", severity=16)
    with pytest.raises(NotGivenBack, match=r"ALTER DATABASE \[bank\] SET READ_COMMITTED_SNAPSHOT OFF"):
        engine.variant_settings["row_versioning"].give_back()
    assert notes(), "the next run tries again"


POOL = [("iops_per_volume", 500), ("cpu_percent", None), ("grants_percent", 25)]


def test_a_pool_is_made_for_users_and_taken_away(engine, database, notes):
    with engine.hold():
        engine.variant_settings["resource_pool"].make(POOL)
        made = "\n".join(database.statements)
    assert "RESOURCE POOL stallmark WITH (MAX_IOPS_PER_VOLUME = 500, MAX_MEMORY_PERCENT = 25)" in made
    assert "APP_NAME() LIKE N'stallmark-user%'" in made and made.endswith("ALTER RESOURCE GOVERNOR RECONFIGURE")
    drop, disable = database.statements[-2:]
    assert "DROP RESOURCE POOL stallmark" in drop and disable == "ALTER RESOURCE GOVERNOR DISABLE"
    assert not notes()


def test_a_governor_that_was_on_stays_on(engine, database, notes):
    database.enabled = True
    with engine.hold():
        engine.variant_settings["resource_pool"].make(POOL)
    assert "ALTER RESOURCE GOVERNOR DISABLE" not in database.statements


@pytest.mark.parametrize(
    ("what", "value", "why"), [("classifier", 77, "classifier function"), ("pending", True, "not")]
)
def test_a_server_that_somebody_has_divided_is_left_alone(engine, database, notes, what, value, why):
    setattr(database, what, value)
    with pytest.raises(StallmarkError, match=why):
        engine.variant_settings["resource_pool"].make(POOL)
    assert not database.statements and not notes()


@pytest.mark.parametrize(
    ("says", "has_governor"),
    [
        ({}, True),
        ({"edition": STANDARD}, False),
        ({"edition": STANDARD, "version": "17.0.1000.7"}, True),  # from 2025 on
        ({"edition": EXPRESS}, False),
        ({"edition": MANAGED_INSTANCE, "version": "12.0.2000.8"}, True),
    ],
)
def test_which_editions_have_a_governor(new_server, says, has_governor):
    """As in "Editions and supported features of SQL Server", 2017 to 2025."""
    server = new_server(**says)
    server.script.sql("HAS_PERMS_BY_NAME", rows(["may"], [1]))
    assert (server.engine().variant_settings["resource_pool"].refusal() is None) is has_governor
