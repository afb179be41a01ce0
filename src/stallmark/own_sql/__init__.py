"""Own SQL: a folder of a user's SQL files, or pgbench's scripts, as the load."""

from stallmark.capabilities import Capability, CommandEntry

_CHECK = "Try each statement of a FOLDER of SQL on a server, and roll it back."

CAPABILITY = Capability(
    name="own_sql",
    commands=(CommandEntry("Start", "check-sql", _CHECK, "stallmark.own_sql.command"),),
    options={"run": "stallmark.own_sql.command:run_options", "new": "stallmark.own_sql.command:new_options"},
    definition="stallmark.own_sql.folder:read_definition",
    schema="stallmark.own_sql.folder:workload_schema",
    workload="stallmark.own_sql.workload:make_workload",
)
