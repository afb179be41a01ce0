"""The conditions of the warehouse hold for what is loaded, and each finds what is wrong."""

import pytest
from support.injected import Injected, check, condition_files

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.transactions import checks
from stallmark.transactions.warehouse import WORKLOAD

FILES = condition_files(WORKLOAD)

# The condition that must find it, and what is wrong. No foreign key is in force.
INJECTIONS = [
    ("rows", "DELETE FROM warehouse.orders WHERE o_orderkey = 3"),
    ("rows", "DELETE FROM warehouse.region WHERE r_regionkey = 3"),
    ("rows", "DELETE FROM warehouse.nation WHERE n_nationkey = 3"),
    ("rows", "DELETE FROM warehouse.supplier WHERE s_suppkey = 3"),
    ("rows", "DELETE FROM warehouse.part WHERE p_partkey = 3"),
    ("rows", "DELETE FROM warehouse.partsupp WHERE ps_partkey = 3"),
    ("rows", "DELETE FROM warehouse.customer WHERE c_custkey = 3"),
    ("rows", "DELETE FROM warehouse.refresh"),
    ("rows", "UPDATE warehouse.refresh SET refresh_set = 1, deleted = FALSE"),
    ("loaded_lines", "DELETE FROM warehouse.lineitem WHERE l_orderkey = 3 AND l_linenumber = 2"),
    ("loaded_keys", "UPDATE warehouse.orders SET o_orderkey = 8 WHERE o_orderkey = 3"),
    ("loaded_keys", "UPDATE warehouse.orders SET o_orderkey = 64000 WHERE o_orderkey = 3"),
    ("refresh", "UPDATE warehouse.refresh SET deleted = FALSE"),
    ("refresh", "UPDATE warehouse.refresh SET inserted = FALSE"),
    ("order_lines", "DELETE FROM warehouse.lineitem WHERE l_orderkey = 3"),
    ("order_lines", "DELETE FROM warehouse.orders WHERE o_orderkey = 3"),
    ("order_lines", "DELETE FROM warehouse.lineitem WHERE l_orderkey = 3 AND l_linenumber = 2"),
    ("order_lines", "UPDATE warehouse.lineitem SET l_linenumber = l_linenumber + 1 WHERE l_orderkey = 2"),
    ("order_totals", "UPDATE warehouse.orders SET o_totalprice = o_totalprice + 0.01 WHERE o_orderkey = 3"),
    ("order_totals", "UPDATE warehouse.orders SET o_orderstatus = 'P' WHERE o_orderkey = 3"),
    ("order_totals", "UPDATE warehouse.lineitem SET l_tax = l_tax + 0.01 WHERE l_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.orders SET o_orderdate = o_orderdate + 200 WHERE o_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.orders SET o_orderdate = '1991-12-31' WHERE o_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.lineitem SET l_receiptdate = l_shipdate WHERE l_orderkey = 3"),
    ("line_dates", "UPDATE warehouse.lineitem SET l_commitdate = '1992-01-01' WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_extendedprice = l_extendedprice + 0.01 WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_discount = 0.11 WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_linestatus = 'O' WHERE l_orderkey = 3"),
    ("line_prices", "UPDATE warehouse.lineitem SET l_returnflag = 'N' WHERE l_orderkey = 3"),
    ("parts", "UPDATE warehouse.part SET p_retailprice = p_retailprice + 0.01 WHERE p_partkey = 3"),
    ("parts", "DELETE FROM warehouse.partsupp WHERE ps_partkey = 3"),
    ("parts", "INSERT INTO warehouse.partsupp SELECT 3, 90, ps_availqty, ps_supplycost, ps_comment "
     "FROM warehouse.partsupp WHERE ps_partkey = 4 LIMIT 1"),
    ("buyers", "UPDATE warehouse.orders SET o_custkey = 3 WHERE o_orderkey = 3"),
    ("phones", "UPDATE warehouse.customer SET c_nationkey = (c_nationkey + 1) % 25 WHERE c_custkey = 3"),
    ("phones", "UPDATE warehouse.supplier SET s_phone = '1-2' WHERE s_suppkey = 3"),
    ("regions", "UPDATE warehouse.nation SET n_regionkey = 4 WHERE n_nationkey = 0"),
    ("regions", "DELETE FROM warehouse.nation WHERE n_regionkey = 4"),
]  # fmt: skip


def test_a_loaded_database_holds(engine: Engine, factor):
    findings = check(engine, WORKLOAD, {"factor": factor})
    assert len(findings) == len(WORKLOAD.conditions)
    assert [finding for finding in findings.values() if not finding.holds] == []
    assert checks.keys(engine, WORKLOAD).holds


@pytest.mark.parametrize(("finds", "wrong"), INJECTIONS)
def test_what_is_wrong_is_found(engine: Engine, factor, finds, wrong):
    if not isinstance(engine, EmbeddedEngine):
        pytest.skip("what is wrong is put into the embedded server alone: the conditions are the same texts")
    database = Injected(engine, "kept", f"SET session_replication_role = replica; {wrong}")
    finding = check(database, WORKLOAD, {"factor": factor}, finds)[finds]
    assert finding.holds is False
    assert finding.offending and finding.detail


def test_each_condition_has_something_to_find():
    assert {finds for finds, _ in INJECTIONS} == set(FILES.values())


def test_only_what_was_loaded_is_left_out_later(engine: Engine, factor):
    left_out = {
        file
        for file, finding in check(engine, WORKLOAD, {"factor": factor}, driven=True).items()
        if finding.holds is None
    }
    assert left_out == {"loaded_lines", "loaded_keys"}
