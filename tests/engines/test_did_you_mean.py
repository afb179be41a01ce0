"""A URL of the wrong kind is answered with the right one."""

import psycopg
import pytest

from stallmark.engines import did_you_mean, open_engine
from stallmark.errors import NoConnection, StallmarkError


@pytest.mark.parametrize(
    ("scheme", "port", "meant"),
    [
        ("mssql", 5432, "postgresql://"), ("postgresql", 1433, "mssql://"),
        ("mssql", 1433, None), ("postgresql", 5432, None), ("mssql", None, None), ("postgresql", 6432, None),
    ],
)  # fmt: skip
def test_the_port_of_the_other_engine(scheme: str, port: int | None, meant: str | None):
    said = did_you_mean(scheme, port)
    assert (said is None) if meant is None else said.endswith(meant)


@pytest.mark.parametrize(("port", "meant"), [(1433, True), (5432, False)])
def test_it_is_said_where_there_is_no_connection(monkeypatch, port: int, meant: bool):
    def refuse(*_, **__):
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(psycopg, "connect", refuse)
    with pytest.raises(NoConnection) as error:
        open_engine(f"postgresql://me@db.example:{port}/bank").connect()
    assert ("write mssql://" in str(error.value)) is meant is ("Is the server running" not in str(error.value))


def test_it_is_said_of_sql_server_too():
    sql_server = open_engine("mssql://me@db.example:5432/bank")
    assert sql_server.why_no_connection(Exception("HYT00", "Login timeout expired")).endswith("write postgresql://")


@pytest.mark.parametrize(
    ("url", "meant"), [("postgress://x", "postgresql://?"), ("sqlserver://x", "mssql://?"), ("msql://x", "mssql:")]
)
def test_a_misspelt_scheme(url: str, meant: str):
    with pytest.raises(StallmarkError, match="did you mean") as error:
        open_engine(url)
    assert meant in str(error.value)
