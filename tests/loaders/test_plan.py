"""Batches cover every row once, parts every batch once."""

import subprocess
import sys
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, BatchShare, LoadPlan, TableGroup, loader_for, rows_of_batch
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of
from stallmark.transactions import WORKLOADS, find_workload, known_name

GROUPS = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(
    lambda sizes: [TableGroup(f"g{k}", size, {f"t{k}": size * 7}) for k, size in enumerate(sizes)]
)


@given(groups=GROUPS, n=st.integers(1, 9))
def test_parts_are_disjoint_and_complete(groups: list[TableGroup], n: int) -> None:
    plan = LoadPlan(groups)
    if n > (most := len(plan.batches())):
        with pytest.raises(StallmarkError, match=rf"--part {n}/{n} is a share of nothing: there are {most} batches"):
            plan.batches(BatchShare(n, n))
        return
    parts = [plan.batches(BatchShare(k, n)) for k in range(1, n + 1)]
    together = [batch for part in parts for batch in part]
    assert len(together) == len(set(together)) == sum(group.batches for group in groups)
    assert set(together) == set(plan.batches())
    for group in (*(group.name for group in groups), None):
        counts = [sum(group in (None, batch.group) for batch in part) for part in parts]
        assert max(counts) - min(counts) <= 1


@given(total=st.integers(0, 10_000), batch_rows=st.integers(1, 999))
def test_batches_cover_every_row_once(total: int, batch_rows: int) -> None:
    batches = [rows_of_batch(total, batch_rows, k) for k in range(-(-total // batch_rows))]
    covered = [row for first, count in batches for row in range(first, first + count)]
    assert covered == list(range(total))


def test_part_is_read_or_refused() -> None:
    assert BatchShare.parse(" 3/8 ") == BatchShare(3, 8)
    for wrong in ("0/3", "4/3", "3", "a/b", "-1/3", "1/0", ""):
        with pytest.raises(StallmarkError, match=r"write k/n.*3/8"):
            BatchShare.parse(wrong)


def test_rows_of_a_group_with_several_tables() -> None:
    plan = LoadPlan([TableGroup("trade", 2, {"trade": 5, "history": 12}), TableGroup("broker", 1, {"broker": 3})])
    assert plan.rows == {"trade": 5, "history": 12, "broker": 3}
    assert plan.batches() == [Batch("trade", 0), Batch("broker", 0), Batch("trade", 1)]


@given(groups=GROUPS)
def test_groups_go_on_side_by_side(groups: list[TableGroup]) -> None:
    plan = LoadPlan(groups)
    batches = plan.batches()
    assert plan.rows_in(batches) == sum(plan.rows.values())
    for upto in range(len(batches)):
        for group in groups:
            begun = sum(batch.group == group.name for batch in batches[:upto])
            assert abs(begun - group.batches * upto / len(batches)) <= len(groups)


def test_a_loader_process_starts_without_sqlalchemy() -> None:
    program = (
        "import sys, stallmark.loaders.worker, stallmark.loaders.bank\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('sqlalchemy', 'gevent', 'locust')])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


# Several workloads in one database: the batches, tables and conditions of all, and nothing mixed up


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
        own = LoadPlan(part.groups(part.select_scale(scale)))
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
    mine, theirs = list(whole.batch(7, scale, batch)), list(brokerage.batch(7, brokerage.select_scale(scale), own))
    assert [name for name, _ in mine] == [name for name, _ in theirs]
    assert all(a.equals(b) for (_, a), (_, b) in zip(mine, theirs, strict=True))
    assert whole.rows_of(scale, batch) == brokerage.rows_of(scale, own)


@pytest.mark.thorough
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
    with pytest.raises(StallmarkError, match="'bnak' is not a workload"):
        known_name("mail+bnak")


def test_more_cells_have_more_data_where_these_are_their_own():
    assert find_workload("mail").for_cells({"mailboxes": 20, "messages": 100}, 3) == {"mailboxes": 60, "messages": 100}
    assert find_workload("warehouse").for_cells({"factor": 1}, 3) == {"factor": 1}
