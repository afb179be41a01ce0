"""The warehouse database: eight tables of decision support, derived from TPC-H and with its names, and the state of its
refresh functions.

In addition to the primary keys there are two indexes for queries and foreign keys: the lineitems of a part (and one of
its suppliers), and the orders of a customer. An index by date would not help: after the load, rows of all dates are on
every page. A scenario can cluster lineitem by its ship date (`cluster_by`).
"""

from datetime import date
from functools import partial

from sqlalchemy import (
    CHAR,
    BigInteger,
    Boolean,
    Date,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
)

from stallmark.schema.columns import NAMING, amount, column, text
from stallmark.schema.placement import DATES, GROWING

METADATA = MetaData(schema="warehouse", naming_convention=NAMING)

# Partitions have the years of all orders and lineitems.
_dated = partial(column, type_=Date, info={DATES: (date(1992, 1, 1), date(1998, 12, 31))})


REGION = Table(
    "region",
    METADATA,
    column("r_regionkey", Integer, primary_key=True),
    column("r_name", CHAR(25)),
    text("r_comment", 152, 66),
)
NATION = Table(
    "nation",
    METADATA,
    column("n_nationkey", Integer, primary_key=True),
    column("n_name", CHAR(25)),
    column("n_regionkey", Integer, ForeignKey("region.r_regionkey")),
    text("n_comment", 152, 74),
)
SUPPLIER = Table(
    "supplier",
    METADATA,
    column("s_suppkey", Integer, primary_key=True),
    column("s_name", CHAR(25)),
    text("s_address", 40, 25),
    column("s_nationkey", Integer, ForeignKey("nation.n_nationkey")),
    column("s_phone", CHAR(15)),
    amount("s_acctbal", 15, 7),
    text("s_comment", 101, 62),
)
PART = Table(
    "part",
    METADATA,
    column("p_partkey", Integer, primary_key=True),
    text("p_name", 55, 33),
    column("p_mfgr", CHAR(25)),
    column("p_brand", CHAR(10)),
    text("p_type", 25, 21),
    column("p_size", Integer),
    column("p_container", CHAR(10)),
    amount("p_retailprice", 15, 7),
    text("p_comment", 23, 14),
)
PARTSUPP = Table(
    "partsupp",
    METADATA,
    column("ps_partkey", Integer, ForeignKey("part.p_partkey"), primary_key=True),
    column("ps_suppkey", Integer, ForeignKey("supplier.s_suppkey"), primary_key=True),
    column("ps_availqty", Integer),
    amount("ps_supplycost", 15, 7),
    text("ps_comment", 199, 124),
)
CUSTOMER = Table(
    "customer",
    METADATA,
    column("c_custkey", Integer, primary_key=True),
    text("c_name", 25, 18),
    text("c_address", 40, 25),
    column("c_nationkey", Integer, ForeignKey("nation.n_nationkey")),
    column("c_phone", CHAR(15)),
    amount("c_acctbal", 15, 7),
    column("c_mktsegment", CHAR(10)),
    text("c_comment", 117, 73),
)
ORDERS = Table(
    "orders",
    METADATA,
    column("o_orderkey", BigInteger, primary_key=True),
    column("o_custkey", Integer, ForeignKey("customer.c_custkey")),
    column("o_orderstatus", CHAR(1)),
    amount("o_totalprice", 15, 9),
    _dated("o_orderdate"),
    column("o_orderpriority", CHAR(15)),
    column("o_clerk", CHAR(15)),
    column("o_shippriority", Integer),
    text("o_comment", 79, 49),
    Index(None, "o_custkey"),
    info={GROWING: True},
)
LINEITEM = Table(
    "lineitem",
    METADATA,
    column("l_orderkey", BigInteger, ForeignKey("orders.o_orderkey"), primary_key=True),
    column("l_partkey", Integer),
    column("l_suppkey", Integer),
    column("l_linenumber", Integer, primary_key=True),
    amount("l_quantity", 15, 5),
    amount("l_extendedprice", 15, 9),
    amount("l_discount", 15, 5),
    amount("l_tax", 15, 5),
    column("l_returnflag", CHAR(1)),
    column("l_linestatus", CHAR(1)),
    _dated("l_shipdate"),
    column("l_commitdate", Date),
    column("l_receiptdate", Date),
    column("l_shipinstruct", CHAR(25)),
    column("l_shipmode", CHAR(10)),
    text("l_comment", 44, 27),
    ForeignKeyConstraint(["l_partkey", "l_suppkey"], ["partsupp.ps_partkey", "partsupp.ps_suppkey"]),
    Index(None, "l_partkey", "l_suppkey"),
    info={GROWING: True},
)
# One row: the last refresh set begun, and which of its two functions are done. It changes in the transaction of the
# function, so that it outlives a kill between the two.
REFRESH = Table(
    "refresh",
    METADATA,
    column("refresh_set", Integer, primary_key=True),
    column("inserted", Boolean),
    column("deleted", Boolean),
)
