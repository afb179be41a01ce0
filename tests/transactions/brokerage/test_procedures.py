"""All procedures of the brokerage are there under the names by which their transactions call them."""

from stallmark.engines.base import Engine
from stallmark.transactions.brokerage import WORKLOAD

_NAMES = {
    "postgresql": "SELECT proname FROM pg_proc WHERE pronamespace = 'brokerage'::regnamespace",
    "mssql": "SELECT name FROM sys.procedures WHERE schema_id = SCHEMA_ID('brokerage')",
}


def test_every_procedure_is_deployed(engine: Engine, not_deployed: dict[str, str]) -> None:
    assert not_deployed == {}
    called = {frame for kind in WORKLOAD.transactions for frame in kind.frames}
    assert called - {name for (name,) in engine.query(_NAMES[engine.dialect])} == set()
