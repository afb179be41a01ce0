"""What tests do to the brokerage they share can be undone."""

from canonical import statement
from kept_databases import bring_back

from stallmark.driver.engines.base import Engine
from stallmark.transactions.brokerage import WORKLOAD

CHANGES = {
    "broker": "UPDATE brokerage.broker SET b_num_trades = b_num_trades + 1, b_comm_total = 0 WHERE b_id < 4300000003",
    "address": "UPDATE brokerage.address SET ad_line1 = 'elsewhere', ad_line2 = NULL WHERE ad_id < 4300000100",
    "holding_history": "DELETE FROM brokerage.holding_history",
    "trade_request": (
        "INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) "
        "SELECT t_id, t_tt_id, t_s_symb, t_qty, t_bid_price, 4300000001 FROM brokerage.trade "
        "WHERE t_id < 200000000000050"
    ),
}


def test_changes_are_undone(engine: Engine, untouched: None) -> None:
    def rows() -> dict[str, tuple]:
        return {name: tuple(engine.query(asked[name])[0]) for name in CHANGES}

    asked = {
        name: statement(WORKLOAD.metadata.tables[f"brokerage.{name}"], engine.dialect) for name in CHANGES
    }
    built = rows()
    for change in CHANGES.values():
        engine.execute(change)
    assert all(rows()[name] != built[name] for name in CHANGES)
    bring_back(engine, WORKLOAD.metadata)
    assert rows() == built
