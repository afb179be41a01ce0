"""Orders of the brokerage as a run leaves them that ends before their completion."""

from stallmark.engines.base import Engine

LIMIT_TYPES = ("TLB", "TLS", "TSL")
PLACED, SUBMITTED = "2026-11-22T09:00:00", "2026-11-22T09:00:05"


def leave(
    engine: Engine,
    trade: int,
    type_: str,
    status: str,
    *,
    symbol: str = "t_s_symb",
    limit: str = "25",
    placed: str = PLACED,
) -> None:
    """Of 200 shares, in the account of the first trade; of its security, too, unless `symbol` is another, in quotes."""
    engine.execute(
        "INSERT INTO brokerage.trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, "
        "t_exec_name, t_trade_price, t_chrg, t_comm, t_tax, t_lifo) "
        f"SELECT {trade}, '{placed}', '{status}', '{type_}', t_is_cash, {symbol}, "
        f"200, {limit}, t_ca_id, t_exec_name, NULL, ch_chrg, 0, 0, t_lifo FROM brokerage.trade "
        "JOIN brokerage.customer_account ON ca_id = t_ca_id JOIN brokerage.customer ON c_id = ca_c_id "
        f"JOIN brokerage.charge ON ch_tt_id = '{type_}' AND ch_c_tier = c_tier WHERE t_id = 200000000000001"
    )
    states = [(placed, "PNDG" if type_ in LIMIT_TYPES else "SBMT")]
    if status == "PNDG":
        engine.execute(
            "INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) "
            "SELECT t_id, t_tt_id, t_s_symb, t_qty, t_bid_price, ca_b_id FROM brokerage.trade "
            f"JOIN brokerage.customer_account ON ca_id = t_ca_id WHERE t_id = {trade}"
        )
    elif type_ in LIMIT_TYPES:
        states.append((SUBMITTED, "SBMT"))
    for moment, state in states:
        engine.execute(f"INSERT INTO brokerage.trade_history VALUES ({trade}, '{moment}', '{state}')")
