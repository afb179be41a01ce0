"""The right of every view that Stallmark reads, and what the doctor asks the server about them."""

import re

import pytest
from support.mssql_server import AZURE_DATABASE, ENTERPRISE, MANAGED_INSTANCE, rows, runs_on
from support.tds.answers import Error
from support.tsql import texts

from stallmark.engines.mssql.examine import _rights
from stallmark.engines.mssql.settings import EXCEPTIONS, refused_right, required_right, view_right, views

pytestmark = pytest.mark.thorough

ROOMS = ("src/stallmark/engines/mssql/", "src/stallmark/collectors/mssql/", "src/stallmark/profile/mssql.")
OLD_SERVER, NEW_SERVER = "VIEW SERVER STATE", "VIEW SERVER PERFORMANCE STATE"
OLD_DATABASE, NEW_DATABASE = "VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE"
DEFINITION = "VIEW ANY DEFINITION"
# Views whose pages say what the rule does: the old and the new right on the server's performance. One has no page,
# dm_os_file_exists. A new view comes here, or below, once its page was read.
BY_RULE = {
    "dm_db_file_space_usage", "dm_db_log_space_usage", "dm_exec_connections", "dm_exec_plan_attributes",
    "dm_exec_procedure_stats", "dm_exec_query_plan", "dm_exec_query_plan_stats", "dm_exec_query_stats",
    "dm_exec_requests", "dm_exec_session_wait_stats", "dm_exec_sessions", "dm_exec_sql_text",
    "dm_exec_text_query_plan", "dm_hadr_availability_replica_states", "dm_hadr_database_replica_states",
    "dm_io_pending_io_requests", "dm_io_virtual_file_stats", "dm_os_buffer_descriptors",
    "dm_os_buffer_pool_extension_configuration", "dm_os_enumerate_fixed_drives", "dm_os_file_exists",
    "dm_os_performance_counters", "dm_os_ring_buffers", "dm_os_schedulers", "dm_os_sys_info", "dm_os_volume_stats",
    "dm_os_wait_stats", "dm_resource_governor_configuration", "dm_resource_governor_resource_pools",
    "dm_resource_governor_workload_groups", "dm_tran_locks", "dm_xe_session_targets", "dm_xe_sessions",
    "fn_xe_file_target_read_file", "server_event_sessions",
}  # fmt: skip
# What the pages say of views that differ from it: the right before 2022 and since, and the others that do as well.
BY_PAGE = {
    "configurations": ("", NEW_SERVER, ()),  # "Requires membership in the public role", and since 2022 the right
    "dm_os_host_info": ("", NEW_SERVER, ()),  # "granted to the public role by default", and since 2022 the right
    "dm_server_services": (OLD_SERVER, "VIEW SERVER SECURITY STATE", ()),
    # "require either VIEW ANY ERROR LOG or VIEW SERVER PERFORMANCE STATE"
    "sp_readerrorlog": (OLD_SERVER, "VIEW ANY ERROR LOG", (NEW_SERVER,)),
    # "CREATE DATABASE, ALTER ANY DATABASE, or VIEW ANY DEFINITION"
    "master_files": (DEFINITION, DEFINITION, ("ALTER ANY DATABASE", "CREATE ANY DATABASE")),
    "availability_replicas": (DEFINITION, DEFINITION, ()),
    "resource_governor_configuration": (DEFINITION, DEFINITION, ()),
    "resource_governor_resource_pools": (DEFINITION, DEFINITION, ()),
    "resource_governor_workload_groups": (DEFINITION, DEFINITION, ()),
    "database_automatic_tuning_options": (OLD_DATABASE, NEW_DATABASE, ()),
    "database_query_store_options": (OLD_DATABASE, NEW_DATABASE, ()),
    "dm_db_index_operational_stats": (OLD_DATABASE, NEW_DATABASE, ()),
    "dm_db_wait_stats": (OLD_DATABASE, NEW_DATABASE, ()),  # of Azure SQL Database alone
    "query_store_plan": (OLD_DATABASE, NEW_DATABASE, ()),
    "query_store_query": (OLD_DATABASE, NEW_DATABASE, ()),
    "query_store_replicas": (OLD_DATABASE, NEW_DATABASE, ()),
    "query_store_runtime_stats": (OLD_DATABASE, NEW_DATABASE, ()),
    "query_store_runtime_stats_interval": (OLD_DATABASE, NEW_DATABASE, ()),
    "query_store_wait_stats": (OLD_DATABASE, NEW_DATABASE, ()),
}
# Views that show everybody what is his own, our database and its objects among it.
OPEN = {
    *("allocation_units", "columns", "database_files", "database_mirroring", "database_recovery_status"),
    *("database_scoped_configurations", "databases", "extended_properties", "indexes", "objects", "parameters"),
    *("partitions", "schemas", "stats", "stats_columns", "syslanguages", "tables"),
}


