"""A Resource Governor pool for the users of a variant: a cap on their I/O, CPU and memory grants, without a container.

It governs sessions by their application name. The buffer pool is the whole server's and is not divided by it. Whoever
has a classifier function already has divided the server: that is left alone, and a pool is refused.
"""

from collections.abc import Iterable

from stallmark.engines import sql_file
from stallmark.engines.abilities import VariantSetting
from stallmark.engines.mssql.journal import Journal
from stallmark.engines.mssql.server import ENTERPRISE, MANAGED_INSTANCE, SQL_SERVER_2025, STANDARD, Server
from stallmark.errors import CallFailed, NotGivenBack, StallmarkError

_OPTIONS = {
    "iops_per_volume": "MAX_IOPS_PER_VOLUME",
    "cpu_percent": "CAP_CPU_PERCENT",
    "grants_percent": "MAX_MEMORY_PERCENT",
}
_FOUND = """\
SELECT governor.is_enabled, governor.classifier_function_id, state.is_reconfiguration_pending
  FROM sys.resource_governor_configuration AS governor
 CROSS JOIN sys.dm_resource_governor_configuration AS state
"""
_PERMITTED = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'CONTROL SERVER')"
_DISABLE = "ALTER RESOURCE GOVERNOR DISABLE"


class ResourcePool(VariantSetting):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        server = self._server
        if server.is_babelfish:
            return f"{server.identity().product} has no Resource Governor here"
        if why := server.service.why_no_pool:
            return why
        governed = (ENTERPRISE, MANAGED_INSTANCE, *([STANDARD] if server.has_version(SQL_SERVER_2025) else []))
        if server.edition not in governed:
            return "this edition has no Resource Governor: Enterprise and Developer do, and Standard from 2025 on"
        [(permitted,)] = server.query(_PERMITTED)
        if not permitted:
            return "this login may not configure Resource Governor, which needs CONTROL SERVER"
        return None

    def make(self, wanted: Iterable[tuple[str, int | None]]) -> None:
        """Put users who log in from now on into a pool with these limits, pairs of a key and a value."""
        self.give_back()
        master = self._server.on_database("master")
        [(enabled, classifier, pending)] = master.query(_FOUND)
        if classifier or pending:
            why = "has a classifier function of its own" if classifier else "has changes that are not in effect yet"
            raise StallmarkError(
                f"Resource Governor of {self._server.address.server} {why}, so Stallmark leaves it as it is: leave out "
                "`resource_pool`, or take that away first."
            )
        self._journal().note({"enabled": bool(enabled)})
        self.was_made = True
        limits = ", ".join(f"{_OPTIONS[name]} = {int(value)}" for name, value in wanted if value)
        for statement in (
            f"CREATE RESOURCE POOL stallmark WITH ({limits})",
            "CREATE WORKLOAD GROUP stallmark USING stallmark",
            sql_file.read(__package__, "resource_pool_classifier"),
            "ALTER RESOURCE GOVERNOR WITH (CLASSIFIER_FUNCTION = dbo.stallmark_classifier)",
            "ALTER RESOURCE GOVERNOR RECONFIGURE",
        ):
            master.execute(statement)

    def give_back(self) -> None:
        journal = self._journal()
        if not (found := journal.read()):
            return
        drop = sql_file.read(__package__, "resource_pool_drop")
        try:
            master = self._server.on_database("master")
            master.execute(drop)
            if not found["enabled"]:
                master.execute(_DISABLE)
        except (CallFailed, StallmarkError) as error:
            raise NotGivenBack(
                "Resource Governor could not be given back, which the next run tries again. "
                f"{str(error).rstrip('.')}. Or take away its pool, group and classifier function `stallmark` yourself, "
                f"then {journal.how_to_remove}."
            ) from error
        journal.remove()

    def _journal(self) -> Journal:
        return Journal(self._server, "resource_pool")
