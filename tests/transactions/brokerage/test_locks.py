"""docs/locks.md says of the transactions what is so."""

import re
from inspect import getsource
from pathlib import Path

import pytest
from sqlalchemy.dialects import mssql
from sqlalchemy.schema import CreateIndex

import stallmark.transactions.brokerage as brokerage
from stallmark.engines import sql_file
from stallmark.format import display_name
from stallmark.schema.brokerage.tables import TRADE_REQUEST
from stallmark.transactions.brokerage import WORKLOAD

DOCUMENT = (Path(__file__).parents[3] / "docs" / "locks.md").read_text()


def rows(heading: str) -> list[list[str]]:
    part = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


LOCKS = {name: cells for cells in rows("What each transaction locks") for name in re.findall(r"[A-Z]\w+-\w+", cells[0])}
TRANSACTIONS = {display_name(kind.name): kind for kind in WORKLOAD.transactions}
LEVEL = re.compile(r"Isolation\.(\w+)")


def test_every_transaction_is_there():
    assert LOCKS.keys() == TRANSACTIONS.keys()
    paired = {name for cells in rows("Pairs") for name in re.findall(r"[A-Z]\w+-[A-Z]\w+", cells[0])}
    assert paired <= TRANSACTIONS.keys()


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_its_isolation_is_what_is_said(name):
    levels = {level.replace("_", " ") for level in LEVEL.findall(getsource(TRANSACTIONS[name]))}
    strongest = next((level for level in ("SERIALIZABLE", "REPEATABLE READ") if level in levels), "READ COMMITTED")
    assert LOCKS[name][1] == strongest


def test_the_index_of_requests_covers_all_that_is_read_of_them():
    [index] = [one for one in TRADE_REQUEST.indexes if [column.name for column in one.columns] == ["tr_s_symb"]]
    ddl = str(CreateIndex(index).compile(dialect=mssql.dialect()))
    covered = {*re.findall(r"tr_\w+", ddl.split(" ON ")[1]), "tr_t_id"}  # the key of the table is in every index
    for name in ("broker_volume", "market_feed"):
        text = sql_file.read(brokerage.__name__, f"{name}.mssql")
        read = re.search(r"(?s)FROM brokerage\.(?:sector|trade_request).*?;", text.split("CREATE PROCEDURE")[1])
        assert {*re.findall(r"\btr_\w+", read[0])} <= covered
        assert {*re.findall(r"\btr_\w+", read[0])} >= {"tr_s_symb"}


def test_trade_order_keeps_no_lock_on_the_broker():
    text = sql_file.read(brokerage.__name__, "trade_order.mssql")
    assert re.findall(r"JOIN brokerage\.broker \w (.*) ON", text) == ["WITH (READCOMMITTED)"]
