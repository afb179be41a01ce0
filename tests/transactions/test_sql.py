"""The SQL files of all workloads: each transaction has twins, which neither begin nor commit.

PostgreSQL's are deployed and called by other tests, T-SQL is parsed by engines/mssql/test_every_text.py.
"""

import re

import pytest

from stallmark.engines import sql_file
from stallmark.transactions import find_workload
from stallmark.transactions.workload import Transaction, Workload

DIALECTS = ("postgresql", "mssql")
WORKLOADS = [find_workload(name) for name in ("bank", "brokerage", "mail")]
ALL = [(workload, kind) for workload in WORKLOADS for kind in workload.transactions]
NAMED = {"argvalues": ALL, "ids": [f"{workload.name} {kind.name}" for workload, kind in ALL]}
IN_BRACKETS = r"\(((?:[^()]|\([^()]*\))*)\)"


def code(workload: Workload, kind: type[Transaction], dialect: str) -> str:
    """Without comments."""
    text = sql_file.read(workload.package, f"{kind.name}.{dialect}")
    return re.sub(r"--.*|/\*(?s:.*?)\*/", "", text)


def test_calls_of_frames_have_their_parameters():
    for workload, kind in ALL:
        for frame, parameters in kind.frames.items():
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
        text = code(workload, *workload.users.deck, dialect)
        assert re.findall(r"(UPDATE bank\.\w+|FROM bank\.\w+|INSERT INTO bank\.\w+)", text) == [
            "UPDATE bank.accounts",
            "FROM bank.accounts",
            "UPDATE bank.tellers",
            "UPDATE bank.branches",
            "INSERT INTO bank.history",
        ]
