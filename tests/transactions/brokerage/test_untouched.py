"""Changes that tests make in the brokerage they share can be undone."""

from support.canonical import statement
from support.kept_databases import bring_back

from stallmark.engines.base import Engine
from stallmark.transactions.brokerage import WORKLOAD

CHANGES = {
    "broker": "UPDATE brokerage.broker SET b_num_trades = b_num_trades + 1, b_comm_total = 0 WHERE b_id < 4300000003",
    "address": "UPDATE brokerage.address SET ad_line1 = 'elsewhere', ad_line2 = NULL WHERE ad_id < 4300000100",
    "holding_history": "DELETE FROM brokerage.holding_history",
    "trade_request": (
        "INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) "
        "SELECT t_id, t_tt_id, t_s_symb, t_qty, t_bid_price, 4300000001 FROM brokerage.trade "
        "WHERE t_id < 200000000000050 AND t_id NOT IN (SELECT tr_t_id FROM brokerage.trade_request)"
    ),
}


def test_changes_are_undone(engine: Engine) -> None:
    tables = {name: WORKLOAD.metadata.tables[f"brokerage.{name}"] for name in CHANGES}

    def rows(schema: str) -> dict[str, tuple]:
        asked = {name: statement(table, engine.dialect) for name, table in tables.items()}
        return {
            name: tuple(engine.query(sql.replace(f"brokerage.{name}", f"{schema}{name}"))[0])
            for name, sql in asked.items()
        }

    built = rows("kept.kept_")
    for change in CHANGES.values():
        engine.execute(change)
    assert all(now != built[name] for name, now in rows("brokerage.").items())
    bring_back(engine, WORKLOAD.metadata)
    assert rows("brokerage.") == built
