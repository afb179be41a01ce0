"""The lock on a server that only one run holds at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.mssql.errors import failed
from stallmark.driver.engines.mssql.odbc import api

if TYPE_CHECKING:
    from stallmark.driver.engines.mssql.engine import MssqlEngine

# In `master`, where everybody may be: application locks belong to a database, settings to the server.
_TAKE = """\
DECLARE @taken integer;
EXEC @taken = sp_getapplock
    @Resource = 'stallmark.run', @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 0;
SELECT @taken AS taken;
"""


@contextmanager
def held(engine: "MssqlEngine") -> Iterator[None]:
    """Held by a session: gone with it, whatever happens to this process."""
    connection = engine.connect("stallmark-run", database=None if engine.is_azure_database else "master")
    try:
        try:
            taken = connection.execute(_TAKE).fetchval()
        except api().Error as error:
            raise failed(error) from None
        if taken < 0:
            raise StallmarkError(
                f"Another Stallmark drives {engine.address.server}: two runs would disturb each other, and restore "
                "each other's settings. Wait for it, or stop it."
            )
        yield
    finally:
        connection.close()
