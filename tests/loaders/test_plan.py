"""Batches cover every row once, parts every batch once."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.loaders.plan import Batch, BatchShare, LoadPlan, TableGroup, rows_of_batch

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
