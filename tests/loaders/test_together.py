"""Several workloads in one database: the batches, tables and conditions of all, and nothing mixed up."""

from itertools import combinations

import pytest

from stallmark.errors import StallmarkError
from stallmark.loaders.plan import Batch, LoadPlan, loader_for
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of
from stallmark.transactions import WORKLOADS, find_workload, known_name

SCALES = {
    "bank": {"branches": 2},
    "brokerage": {"customers": 2000, "days": 0.1},
    "mail": {"mailboxes": 20, "messages": 100},
    "warehouse": {"factor": 0.01},
}
SETS = [sorted(names) for count in range(2, len(WORKLOADS) + 1) for names in combinations(WORKLOADS, count)]
SHARED = {"compressibility"}


def scale_of(names: list[str]) -> dict:
    given = {measure: value for name in names for measure, value in SCALES[name].items()}
    return loader_for("+".join(names)).scale(given)


def test_no_measure_and_no_transaction_is_of_two_workloads():
    for one, other in combinations(WORKLOADS, 2):
        assert set(loader_for(one).measures) & set(loader_for(other).measures) <= SHARED
        ours, theirs = (find_workload(name) for name in (one, other))
        assert not {kind.name for kind in ours.transactions} & {kind.name for kind in theirs.transactions}
        assert not set(deploy.schemas_of(ours.metadata)) & set(deploy.schemas_of(theirs.metadata))


def test_a_scale_is_that_of_all():
    both = loader_for("brokerage+warehouse")
    brokerage, warehouse = loader_for("brokerage"), loader_for("warehouse")
    assert both.scale({"factor": 1}) == brokerage.scale({}) | warehouse.scale({"factor": 1})
    with pytest.raises(StallmarkError, match="scale factor"):
        both.scale({"customers": 1000})
    with pytest.raises(StallmarkError, match="no measure 'branches'"):
        both.scale({"branches": 1, "factor": 1})


@pytest.mark.parametrize("names", SETS, ids="+".join)
def test_the_rows_of_each_go_into_tables_of_their_own(names):
    whole, scale = loader_for("+".join(names)), scale_of(names)
    rows: dict[str, int] = {}
    batches = 0
    for name in names:
        part = loader_for(name)
        own = LoadPlan(part.groups(part.own(scale)))
        assert not rows.keys() & own.rows.keys()
        rows |= own.rows
        batches += len(own.batches())
    plan = LoadPlan(whole.groups(scale))
    assert plan.rows == rows
    assert len(set(plan.batches())) == batches
    assert rows.keys() <= set(find_workload("+".join(names)).metadata.tables)
    for name in names:
        part = loader_for(name)
        assert part.options.items() <= whole.options.items() and part.seeded <= whole.seeded


def test_a_batch_is_made_by_its_own_loader():
    names = ["bank", "brokerage", "warehouse"]
    whole, scale, brokerage = loader_for("+".join(names)), scale_of(names), loader_for("brokerage")
    batch, own = Batch("brokerage/customers", 1), Batch("customers", 1)
    mine, theirs = list(whole.batch(7, scale, batch)), list(brokerage.batch(7, brokerage.own(scale), own))
    assert [name for name, _ in mine] == [name for name, _ in theirs]
    assert all(a.equals(b) for (_, a), (_, b) in zip(mine, theirs, strict=True))
    assert whole.rows_of(scale, batch) == brokerage.rows_of(scale, own)


@pytest.mark.parametrize("names", SETS, ids="+".join)
def test_the_tables_and_keys_are_those_of_all(names):
    def keys(name: str) -> set[tuple]:
        parts = ddl_of(find_workload(name).metadata)
        return {(item.table.fullname, str(item.name)) for item in (*parts.keys, *parts.foreign_keys)}

    whole = find_workload("+".join(names))
    assert keys(whole.name) == set().union(*map(keys, names))
    assert deploy.schemas_of(whole.metadata) == sorted(names)
    assert [part.name for part in whole.parts] == names
    for dialect in ("mssql", "postgresql"):
        assert all(find_workload(name).procedures(dialect) in whole.procedures(dialect) for name in names)


def test_a_name_is_in_order_and_names_each_once():
    assert known_name("mail+bank") == "bank+mail" and known_name("bank") == "bank"
    with pytest.raises(StallmarkError, match="twice"):
        known_name("bank+bank")
    with pytest.raises(StallmarkError, match="'bnak' is no workload"):
        known_name("mail+bnak")


def test_more_cells_have_more_data_where_these_are_their_own():
    assert find_workload("mail").for_cells({"mailboxes": 20, "messages": 100}, 3) == {"mailboxes": 60, "messages": 100}
    assert find_workload("warehouse").for_cells({"factor": 1}, 3) == {"factor": 1}
