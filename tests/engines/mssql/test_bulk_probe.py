"""The doctor's trial of bulk copy, when rows come back as they were written, and when not."""

from collections.abc import Callable

import pytest
from support.tds.answers import Cut, Error, Rows
from support.tds.datatypes import BIGINT, BIT, DATE, FLOAT, INT, SMALLINT, char, datetime2, decimal, varchar
from support.tds.requests import Request
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.mssql.bulk import ROWS, try_bulk_copy

TYPES = [
    INT, BIGINT, SMALLINT, BIT, FLOAT, decimal(15, 2), decimal(6, 5), DATE, datetime2(3), datetime2(7), char(10),
    varchar(40), varchar(),
]  # fmt: skip
COLUMNS = [Column(name, kind) for name, kind in zip(ROWS.column_names, TYPES, strict=True)]


CREATE = "CREATE TABLE ##stallmark_57 .* article varchar"


def scripted(script: Script, change: Callable[[list], list] = list, **fails: Error) -> list[tuple]:
    """The table of the trial, which gives back the rows that came after a `change`; what came."""
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    came: list[tuple] = []

    def arrive(request: Request) -> list:
        came.extend(request.rows)
        return [fails["bulk"]] if "bulk" in fails else []

    script.sql(f"(?s){CREATE}", *([fails["create"]] if "create" in fails else []))
    script.table("tempdb..##stallmark_57", COLUMNS)
    script.bulk("##stallmark_57", arrive)
    script.sql("SELECT .* FROM ##stallmark_57", lambda _: [Rows(COLUMNS, change(came))])
    return came


def test_rows_of_every_type_come_back(engine, script):
    came = scripted(script)
    assert try_bulk_copy(engine).state == "ok"
    assert len(came) == 3 and came[1][1:] == (None,) * 12


def test_a_value_that_is_changed_on_the_way_is_said_by_its_column(engine, script):
    scripted(script, lambda rows: [(*row[:4], 0.5, *row[5:]) for row in rows])
    found = try_bulk_copy(engine)
    assert found.state == "missing" and "(ratio)" in found.sentence and "?BulkCopy=no" in found.sentence


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("create", Error(262, "CREATE TABLE permission denied in database 'tempdb'.")),
        ("bulk", Error(4815, "Received an invalid column length from the bcp client.")),
    ],
)
def test_a_trial_that_fails_says_why(engine, script, at, error):
    scripted(script, **{at: error})
    found = try_bulk_copy(engine)
    assert found.state == "missing" and error.text.rstrip(".") in found.sentence


def test_without_a_login_of_its_own_rows_are_inserted(engine, script):
    scripted(script)
    script.login(Cut(), library="mssql-python")
    assert try_bulk_copy(engine).state == "limited"
