"""The brokerage database, derived from TPC-E: 33 tables, 50 foreign keys.

Keys, tiers and accounts by number are in `population`. All text is ASCII.
"""

from typing import Any

from sqlalchemy import (
    CHAR,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
)
from sqlalchemy.dialects.mssql import DATETIME2

from stallmark.schema.columns import NAMING, amount, column, text
from stallmark.schema.placement import GROWING
from stallmark.schema.size import Article

# The metadata of the tables, and short functions for their columns.

METADATA = MetaData(schema="brokerage", naming_convention=NAMING)

MOMENT = DateTime().with_variant(DATETIME2(3), "mssql")

# `info` of a table to which a run adds rows; the others keep their size, so a design may place these apart.
GROWS = {GROWING: True}

# PostgreSQL 18 vacuums a table that was frozen, as after a load, once 1,000 rows have come: all of it and its indexes,
# however large. Updates still start a vacuum: where a fifth of the rows has changed.
RARELY_VACUUMED = {"autovacuum_vacuum_insert_threshold": 1_000_000}

# Trade-Update changes rows of any age: with 5 % of a page free their new versions stay on it and need no index entry.
# At 100 / 95 / 90 %: 37 / 52 / 53 % of the updates of trade, 2.71 / 2.45 / 2.45 writes per transaction.
UPDATED = RARELY_VACUUMED | {"fillfactor": 95}


def symbol(name: str, *more: Any, **options: Any) -> Column[str]:
    return text(name, 15, 5, *more, **options)


def price(name: str, **options: Any) -> Column[Any]:
    return amount(name, 8, 7, **options)


def key(name: str, *more: Any, **options: Any) -> Column[int]:
    """Return a column of a key; keys begin above 4,300,000,000."""
    return column(name, BigInteger, *more, **options)


# Tables that others refer to: addresses, ZIP codes, states, tax rates. Only addresses grow with the customers.

STATUS_TYPE = Table("status_type", METADATA, column("st_id", CHAR(4), primary_key=True), text("st_name", 10, 8))
TAXRATE = Table(
    "taxrate",
    METADATA,
    text("tx_id", 4, 4, primary_key=True),
    text("tx_name", 50, 25),
    column("tx_rate", Numeric(6, 5), info={"mean_bytes": 7}),
    CheckConstraint("tx_rate >= 0 AND tx_rate < 1", name="tx_rate"),
)
ZIP_CODE = Table(
    "zip_code", METADATA, text("zc_code", 12, 5, primary_key=True), text("zc_town", 80, 12), text("zc_div", 80, 2)
)
ADDRESS = Table(
    "address",
    METADATA,
    key("ad_id", primary_key=True),
    text("ad_line1", 80, 18, nullable=True),
    text("ad_line2", 80, 4, nullable=True),
    text("ad_zc_code", 12, 5, ForeignKey("zip_code.zc_code")),
    text("ad_ctry", 80, 3, nullable=True),
)


# Tables of customers, their accounts, and their watch lists.

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
    Index(None, "c_tax_id", unique=True),  # Customer-Position names half of its customers by it
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
    Index(None, "ca_c_id"),  # Customer-Position reads the accounts of a customer
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
WATCH_LIST = Table(
    "watch_list",
    METADATA,
    key("wl_id", primary_key=True),
    key("wl_c_id", ForeignKey("customer.c_id")),
    Index(None, "wl_c_id"),  # Market-Watch begins with the list of a customer
)
WATCH_ITEM = Table(
    "watch_item",
    METADATA,
    key("wi_wl_id", ForeignKey("watch_list.wl_id")),
    symbol("wi_s_symb", ForeignKey("security.s_symb")),
    PrimaryKeyConstraint("wi_wl_id", "wi_s_symb"),
)


# Tables of brokers and of their charges.

