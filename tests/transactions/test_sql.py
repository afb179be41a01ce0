"""The SQL files: both engines have a twin of each, and a parser accepts PostgreSQL's. T-SQL: tests/tsql."""

import re

import pytest
from sqlfluff.core import Linter

from stallmark.transactions.bank import WORKLOAD

FRAMES = [frame for transaction in WORKLOAD.deck for frame in transaction.frames]
ENGINES = ("postgresql", "mssql")
POSTGRES = Linter(dialect="postgres")


@pytest.mark.parametrize("name", [*FRAMES, "procedures"])
def test_it_parses(name: str) -> None:
    text = WORKLOAD.sql(name, "postgresql")
    if name != "procedures":  # placeholders of the driver are no part of the language
        text = re.sub(r"\$\d", "1", text)
    assert not POSTGRES.parse_string(text).violations


def test_conditions_parse() -> None:
    for condition in WORKLOAD.conditions:
        assert not POSTGRES.parse_string(condition.sql.replace(":branches", "2")).violations, condition.name


@pytest.mark.parametrize("name", [*FRAMES, "procedures"])
def test_every_engine_has_a_twin(name: str) -> None:
    assert all(WORKLOAD.sql(name, dialect).strip() for dialect in ENGINES)


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
    for dialect in ENGINES:
        text = re.sub(r"--.*", "", WORKLOAD.sql("procedures", dialect)).upper()
        assert not re.search(r"\b(COMMIT|ROLLBACK|BEGIN TRAN\w*|SET TRANSACTION)\b", text)
