"""Tables of exchanges, companies, securities, prices and news."""

from sqlalchemy import (
    CHAR,
    BigInteger,
    CheckConstraint,
    Date,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
)

from stallmark.schema.article import Article
from stallmark.schema.brokerage.common import METADATA, MOMENT, amount, column, key, price, symbol, text

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