def read_views() -> set[str]:
    """The views of every text of engine, collectors and profile; of procedures, those that read."""
    found = {view for place, text in texts.all_texts().items() if place.startswith(ROOMS) for view in views(text)}
    return {view for view in found if not view.startswith("sp_") or view_right(view)}


def test_every_view_has_the_right_of_its_page():
    rights = {view: right for view in read_views() if (right := view_right(view))}
    by_rule = dict.fromkeys(BY_RULE, (OLD_SERVER, NEW_SERVER, ()))
    assert {view: (right.old, right.new, right.instead) for view, right in rights.items()} == by_rule | BY_PAGE
    assert read_views() - rights.keys() == OPEN and EXCEPTIONS.keys() <= rights.keys()


@pytest.mark.parametrize(
    ("sql", "before", "since"),
    [
        ("SELECT * FROM sys.dm_exec_sessions JOIN sys.dm_exec_connections ON 1 = 1", OLD_SERVER, NEW_SERVER),
        ("SELECT * FROM sys.dm_os_host_info", OLD_SERVER, NEW_SERVER),
        ("SELECT * FROM sys.dm_os_host_info, sys.query_store_plan", OLD_DATABASE, NEW_SERVER),
        ("SELECT * FROM sys.databases, sys.master_files, sys.query_store_plan", OLD_DATABASE, NEW_DATABASE),
        ("SELECT * FROM sys.availability_replicas, sys.dm_server_services", OLD_SERVER, "VIEW SERVER SECURITY STATE"),
        ("SELECT 1 -- sys.query_store_plan", OLD_SERVER, NEW_SERVER),
    ],
)
def test_a_query_wants_the_right_of_its_first_view_that_refuses(new_server, sql, before, since):
    assert required_right(sql, new_server(version="15.0.4430.1").engine()) == before
    assert required_right(sql, new_server(version="16.0.4085.2").engine()) == since
    azure = new_server(version="12.0.2000.8", edition=AZURE_DATABASE).engine()
    assert required_right(sql, azure) == OLD_DATABASE


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


OLD = {OLD_SERVER, OLD_DATABASE, DEFINITION}
NEW = {NEW_SERVER, "VIEW SERVER SECURITY STATE", NEW_DATABASE, "VIEW ANY ERROR LOG", DEFINITION}
MADE = {"CREATE TABLE", "CREATE SCHEMA", "CREATE PROCEDURE"}


def ask_doctor(new_server, version: str, edition: int, denied: tuple[str, ...] = (), **signs):
    """Return the questions of the doctor by the right that each is told as, and what it says."""
    server = new_server(version=version, edition=edition)

    def answer(request) -> list:
        """Answer each question as a server does, of which the login has every right but those denied."""
        asked = questions(request.text)
        return [rows(list(asked), [int(any(name not in denied for _, name in each)) for each in asked.values()])]

    server.script.sql("'CREATE SCHEMA'", answer)
    server.script.sql("Updateability", rows(["is"], ["READ_WRITE"]))
    server.script.sql("compatibility_level", rows(["is"], [160]))
    server.script.sql(r"COUNT_BIG\(\*\) FROM sys.dm_os_sys_info", rows(["count"], [1]))
    runs_on(server.script, **signs)
    said = list(_rights(server.engine()))
    [text] = server.asked("'CREATE SCHEMA'")
    return questions(text), said


def questions(text: str) -> dict[str, list[tuple[str, str]]]:
    """The securable and the right of each question of a column, by the column's name."""
    columns = re.findall(r"(HAS_PERMS_BY_NAME.+?) AS \[(.+?)\]", text)
    return {name: re.findall(r"HAS_PERMS_BY_NAME\((.+?), '([^']+)'\)", asked) for asked, name in columns}


