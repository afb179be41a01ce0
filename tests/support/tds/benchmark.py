"""The responder as a process of its own: enough for a client to measure what it costs itself."""

from support.tds.answers import Rows
from support.tds.datatypes import BIGINT, INT, datetime2, decimal, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

TABLE = "dbo.load"
COLUMNS = [
    Column("id", BIGINT, nullable=False),
    Column("account", INT),
    Column("name", nvarchar(40)),
    Column("amount", decimal(12, 2)),
    Column("at", datetime2(3)),
]


def script() -> Script:
    """dbo.one_row gives a row of two numbers; TABLE takes rows; everything else is done, and says no more."""
    script = Script(answer_unknown=())
    script.sql("SELECT @@SPID", Rows([Column("spid", INT)], [(51,)]))
    script.procedure("dbo.one_row", Rows([Column("id", INT), Column("n", BIGINT)], [(1, 2)]))
    script.table(TABLE, COLUMNS)
    return script
