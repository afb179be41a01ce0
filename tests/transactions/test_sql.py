"""The SQL files: both engines have a twin of each, and a parser of the dialect accepts them."""

import re

import pytest
from sqlfluff.core import Linter

from stallmark.transactions.bank import WORKLOAD

FRAMES = [frame for transaction in WORKLOAD.deck for frame in transaction.frames]
SQLFLUFF = {"postgresql": "postgres", "mssql": "tsql"}


@pytest.mark.parametrize("dialect", SQLFLUFF)
@pytest.mark.parametrize("name", [*FRAMES, "procedures"])
def test_it_parses(name: str, dialect: str) -> None:
    text = WORKLOAD.sql(name, dialect)
    if name != "procedures":  # placeholders of the drivers are no part of the language
        text = re.sub(r"\?|\$\d", "1", text)
    parsed = Linter(dialect=SQLFLUFF[dialect]).parse_string(text)
    assert not parsed.violations


@pytest.mark.parametrize("dialect", SQLFLUFF)
def test_conditions_parse_on_both_engines(dialect: str) -> None:
    linter = Linter(dialect=SQLFLUFF[dialect])
    for condition in WORKLOAD.conditions:
        assert not linter.parse_string(condition.sql.replace(":branches", "2")).violations, condition.name


def test_twins_do_the_same_in_the_same_order() -> None:
    def statements(dialect: str) -> list[str]:
        text = re.sub(r"--.*", "", WORKLOAD.sql("procedures", dialect))
        return re.findall(r"(UPDATE bank\.\w+|FROM bank\.\w+|INSERT INTO bank\.\w+)", text)

    assert statements("mssql") == statements("postgresql")
    assert statements("postgresql") == [
        "UPDATE bank.accounts",
        "FROM bank.accounts",
        "UPDATE bank.tellers",
        "UPDATE bank.branches",
        "INSERT INTO bank.history",
    ]


def test_procedures_neither_begin_nor_commit() -> None:
    for dialect in SQLFLUFF:
        text = re.sub(r"--.*", "", WORKLOAD.sql("procedures", dialect)).upper()
        assert not re.search(r"\b(COMMIT|ROLLBACK|BEGIN TRAN\w*|SET TRANSACTION)\b", text)
