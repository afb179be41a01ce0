"""Tables of holdings, by the trades that began them, and of their history."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table

from stallmark.schema.brokerage.common import GROWS, METADATA, MOMENT, RARELY_VACUUMED, column, key, price, symbol

# A quantity below zero is owed: sold before it was bought.
HOLDING = Table(
    "holding",
    METADATA,
    key("h_t_id", ForeignKey("trade.t_id"), primary_key=True),
    key("h_ca_id", ForeignKey("customer_account.ca_id")),
    symbol("h_s_symb", ForeignKey("security.s_symb")),
    column("h_dts", MOMENT),
    price("h_price"),
    column("h_qty", Integer),
    CheckConstraint("h_price > 0", name="h_price"),
    CheckConstraint("h_qty <> 0", name="h_qty"),
    Index(None, "h_ca_id", "h_s_symb", "h_dts"),  # the oldest or newest of an account in a security is closed first
    postgresql_with=RARELY_VACUUMED,
    info=GROWS,
)
HOLDING_HISTORY = Table(
    "holding_history",
    METADATA,
    key("hh_h_t_id", ForeignKey("trade.t_id")),
    key("hh_t_id", ForeignKey("trade.t_id")),
    column("hh_before_qty", Integer),
    column("hh_after_qty", Integer),
    PrimaryKeyConstraint("hh_h_t_id", "hh_t_id"),
    CheckConstraint("hh_before_qty <> hh_after_qty", name="hh_after_qty"),
    Index(None, "hh_t_id"),  # Trade-Lookup looks for the holdings that a trade changed
    postgresql_with=RARELY_VACUUMED,
    info=GROWS,
)
HOLDING_SUMMARY = Table(
    "holding_summary",
    METADATA,
    key("hs_ca_id", ForeignKey("customer_account.ca_id")),
    symbol("hs_s_symb", ForeignKey("security.s_symb")),
    column("hs_qty", Integer),
    PrimaryKeyConstraint("hs_ca_id", "hs_s_symb"),
    CheckConstraint("hs_qty <> 0", name="hs_qty"),
    info=GROWS,
)