@pytest.mark.parametrize(
    ("version", "edition", "rights"),
    [
        ("14.0.3465.1", ENTERPRISE, OLD),
        ("15.0.4430.1", ENTERPRISE, OLD),
        ("16.0.4085.2", ENTERPRISE, NEW),
        ("17.0.1000.7", ENTERPRISE, NEW),
        ("12.0.2000.8", MANAGED_INSTANCE, NEW),
        ("12.0.2000.8", AZURE_DATABASE, {OLD_DATABASE}),
    ],
)
def test_the_doctor_asks_for_exactly_the_rights_of_the_views(new_server, version, edition, rights):
    asked, said = ask_doctor(new_server, version, edition)
    assert said == [] and asked.keys() == rights | MADE
    engine = new_server(version=version, edition=edition).engine()
    by_view: dict[str, set[str]] = {}
    for right in filter(None, map(view_right, read_views())):
        by_view.setdefault(right.name(engine), set()).update(right.names(engine))
    assert by_view.keys() - {""} == rights
    for name in rights:
        assert {right for _, right in asked[name]} == by_view[name]
        for securable, right in asked[name]:
            assert ("'DATABASE'" in securable) == (right in (OLD_DATABASE, NEW_DATABASE))


@pytest.mark.parametrize("right", sorted(NEW - {"VIEW ANY ERROR LOG", DEFINITION}))
def test_each_missing_right_is_told_with_what_is_lost_and_how_to_grant_it(new_server, right):
    _, [said] = ask_doctor(new_server, "16.0.4085.2", ENTERPRISE, (right,))
    place = "" if "DATABASE" in right else "in master, "
    assert said.state == "limited" and said.sentence.endswith(f": {place}GRANT {right} TO it.")


@pytest.mark.parametrize(
    ("denied", "told"),
    [
        (("VIEW ANY ERROR LOG",), []),  # the right on the server's performance does as well
        (("VIEW ANY ERROR LOG", NEW_SERVER), [NEW_SERVER, "VIEW ANY ERROR LOG"]),
        ((DEFINITION,), []),
        ((DEFINITION, "ALTER ANY DATABASE"), []),
        ((DEFINITION, "ALTER ANY DATABASE", "CREATE ANY DATABASE"), [DEFINITION]),
    ],
)
def test_a_right_is_missing_only_without_each_that_does_as_well(new_server, denied, told):
    _, said = ask_doctor(new_server, "16.0.4085.2", ENTERPRISE, denied)
    assert [each.subject for each in said] == told


def test_on_cloud_sql_a_right_is_granted_as_its_role(new_server):
    _, [said] = ask_doctor(new_server, "16.0.4085.2", ENTERPRISE, ("VIEW SERVER SECURITY STATE",), cloud_sql=True)
    assert said.sentence.endswith("GRANT VIEW SERVER SECURITY STATE TO it AS CustomerDbRootRole.")


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (Error(300, f"{NEW_SERVER} permission was denied on object 'server', database 'master'.", severity=14), True),
        (Error(300, f"{OLD_SERVER} permission was denied on object 'server', database 'master'.", severity=14), True),
        (Error(262, f"{NEW_DATABASE} permission denied in database 'bank'.", severity=14), False),
        (Error(208, "Invalid object name 'sys.dm_os_sys_info'."), False),
    ],
)
def test_in_tiers_that_want_a_role_the_doctor_names_it(new_server, refusal, told):
    """Of Basic, S0 and S1, and in elastic pools, VIEW DATABASE STATE is not enough."""
    server = new_server(version="12.0.2000.8", edition=AZURE_DATABASE)
    server.script.sql("'CREATE SCHEMA'", rows([OLD_DATABASE, *MADE], [1, 1, 1, 1]))
    server.script.sql("Updateability", rows(["is"], ["READ_WRITE"]))
    server.script.sql("compatibility_level", rows(["is"], [160]))
    server.script.sql(r"COUNT_BIG\(\*\) FROM sys.dm_os_sys_info", refusal)
    said = [each for each in _rights(server.engine()) if each.subject == "##MS_ServerStateReader##"]
    assert bool(said) == told
    assert all("ALTER SERVER ROLE ##MS_ServerStateReader## ADD MEMBER its login." in each.sentence for each in said)
