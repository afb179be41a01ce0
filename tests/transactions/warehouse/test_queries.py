"""The texts of the queries: twins, of which each is one statement with nothing but plain literals in it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tsql import parsers

from stallmark.transactions.warehouse.parameters import validation
from stallmark.transactions.warehouse.queries import QUERIES, names, text

DIALECTS = ("postgresql", "mssql")
EACH = pytest.mark.parametrize("query", QUERIES)


def code(query: int, dialect: str) -> str:
    """Without comments, in one line."""
    return " ".join(re.sub(r"--.*", "", text(query, dialect, validation(query, 1))).split())


# That each T-SQL text parses is engines/mssql/test_every_text.py's; PostgreSQL's are executed (test_oracle.py).
def test_it_parses_with_a_dop():
    assert not parsers.sqlfluff(text(15, "mssql", validation(15, 1), dop=64))


@EACH
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_begins_with_its_name_and_is_one_statement(query, dialect):
    whole = text(query, dialect, validation(query, 1))
    assert re.match(rf"-- Q{query}: [a-z -]+\n-- [A-Z].*\.\n(SELECT|WITH)\b", whole)
    assert ";" not in whole and "*/" not in whole
    assert whole.endswith("\n") and whole == whole.rstrip() + "\n"
    assert not re.search(r":[a-z]", whole.partition("\n")[2])


@EACH
def test_twins_ask_for_the_same(query):
    """The same columns from the same tables, under the same conditions, in the same order."""
    postgresql, mssql = (code(query, dialect) for dialect in DIALECTS)
    for mine, theirs in (
        (r"DATEADD\(day, -90, CAST\('1998-12-01' AS date\)\)", "DATE '1998-12-01' - INTERVAL '90' DAY"),
        (r"DATEADD\((\w+), (\d), CAST\(('[^']*') AS date\)\)", r"DATE \3 + INTERVAL '\2' \1"),
        (r"CAST\(('[^']*') AS date\)", r"DATE \1"),
        (r"\bYEAR\((\w+)\)", r"EXTRACT(YEAR FROM \1)"),
        (r"SUBSTRING\(c_phone, 1, 2\)", "SUBSTRING(c_phone FROM 1 FOR 2)"),
        (r"COUNT_BIG\(", "COUNT("),
        (r"^SELECT TOP \((\d+)\) (.*)$", r"SELECT \2 LIMIT \1"),
    ):
        mssql = re.sub(mine, theirs, mssql)
    assert mssql.replace("month", "MONTH").replace("year", "YEAR") == postgresql.replace("year", "YEAR")


def test_a_dop_is_said_to_sql_server_alone():
    asked = validation(6, 1)
    assert text(6, "mssql", asked, dop=4) == text(6, "mssql", asked) + "OPTION (MAXDOP 4)\n"
    with pytest.raises(ValueError, match="cannot say in postgresql"):
        text(6, "postgresql", asked, dop=4)
    with pytest.raises(ValueError, match="take 0 processors"):
        text(6, "mssql", asked, dop=0)


@pytest.mark.parametrize(("query", "dialect"), [(0, "mssql"), (23, "postgresql"), (1, "oracle"), (1, "../q01")])
def test_unknown_queries_and_dialects(query, dialect):
    with pytest.raises(ValueError, match="no query"):
        text(query, dialect, {})


def test_parameters_that_are_not_its_own():
    with pytest.raises(ValueError, match=r"q1 has the parameters \['delta'\], and not \[\]"):
        text(1, "mssql", {})
    with pytest.raises(ValueError, match="and not"):
        text(1, "mssql", {"delta": "90", "nation": "FRANCE"})


@given(value=st.text(max_size=20), query=st.sampled_from(QUERIES))
def test_only_plain_literals(value, query):
    asked = validation(query, 1) | {sorted(names(query))[0]: value}
    if re.fullmatch(r"[A-Za-z0-9 #.-]+", value) and "--" not in value:
        assert value in text(query, "postgresql", asked)
    else:
        with pytest.raises(ValueError, match="cannot be"):
            text(query, "mssql", asked)


@pytest.mark.parametrize("value", ["", "90'", "90;", "1--", ":nation", "90\n", "{x}", "%", "ü", "٣"])
def test_literals_that_are_refused(value):
    with pytest.raises(ValueError, match="delta cannot be"):
        text(1, "postgresql", {"delta": value})
