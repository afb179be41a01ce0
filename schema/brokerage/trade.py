"""Tables of trades, their states, and the money that they move."""

from sqlalchemy import CHAR, Boolean, CheckConstraint, Date, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table

from stallmark.schema.brokerage.common import (
    GROWS,
    METADATA,
    MOMENT,
    RARELY_VACUUMED,
    UPDATED,
    amount,
    column,
    key,
    price,
    symbol,
    text,
)

TRADE_TYPE = Table(
    "trade_type",
    METADATA,
    column("tt_id", CHAR(3), primary_key=True),
    text("tt_name", 12, 11),
    column("tt_is_sell", Boolean),
    column("tt_is_mrkt", Boolean),
)
TRADE = Table(
    "trade",
    METADATA,
    key("t_id", primary_key=True),
    column("t_dts", MOMENT),
    column("t_st_id", CHAR(4), ForeignKey("status_type.st_id")),
    column("t_tt_id", CHAR(3), ForeignKey("trade_type.tt_id")),
    column("t_is_cash", Boolean),
    symbol("t_s_symb", ForeignKey("security.s_symb")),
    column("t_qty", Integer),
    price("t_bid_price"),
    key("t_ca_id", ForeignKey("customer_account.ca_id")),
    text("t_exec_name", 49, 13),
    price("t_trade_price", nullable=True),  # until it is completed
    amount("t_chrg", 10, 6),
    amount("t_comm", 10, 7),
    amount("t_tax", 10, 4),
    column("t_lifo", Boolean),
    CheckConstraint("t_qty > 0", name="t_qty"),
    CheckConstraint("t_bid_price > 0", name="t_bid_price"),
    CheckConstraint("t_trade_price > 0", name="t_trade_price"),
    CheckConstraint("t_chrg >= 0", name="t_chrg"),
    CheckConstraint("t_comm >= 0", name="t_comm"),
    CheckConstraint("t_tax >= 0", name="t_tax"),
    Index(None, "t_ca_id", "t_dts"),  # the latest of an account, or its first from a time on
    Index(None, "t_s_symb", "t_dts"),  # the first of a security from a time on
    postgresql_with=UPDATED,
    info=GROWS,
)
TRADE_HISTORY = Table(
    "trade_history",
    METADATA,
    key("th_t_id", ForeignKey("trade.t_id")),
    column("th_dts", MOMENT),
    column("th_st_id", CHAR(4), ForeignKey("status_type.st_id")),
    PrimaryKeyConstraint("th_t_id", "th_st_id"),
    postgresql_with=RARELY_VACUUMED,
    info=GROWS,
)
TRADE_REQUEST = Table(
    "trade_request",
    METADATA,
    key("tr_t_id", ForeignKey("trade.t_id"), primary_key=True),
    column("tr_tt_id", CHAR(3), ForeignKey("trade_type.tt_id")),
    symbol("tr_s_symb", ForeignKey("security.s_symb")),
    column("tr_qty", Integer),
    price("tr_bid_price"),
    key("tr_b_id", ForeignKey("broker.b_id")),
    CheckConstraint("tr_qty > 0", name="tr_qty"),
    CheckConstraint("tr_bid_price > 0", name="tr_bid_price"),
    # With all that Broker-Volume and Market-Feed read of a request, so that they never go on from the index to the row:
    # who deletes the row comes the other way (docs/locks.md).
    Index(None, "tr_s_symb", mssql_include=["tr_tt_id", "tr_qty", "tr_bid_price", "tr_b_id"]),
    info=GROWS,
)
# Amounts below zero are paid, those above received.
SETTLEMENT = Table(
    "settlement",
    METADATA,
    key("se_t_id", ForeignKey("trade.t_id"), primary_key=True),
    text("se_cash_type", 40, 12),
    column("se_cash_due_date", Date),
    amount("se_amt", 10, 8),
    CheckConstraint("se_amt <> 0", name="se_amt"),
    postgresql_with=UPDATED,
    info=GROWS,
)
CASH_TRANSACTION = Table(
    "cash_transaction",
    METADATA,
    key("ct_t_id", ForeignKey("trade.t_id"), primary_key=True),
    column("ct_dts", MOMENT),
    amount("ct_amt", 10, 8),
    text("ct_name", 100, 56),
    CheckConstraint("ct_amt <> 0", name="ct_amt"),
    postgresql_with=UPDATED,
    info=GROWS,
)
