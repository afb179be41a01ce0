"""The right of every view that Stallmark reads, and what the doctor asks the server about them."""

import re

import pytest
from support.mssql_server import AZURE_DATABASE, ENTERPRISE, MANAGED_INSTANCE, rows, runs_on
from support.tsql import texts

from stallmark.engines.mssql import view_rights
from stallmark.engines.mssql.examine import _rights
from stallmark.engines.mssql.view_rights import (
    BY_VIEW,
    IN_DATABASE,
    OPEN,
    PERFORMANCE,
    SECURITY,
    refused_right,
    rights_for,
    views,
)

ROOMS = ("src/stallmark/engines/mssql/", "src/stallmark/collectors/mssql/", "src/stallmark/profile/mssql/")


def read_views() -> set[str]:
    """The views of every text of engine, collectors and profile; of procedures, those that read."""
    found = {view for place, text in texts.all_texts().items() if place.startswith(ROOMS) for view in views(text)}
    return {view for view in found if not view.startswith("sp_") or view in BY_VIEW}


def test_the_right_of_every_view_is_known():
    assert read_views() - BY_VIEW.keys() - OPEN == set()
    assert BY_VIEW.keys() <= read_views()


@pytest.mark.parametrize(
    ("view", "right"),
    [
        ("dm_server_services", SECURITY),  # its page: VIEW SERVER SECURITY STATE from 2022 on
        ("dm_exec_sessions", PERFORMANCE),  # its page: VIEW SERVER PERFORMANCE STATE, "to see all sessions"
        ("dm_exec_connections", PERFORMANCE),  # its page, as of November 2025
        ("query_store_runtime_stats", IN_DATABASE),
        ("dm_db_index_operational_stats", IN_DATABASE),
    ],
)
def test_the_pages_of_microsoft(view, right):
    assert rights_for(f"SELECT * FROM sys.{view} AS x JOIN sys.databases AS d ON 1 = 1 -- sys.dm_os_wait_stats") == [
        right
    ]


@pytest.mark.parametrize(
    ("message", "right"),
    [
        ("VIEW SERVER SECURITY STATE permission was denied on object 'server'", "VIEW SERVER SECURITY STATE"),
        (
            "The user does not have the external policy action 'Microsoft.Sql/Sqlservers/SystemViewsAndFunctions/"
            "ServerPerformanceState/Rows/Select' or permission 'VIEW SERVER PERFORMANCE STATE' to perform this action",
            "VIEW SERVER PERFORMANCE STATE",
        ),
        ("VIEW DATABASE PERFORMANCE STATE permission denied in database 'bank'", "VIEW DATABASE PERFORMANCE STATE"),
        ("VIEW SERVER STATE permission was denied on object 'server', database 'master'", None),
        ("The user does not have permission to perform this action", None),
    ],
)
def test_a_refusal_names_the_right_it_wants(message, right):
    assert refused_right(message) == right


OLD = {"VIEW SERVER STATE", "VIEW DATABASE STATE"}
NEW = {
    "VIEW SERVER PERFORMANCE STATE", "VIEW SERVER SECURITY STATE", "VIEW DATABASE PERFORMANCE STATE",
    "VIEW ANY ERROR LOG",
}  # fmt: skip


def ask_doctor(new_server, version: str, edition: int, denied: str = "", **signs):
    """Return the rights that the doctor asked for, each with its securable, and what it says."""
    server = new_server(version=version, edition=edition)

    def answer(request) -> list:
        names = re.findall(r"AS \[(.+?)\]", request.text)
        return [rows(names, [int(name != denied) for name in names])]

    server.script.sql("'CREATE SCHEMA'", answer)
    server.script.sql("Updateability", rows(["is"], ["READ_WRITE"]))
    server.script.sql("compatibility_level", rows(["is"], [160]))
    runs_on(server.script, **signs)
    said = list(_rights(server.engine()))
    [text] = server.asked("'CREATE SCHEMA'")
    return re.findall(r"HAS_PERMS_BY_NAME\((.+?), '([^']+)'\) AS \[\2\]", text), said


@pytest.mark.parametrize(
    ("version", "edition", "rights"),
    [
        ("14.0.3465.1", ENTERPRISE, OLD),
        ("15.0.4430.1", ENTERPRISE, OLD),
        ("16.0.4085.2", ENTERPRISE, NEW),
        ("17.0.1000.7", ENTERPRISE, NEW),
        ("12.0.2000.8", MANAGED_INSTANCE, NEW),
        ("12.0.2000.8", AZURE_DATABASE, {"VIEW DATABASE STATE"}),
    ],
)
def test_the_doctor_asks_for_exactly_the_rights_of_the_views(new_server, version, edition, rights):
    asked, said = ask_doctor(new_server, version, edition)
    assert {right for _, right in asked} - {"VIEW ANY DEFINITION"} == rights | {
        "CREATE TABLE", "CREATE SCHEMA", "CREATE PROCEDURE"
    }  # fmt: skip
    assert all(
        ("DATABASE" in securable) == ("SERVER" not in right and "ANY" not in right) for securable, right in asked
    )
    assert said == []
    engine = new_server(version=version, edition=edition).engine()
    kinds = {right.name(engine) for right in BY_VIEW.values()} - {"VIEW ANY DEFINITION"}
    assert kinds <= rights


@pytest.mark.parametrize("right", sorted(NEW | {"VIEW ANY DEFINITION"}))
def test_each_missing_right_is_told_with_what_is_lost_and_how_to_grant_it(new_server, right):
    _, [said] = ask_doctor(new_server, "16.0.4085.2", ENTERPRISE, right)
    place = "" if "DATABASE" in right else "in master, "
    assert said.state == "limited" and said.sentence.endswith(f": {place}GRANT {right} TO it.")


def test_on_cloud_sql_a_right_is_granted_as_its_role(new_server):
    _, [said] = ask_doctor(new_server, "16.0.4085.2", ENTERPRISE, "VIEW SERVER SECURITY STATE", cloud_sql=True)
    assert said.sentence.endswith("GRANT VIEW SERVER SECURITY STATE TO it AS CustomerDbRootRole.")


def test_every_right_has_a_name_before_2022_and_since():
    for right in BY_VIEW.values():
        assert right.old.startswith("VIEW ") and right.new.startswith("VIEW ")
    assert view_rights.PERFORMANCE.old == view_rights.SECURITY.old
