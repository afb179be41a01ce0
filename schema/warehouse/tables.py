"""The warehouse database: eight tables of decision support, derived from TPC-H and with its names, and the state of its
refresh functions.

In addition to the primary keys there are two indexes for queries and foreign keys: the lineitems of a part (and one of
its suppliers), and the orders of a customer. An index by date would not help: after the load, rows of all dates are on
every page. A scenario can cluster lineitem by its ship date (`cluster_by`).

`mean_bytes` is the mean length of a text, or of a number as PostgreSQL stores it, for the estimates of `schema.size`.
"""

from datetime import date
from functools import partial
from typing import Any

from sqlalchemy import (
    CHAR,
    BigInteger,
    Boolean,
    Column,
    Date,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
)

from stallmark.schema.placement import DATES, GROWING

METADATA = MetaData(
    schema="warehouse",
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    },
)

# Keys are the loader's: no engine makes one up.
_column = partial(Column, nullable=False, autoincrement=False)


def _text(name: str, longest: int, mean_bytes: int) -> Column[str]:
    return _column(name, String(longest), info={"mean_bytes": mean_bytes})


def _number(name: str, mean_bytes: int) -> Column[Any]:
    return _column(name, Numeric(15, 2), info={"mean_bytes": mean_bytes})


# Partitions have the years of all orders and lineitems.
_dated = partial(_column, type_=Date, info={DATES: (date(1992, 1, 1), date(1998, 12, 31))})


REGION = Table(
    "region",
    METADATA,
    _column("r_regionkey", Integer, primary_key=True),
    _column("r_name", CHAR(25)),
    _text("r_comment", 152, 66),
)
NATION = Table(
    "nation",
    METADATA,
    _column("n_nationkey", Integer, primary_key=True),
    _column("n_name", CHAR(25)),
    _column("n_regionkey", Integer, ForeignKey("region.r_regionkey")),
    _text("n_comment", 152, 74),
)
SUPPLIER = Table(
    "supplier",
    METADATA,
    _column("s_suppkey", Integer, primary_key=True),
    _column("s_name", CHAR(25)),
    _text("s_address", 40, 25),
    _column("s_nationkey", Integer, ForeignKey("nation.n_nationkey")),
    _column("s_phone", CHAR(15)),
    _number("s_acctbal", 7),
    _text("s_comment", 101, 62),
)
PART = Table(
    "part",
    METADATA,
    _column("p_partkey", Integer, primary_key=True),
    _text("p_name", 55, 33),
    _column("p_mfgr", CHAR(25)),
    _column("p_brand", CHAR(10)),
    _text("p_type", 25, 21),
    _column("p_size", Integer),
    _column("p_container", CHAR(10)),
    _number("p_retailprice", 7),
    _text("p_comment", 23, 14),
)
PARTSUPP = Table(
    "partsupp",
    METADATA,
    _column("ps_partkey", Integer, ForeignKey("part.p_partkey"), primary_key=True),
    _column("ps_suppkey", Integer, ForeignKey("supplier.s_suppkey"), primary_key=True),
    _column("ps_availqty", Integer),
    _number("ps_supplycost", 7),
    _text("ps_comment", 199, 124),
)
CUSTOMER = Table(
    "customer",
    METADATA,
    _column("c_custkey", Integer, primary_key=True),
    _text("c_name", 25, 18),
    _text("c_address", 40, 25),
    _column("c_nationkey", Integer, ForeignKey("nation.n_nationkey")),
    _column("c_phone", CHAR(15)),
    _number("c_acctbal", 7),
    _column("c_mktsegment", CHAR(10)),
    _text("c_comment", 117, 73),
)
ORDERS = Table(
    "orders",
    METADATA,
    _column("o_orderkey", BigInteger, primary_key=True),
    _column("o_custkey", Integer, ForeignKey("customer.c_custkey")),
    _column("o_orderstatus", CHAR(1)),
    _number("o_totalprice", 9),
    _dated("o_orderdate"),
    _column("o_orderpriority", CHAR(15)),
    _column("o_clerk", CHAR(15)),
    _column("o_shippriority", Integer),
    _text("o_comment", 79, 49),
    Index(None, "o_custkey"),
    info={GROWING: True},
)
LINEITEM = Table(
    "lineitem",
    METADATA,
    _column("l_orderkey", BigInteger, ForeignKey("orders.o_orderkey"), primary_key=True),
    _column("l_partkey", Integer),
    _column("l_suppkey", Integer),
    _column("l_linenumber", Integer, primary_key=True),
    _number("l_quantity", 5),
    _number("l_extendedprice", 9),
    _number("l_discount", 5),
    _number("l_tax", 5),
    _column("l_returnflag", CHAR(1)),
    _column("l_linestatus", CHAR(1)),
    _dated("l_shipdate"),
    _column("l_commitdate", Date),
    _column("l_receiptdate", Date),
    _column("l_shipinstruct", CHAR(25)),
    _column("l_shipmode", CHAR(10)),
    _text("l_comment", 44, 27),
    ForeignKeyConstraint(["l_partkey", "l_suppkey"], ["partsupp.ps_partkey", "partsupp.ps_suppkey"]),
    Index(None, "l_partkey", "l_suppkey"),
    info={GROWING: True},
)
# One row: the last refresh set begun, and which of its two functions are done. It changes in the transaction of the
# function, so that it outlives a kill between the two.
REFRESH = Table(
    "refresh",
    METADATA,
    _column("refresh_set", Integer, primary_key=True),
    _column("inserted", Boolean),
    _column("deleted", Boolean),
)
