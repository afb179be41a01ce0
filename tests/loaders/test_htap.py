"""Two workloads in one database: the batches, tables and numbers of both, and nothing mixed up."""

import pytest

from stallmark.errors import StallmarkError
from stallmark.loaders.plan import Batch, LoadPlan, loader_for
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of
from stallmark.transactions import find_workload

LOADER, BROKERAGE, WAREHOUSE = (loader_for(name) for name in ("htap", "brokerage", "warehouse"))
SCALE = LOADER.scale({"customers": 2000, "days": 0.1, "factor": 0.01})


def test_a_scale_is_that_of_both():
    assert LOADER.scale({"factor": 1}) == BROKERAGE.scale({}) | WAREHOUSE.scale({"factor": 1})
    with pytest.raises(StallmarkError, match="scale factor"):
        LOADER.scale({"customers": 1000})
    with pytest.raises(StallmarkError, match="The brokerage's scale has no 'branches'"):
        LOADER.scale({"branches": 1, "factor": 1})


def test_the_rows_of_both_go_into_tables_of_their_own():
    rows = LoadPlan(LOADER.groups(SCALE)).rows
    assert rows == LoadPlan(BROKERAGE.groups(SCALE)).rows | LoadPlan(WAREHOUSE.groups(SCALE)).rows
    assert rows.keys() <= set(find_workload("htap").metadata.tables)
    ours, *theirs = (LoadPlan(one.groups(SCALE)).batches() for one in (LOADER, BROKERAGE, WAREHOUSE))
    assert len(set(ours)) == len(ours) == sum(map(len, theirs))


def test_a_batch_is_made_by_its_own_loader():
    batch, own = Batch("brokerage/customers", 1), Batch("customers", 1)
    mine = list(LOADER.batch(7, SCALE, batch))
    theirs = list(BROKERAGE.batch(7, SCALE, own))
    assert [name for name, _ in mine] == [name for name, _ in theirs]
    assert all(a.equals(b) for (_, a), (_, b) in zip(mine, theirs, strict=True))
    assert LOADER.rows_of(SCALE, batch) == BROKERAGE.rows_of(SCALE, own)
    assert LOADER.rows_of(SCALE, Batch("warehouse/all", 0)) == WAREHOUSE.rows_of(SCALE, Batch("all", 0))


def test_the_workload_has_what_both_have():
    both, brokerage, warehouse = (find_workload(name) for name in ("htap", "brokerage", "warehouse"))
    assert deploy.schemas_of(both.metadata) == ["brokerage", "warehouse"]
    assert both.users is brokerage.users and both.streams is warehouse.streams and not brokerage.streams
    names = [condition.name for condition in both.conditions]
    assert len(names) == len(set(names)) == len(brokerage.conditions) + len(warehouse.conditions)
    ours, theirs = brokerage.numbers(SCALE), warehouse.numbers(SCALE)
    assert both.numbers(SCALE) == ours | theirs and not ours.keys() & theirs.keys()
    assert both.call("trade_order_1", 2, "postgresql") == brokerage.call("trade_order_1", 2, "postgresql")


def test_its_tables_and_keys_are_those_of_both():
    def keys(name: str) -> set[tuple]:
        parts = ddl_of(find_workload(name).metadata)
        return {(item.table.fullname, str(item.name)) for item in (*parts.keys, *parts.foreign_keys)}

    assert keys("htap") == keys("brokerage") | keys("warehouse")
    for foreign in ddl_of(find_workload("htap").metadata).foreign_keys:
        assert {element.column.table.schema for element in foreign.elements} == {foreign.table.schema}
