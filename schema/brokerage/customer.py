"""Tables of customers, their accounts, and their watch lists."""

from sqlalchemy import CHAR, CheckConstraint, Date, ForeignKey, Index, PrimaryKeyConstraint, SmallInteger, Table

from stallmark.schema.brokerage.common import METADATA, amount, column, key, symbol, text

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
