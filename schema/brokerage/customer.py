"""Customers, their accounts, what these hold, and what customers watch."""

from sqlalchemy import (
    CHAR,
    CheckConstraint,
    Date,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
)

from stallmark.schema.brokerage.common import (
    GROWS,
    METADATA,
    MOMENT,
    amount,
    column,
    key,
    price,
    symbol,
    text,
)

CUSTOMER = Table(
    "customer",
    METADATA,
    key("c_id", primary_key=True),
    text("c_tax_id", 20, 12),
    column("c_st_id", CHAR(4), ForeignKey("status_type.st_id")),
    text("c_l_name", 25, 7),
    text("c_f_name", 20, 6),
    column("c_m_name", CHAR(1)),
    column("c_gndr", CHAR(1)),
    column("c_tier", SmallInteger),
    column("c_dob", Date),
    key("c_ad_id", ForeignKey("address.ad_id")),
    text("c_ctry_1", 3, 2),
    text("c_area_1", 3, 3),
    text("c_local_1", 10, 7),
    text("c_ext_1", 5, 3),
    text("c_ctry_2", 3, 2),
    text("c_area_2", 3, 3),
    text("c_local_2", 10, 7),
    text("c_ext_2", 5, 3),
    text("c_ctry_3", 3, 2),
    text("c_area_3", 3, 3),
    text("c_local_3", 10, 7),
    text("c_ext_3", 5, 3),
    text("c_email_1", 50, 25),
    text("c_email_2", 50, 25),
    CheckConstraint("c_tier BETWEEN 1 AND 3", name="c_tier"),
    CheckConstraint("c_gndr IN ('F', 'M')", name="c_gndr"),
    Index(None, "c_tax_id", unique=True),
)
CUSTOMER_TAXRATE = Table(
    "customer_taxrate",
    METADATA,
    text("cx_tx_id", 4, 4, ForeignKey("taxrate.tx_id")),
    key("cx_c_id", ForeignKey("customer.c_id")),
    PrimaryKeyConstraint("cx_c_id", "cx_tx_id"),
)
CUSTOMER_ACCOUNT = Table(
    "customer_account",
    METADATA,
    key("ca_id", primary_key=True),
    key("ca_b_id", ForeignKey("broker.b_id")),
    key("ca_c_id", ForeignKey("customer.c_id")),
    text("ca_name", 50, 21),
    column("ca_tax_st", SmallInteger),
    amount("ca_bal", 12, 8),
    CheckConstraint("ca_tax_st BETWEEN 0 AND 2", name="ca_tax_st"),
    Index(None, "ca_c_id"),
)
ACCOUNT_PERMISSION = Table(
    "account_permission",
    METADATA,
    key("ap_ca_id", ForeignKey("customer_account.ca_id")),
    column("ap_acl", CHAR(4)),
    text("ap_tax_id", 20, 12),
    text("ap_l_name", 25, 7),
    text("ap_f_name", 20, 6),
    PrimaryKeyConstraint("ap_ca_id", "ap_tax_id"),
)
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
    Index(None, "h_ca_id", "h_s_symb", "h_dts"),
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
    Index(None, "hh_t_id"),
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
WATCH_LIST = Table(
    "watch_list",
    METADATA,
    key("wl_id", primary_key=True),
    key("wl_c_id", ForeignKey("customer.c_id")),
    Index(None, "wl_c_id"),
)
WATCH_ITEM = Table(
    "watch_item",
    METADATA,
    key("wi_wl_id", ForeignKey("watch_list.wl_id")),
    symbol("wi_s_symb", ForeignKey("security.s_symb")),
    PrimaryKeyConstraint("wi_wl_id", "wi_s_symb"),
)
