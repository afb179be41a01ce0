"""What the collectors of SQL Server have in common: a query in a file, and sentences where it cannot be asked."""

from contextlib import closing
from functools import cached_property
from typing import ClassVar, cast

import pyarrow as pa

from stallmark.collectors.base import Collector, Row
from stallmark.collectors.mssql import azure_statement, known_as, statement
from stallmark.collectors.mssql.connection import CollectorConnection
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed

TEXT, COUNT, MS = pa.string(), pa.int64(), pa.float64()
CLOCK = ("server_time", pa.float64())
SERVER_CLOCK = [CLOCK, ("epoch", TEXT)]

FORBIDDEN = {"229", "262", "297", "300", "371", "27219"}
"""EXECUTE or SELECT denied, a database's state denied, "no permission to perform this action", a server's state
denied by its old and by its new (2022) name, the error log denied."""
NO_SUCH_VIEW = "208"
FINER_PERMISSIONS = 16  # 2022 splits VIEW SERVER STATE


class MssqlCollector(Collector):
    """Stores the rows of its query as they come."""

    on_azure: ClassVar[bool] = False
    """Azure SQL Database has the views as well, though it has no query of its own."""

    engine: MssqlEngine

    def __init__(self, engine: Engine, connection: CollectorConnection | None = None):
        super().__init__(engine)
        self.engine = cast(MssqlEngine, engine)
        self.connection = connection or CollectorConnection(engine)

    @property
    def major(self) -> int:
        return known_as(self.engine.identity().version[0], self.engine.edition)

    @property
    def is_azure(self) -> bool:
        return self.engine.is_azure_database

    @cached_property
    def sql(self) -> str:
        own = azure_statement(self.name) if self.is_azure else None
        return own or statement(self.name, self.major)

    @property
    def permission(self) -> str:
        """What a login needs for it."""
        if self.is_azure:
            return "VIEW DATABASE STATE"
        return "VIEW SERVER PERFORMANCE STATE" if self.major >= FINER_PERMISSIONS else "VIEW SERVER STATE"

    def unavailable(self) -> str | None:
        if why := self.not_here():
            return why
        try:
            self.engine.query(self.sql)
        except CallFailed as failure:
            return self._refused(failure)
        return None

    def not_here(self) -> str | None:
        """Why such a server has nothing of the kind, whoever asks."""
        product = self.engine.identity().product
        if product != "SQL Server":
            return f"{product} has none of SQL Server's management views."
        if self.is_azure and not self.on_azure and azure_statement(self.name) is None:
            return "Azure SQL Database does not show this; SQL Server and Azure SQL Managed Instance do."
        return None

    def open(self) -> None:
        self.connection.open()

    def sample(self, now: float) -> list[Row]:
        return self.connection.rows(self.sql)

    def close(self) -> None:
        self.connection.close()

    def look(self) -> list[Row]:
        """A sample outside the sampler's turns, whether the connection is open or not."""
        with closing(self.connection):
            self.connection.open()
            return self.sample(0.0)

    def forbidden(self, why: str, permission: str | None = None) -> str:
        """The sentence for a login that may not see what a collector reads; `permission` where it is not its own."""
        permission = permission or self.permission
        of_database = "DATABASE" in permission
        who, name = ("user", "USER_NAME()") if of_database else ("login", "SUSER_SNAME()")
        [(login,)] = self.engine.query(f"SELECT QUOTENAME({name})")
        place = "" if of_database else "USE master; "  # where alone rights on the server are granted
        group = " (or TO the Windows group that lets it in)" if "\\" in login else ""
        return f"The {who} {login} may not see this ({why}): run {place}GRANT {permission} TO {login};{group}"

    def _refused(self, failure: CallFailed) -> str:
        if failure.code in FORBIDDEN:
            return self.forbidden(failure.message)
        if failure.code == NO_SUCH_VIEW:
            return f"This server does not have the view it needs ({failure.message})."
        return f"The server refused its query ({failure.message}, error {failure.code})."
