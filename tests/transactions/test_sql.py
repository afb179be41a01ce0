"""The SQL files of all workloads: each transaction has twins, which a parser takes and which neither begin nor commit.

T-SQL is parsed in tests/tsql.
"""

import re

import pytest
from sqlfluff.core import Linter

from stallmark.engines import sql_file
from stallmark.transactions import WORKLOADS, find_workload
from stallmark.transactions.workload import Transaction, Workload

DIALECTS = ("postgresql", "mssql")
POSTGRES = Linter(dialect="postgres")
FOUND = [find_workload(name) for name in WORKLOADS]
ALL = [(workload, kind) for workload in FOUND for kind in workload.transactions]
NAMED = {"argvalues": ALL, "ids": [f"{workload.name} {kind.name}" for workload, kind in ALL]}
IN_BRACKETS = r"\(((?:[^()]|\([^()]*\))*)\)"


def code(workload: Workload, kind: type[Transaction], dialect: str) -> str:
    """Without comments."""
    text = sql_file.read(workload.package, f"{kind.name}.{dialect}")
    return re.sub(r"--.*|/\*(?s:.*?)\*/", "", text)


@pytest.mark.parametrize(("workload", "kind"), **NAMED)
def test_it_parses(workload, kind):
    for batch in re.split(r"(?m)^GO$", sql_file.read(workload.package, f"{kind.name}.postgresql")):
        assert not POSTGRES.parse_string(batch).violations


@pytest.mark.parametrize("workload", FOUND, ids=WORKLOADS)
def test_calls_of_frames_parse(workload):
    for kind in workload.transactions:
        for frame, parameters in kind.frames.items():
            called = workload.call(frame, parameters, "postgresql")
            # The placeholders are the driver's, and no part of the language.
            assert not POSTGRES.parse_string(re.sub(r"\$\d+", "1", called)).violations
            assert workload.call(frame, parameters, "mssql").count("?") == parameters


@pytest.mark.parametrize(("workload", "kind"), **NAMED)
def test_twins_define_the_frames_with_their_parameters(workload, kind):
    schema = workload.schema
    postgresql, mssql = (code(workload, kind, dialect) for dialect in DIALECTS)
    functions = {
        name: len(re.findall(r"(?:^|,)\s*(?!OUT\b)\w+ ", re.sub(IN_BRACKETS, "", given)))
        for name, given in re.findall(rf"CREATE OR REPLACE FUNCTION {schema}\.(\w+)\s*{IN_BRACKETS}", postgresql)
    }
    procedures = {
        name: len(re.findall(r"@\w+", given))
        for name, given in re.findall(rf"(?s)CREATE PROCEDURE {schema}\.(\w+)(.*?)\bAS\b", mssql)
    }
    assert functions == procedures == dict(kind.frames)
    assert set(re.findall(rf"DROP PROCEDURE IF EXISTS {schema}\.(\w+)", mssql)) == set(procedures)


@pytest.mark.parametrize(("workload", "kind"), **NAMED)
def test_procedures_neither_begin_nor_commit(workload, kind):
    for dialect in DIALECTS:
        found = re.findall(
            r"\b(COMMIT|ROLLBACK|BEGIN TRAN\w*|SET TRANSACTION)\b", code(workload, kind, dialect).upper()
        )
        assert not found


def test_the_banks_twins_do_the_same_in_the_same_order():
    workload = find_workload("bank")
    for dialect in DIALECTS:
        text = code(workload, *workload.deck, dialect)
        assert re.findall(r"(UPDATE bank\.\w+|FROM bank\.\w+|INSERT INTO bank\.\w+)", text) == [
            "UPDATE bank.accounts",
            "FROM bank.accounts",
            "UPDATE bank.tellers",
            "UPDATE bank.branches",
            "INSERT INTO bank.history",
        ]