BROKER = Table(
    "broker",
    METADATA,
    key("b_id", primary_key=True),
    column("b_st_id", CHAR(4), ForeignKey("status_type.st_id")),
    text("b_name", 49, 13),
    column("b_num_trades", Integer),
    amount("b_comm_total", 12, 9),
    CheckConstraint("b_num_trades >= 0", name="b_num_trades"),
    CheckConstraint("b_comm_total >= 0", name="b_comm_total"),
)
CHARGE = Table(
    "charge",
    METADATA,
    column("ch_tt_id", CHAR(3), ForeignKey("trade_type.tt_id")),
    column("ch_c_tier", SmallInteger),
    amount("ch_chrg", 10, 7),
    PrimaryKeyConstraint("ch_tt_id", "ch_c_tier"),
    CheckConstraint("ch_c_tier BETWEEN 1 AND 3", name="ch_c_tier"),
    CheckConstraint("ch_chrg >= 0", name="ch_chrg"),
)
COMMISSION_RATE = Table(
    "commission_rate",
    METADATA,
    column("cr_c_tier", SmallInteger),
    column("cr_tt_id", CHAR(3), ForeignKey("trade_type.tt_id")),
    text("cr_ex_id", 6, 4, ForeignKey("exchange.ex_id")),
    column("cr_from_qty", Integer),
    column("cr_to_qty", Integer),
    amount("cr_rate", 5, 5),
    PrimaryKeyConstraint("cr_c_tier", "cr_tt_id", "cr_ex_id", "cr_from_qty"),
    CheckConstraint("cr_c_tier BETWEEN 1 AND 3", name="cr_c_tier"),
    CheckConstraint("cr_from_qty >= 0", name="cr_from_qty"),
    CheckConstraint("cr_from_qty < cr_to_qty", name="cr_to_qty"),
    CheckConstraint("cr_rate >= 0", name="cr_rate"),
)


# Tables of exchanges, companies, securities, prices and news.

