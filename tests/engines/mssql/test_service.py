"""Managed services: recognised by the server's answers, refused what they do not have, with what helps instead."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mssql_server import AZURE_DATABASE, ENTERPRISE, MANAGED_INSTANCE, rows, runs_on
from support.tds.answers import Cut, Error

from stallmark.collectors.mssql.error_log import ErrorLog
from stallmark.collectors.mssql.io_latency import IoLatency
from stallmark.engines.mssql import examine, settings
from stallmark.engines.mssql.address import BOX, CLOUD_SQL, DATABASE, MANAGED, RDS, SERVICES, Service, recognise
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
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


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_a_reason_is_a_clause_that_names_the_service(service):
    whys = [value for name, value in vars(service).items() if name.startswith("why") and value]
    assert whys and all(service.name.split()[0] in why and not why.endswith(".") for why in whys)


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
