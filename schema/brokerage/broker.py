"""Tables of brokers and of their charges."""

from sqlalchemy import CHAR, CheckConstraint, ForeignKey, Integer, PrimaryKeyConstraint, SmallInteger, Table

from stallmark.schema.brokerage.common import METADATA, amount, column, key, text

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