SECTOR = Table("sector", METADATA, column("sc_id", CHAR(2), primary_key=True), text("sc_name", 30, 15))
INDUSTRY = Table(
    "industry",
    METADATA,
    column("in_id", CHAR(2), primary_key=True),
    text("in_name", 50, 20),
    column("in_sc_id", CHAR(2), ForeignKey("sector.sc_id")),
)
EXCHANGE = Table(
    "exchange",
    METADATA,
    text("ex_id", 6, 4, primary_key=True),
    text("ex_name", 100, 25),
    column("ex_num_symb", Integer),
    column("ex_open", Integer),
    column("ex_close", Integer),
    text("ex_desc", 150, 80),
    key("ex_ad_id", ForeignKey("address.ad_id")),
    CheckConstraint("ex_num_symb >= 0", name="ex_num_symb"),
    CheckConstraint("ex_open < ex_close", name="ex_close"),
)
COMPANY = Table(
    "company",
    METADATA,
    key("co_id", primary_key=True),
    column("co_st_id", CHAR(4), ForeignKey("status_type.st_id")),
    text("co_name", 60, 18),
    column("co_in_id", CHAR(2), ForeignKey("industry.in_id")),
    text("co_sp_rate", 4, 3),
    text("co_ceo", 46, 13),
    key("co_ad_id", ForeignKey("address.ad_id")),
    text("co_desc", 150, 100),
    column("co_open_date", Date),
    Index(None, "co_name"),  # Trade-Order names two in five securities by their company
)
COMPANY_COMPETITOR = Table(
    "company_competitor",
    METADATA,
    key("cp_co_id", ForeignKey("company.co_id")),
    key("cp_comp_co_id", ForeignKey("company.co_id")),
    column("cp_in_id", CHAR(2), ForeignKey("industry.in_id")),
    PrimaryKeyConstraint("cp_co_id", "cp_comp_co_id", "cp_in_id"),
    CheckConstraint("cp_co_id <> cp_comp_co_id", name="cp_comp_co_id"),
)
SECURITY = Table(
    "security",
    METADATA,
    symbol("s_symb", primary_key=True),
    text("s_issue", 6, 6),
    column("s_st_id", CHAR(4), ForeignKey("status_type.st_id")),
    text("s_name", 70, 31),
    text("s_ex_id", 6, 4, ForeignKey("exchange.ex_id")),
    key("s_co_id", ForeignKey("company.co_id")),
    column("s_num_out", BigInteger),
    column("s_start_date", Date),
    column("s_exch_date", Date),
    amount("s_pe", 10, 7),
    amount("s_52wk_high", 8, 5),
    column("s_52wk_high_date", Date),
    amount("s_52wk_low", 8, 5),
    column("s_52wk_low_date", Date),
    amount("s_dividend", 10, 6),
    amount("s_yield", 5, 7),
    CheckConstraint("s_num_out > 0", name="s_num_out"),
    CheckConstraint("s_52wk_low > 0 AND s_52wk_low <= s_52wk_high", name="s_52wk_low"),
    Index(None, "s_co_id", "s_issue"),  # the same, and Market-Watch by industry
)
DAILY_MARKET = Table(
    "daily_market",
    METADATA,
    column("dm_date", Date),
    symbol("dm_s_symb", ForeignKey("security.s_symb")),
    price("dm_close"),
    price("dm_high"),
    price("dm_low"),
    column("dm_vol", BigInteger),
    # By security first: all transactions read the days of one security, or one day of some.
    PrimaryKeyConstraint("dm_s_symb", "dm_date"),
    CheckConstraint("dm_low > 0 AND dm_low <= dm_close AND dm_close <= dm_high", name="dm_close"),
    CheckConstraint("dm_vol >= 0", name="dm_vol"),
)
LAST_TRADE = Table(
    "last_trade",
    METADATA,
    symbol("lt_s_symb", ForeignKey("security.s_symb"), primary_key=True),
    column("lt_dts", MOMENT),
    price("lt_price"),
    price("lt_open_price"),
    column("lt_vol", BigInteger),
    CheckConstraint("lt_price > 0", name="lt_price"),
    CheckConstraint("lt_open_price > 0", name="lt_open_price"),
    CheckConstraint("lt_vol >= 0", name="lt_vol"),
)
FINANCIAL = Table(
    "financial",
    METADATA,
    key("fi_co_id", ForeignKey("company.co_id")),
    column("fi_year", Integer),
    column("fi_qtr", SmallInteger),
    column("fi_qtr_start_date", Date),
    amount("fi_revenue", 15, 11),
    amount("fi_net_earn", 15, 9),
    amount("fi_basic_eps", 10, 5),
    amount("fi_dilut_eps", 10, 5),
    amount("fi_margin", 10, 7),
    amount("fi_inventory", 15, 9),
    amount("fi_assets", 15, 11),
    amount("fi_liability", 15, 11),
    column("fi_out_basic", BigInteger),
    column("fi_out_dilut", BigInteger),
    PrimaryKeyConstraint("fi_co_id", "fi_year", "fi_qtr"),
    CheckConstraint("fi_qtr BETWEEN 1 AND 4", name="fi_qtr"),
)
NEWS_ITEM = Table(
    "news_item",
    METADATA,
    key("ni_id", primary_key=True),
    text("ni_headline", 80, 60),
    text("ni_summary", 255, 200),
    column("ni_item", Article(), info={"mean_bytes": 50_000}),
    column("ni_dts", MOMENT),
    text("ni_source", 30, 15),
    text("ni_author", 30, 12, nullable=True),
)
# News are looked for by their company.
NEWS_XREF = Table(
    "news_xref",
    METADATA,
    key("nx_ni_id", ForeignKey("news_item.ni_id")),
    key("nx_co_id", ForeignKey("company.co_id")),
    PrimaryKeyConstraint("nx_co_id", "nx_ni_id"),
)


# Tables of holdings, by the trades that began them, and of their history.


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


# Tables of trades, their states, and the money that they move.

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
