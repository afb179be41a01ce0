"""The mail store's rows: batches that are what the plan says, totals that are those of the messages."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, LoadPlan
from stallmark.loaders.mail import LOADER, _parts
from stallmark.schema.draw import Ints
from stallmark.schema.mail import FOLDERS, MEAN_BYTES
from stallmark.schema.mail.tables import METADATA

SEEDS = st.integers(0, 2**62)


def rows_of(seed: int, scale: dict, number: int) -> dict[str, pa.Table]:
    pieces: dict[str, list[pa.Table]] = {}
    for table, piece in LOADER.batch(seed, scale, Batch("mailboxes", number)):
        pieces.setdefault(table, []).append(piece)
    return {table: pa.concat_tables(found) for table, found in pieces.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("given", [{"mailboxes": 1, "messages": 10}, {"mailboxes": 90, "messages": 100}])
def test_batches_hold_what_the_plan_says(given: dict) -> None:
    scale = LOADER.scale(given)
    plan = LoadPlan(LOADER.groups(scale))
    numbers: list[int] = []
    rows: Counter[str] = Counter()
    for batch in plan.batches():
        tables = rows_of(3, scale, batch.number)
        assert tables.keys() == LOADER.rows_of(scale, batch).keys() == set(METADATA.tables)
        for table, found in tables.items():
            assert found.column_names == [column.name for column in METADATA.tables[table].columns]
            rows[table] += found.num_rows
        mailboxes = tables["mail.mailbox"]["mb_id"].to_pylist()
        assert LOADER.rows_of(scale, batch)["mail.body"] == f"bo_mb_id BETWEEN {mailboxes[0]} AND {mailboxes[-1]}"
        assert set(tables["mail.body"]["bo_mb_id"].to_pylist()) == set(mailboxes)
        numbers += mailboxes
    assert rows == plan.rows
    assert numbers == list(range(1, scale["mailboxes"] + 1))


@settings(max_examples=5)
@given(seed=SEEDS)
def test_totals_are_those_of_the_messages(seed: int) -> None:
    tables = rows_of(seed, LOADER.scale({"mailboxes": 2, "messages": 30}), 0)
    totals: Counter[tuple] = Counter()
    messages = tables["mail.message"].to_pylist()
    for one in messages:
        folder = one["me_mb_id"], one["me_fo_id"]
        totals[*folder, "messages"] += 1
        totals[*folder, "unread"] += not one["me_read"]
        totals[*folder, "bytes"] += one["me_bytes"]
    for folder in tables["mail.folder"].to_pylist():
        for total in ("messages", "unread", "bytes"):
            assert folder[f"fo_{total}"] == totals[folder["fo_mb_id"], folder["fo_id"], total]
        assert folder["fo_name"] == FOLDERS[folder["fo_id"] - 1]
    bodies = tables["mail.body"].to_pylist()
    assert [(one["bo_mb_id"], one["bo_me_id"], len(one["bo_text"])) for one in bodies] == [
        (one["me_mb_id"], one["me_id"], one["me_bytes"]) for one in messages
    ]
    received = [one["me_received"] for one in messages if one["me_mb_id"] == 1]
    assert received == sorted(received) and {moment.year for moment in received} == {2025}


@settings(max_examples=5)
@given(seed=SEEDS)
def test_a_mailbox_does_not_depend_on_the_scale(seed: int) -> None:
    """So several machines may load parts, and a larger store begins with a smaller one."""
    small, large = (rows_of(seed, LOADER.scale({"mailboxes": n, "messages": 20}), 0) for n in (1, 4))
    for table, rows in small.items():
        assert large[table].slice(0, rows.num_rows).to_pylist() == rows.to_pylist()


def test_the_seed_decides() -> None:
    scale = LOADER.scale({"mailboxes": 1, "messages": 20})
    one, again, other = (rows_of(seed, scale, 0)["mail.body"] for seed in (1, 1, 2))
    assert one.equals(again)
    assert not set(one["bo_text"].to_pylist()) & set(other["bo_text"].to_pylist())


@given(lengths=st.lists(st.integers(1, 20_000_000), min_size=1, max_size=50))
def test_pieces_are_no_larger_than_memory_takes(lengths: list[int]) -> None:
    import numpy as np

    sizes: Ints = np.array(lengths)
    parts = list(_parts(sizes))
    assert [one for part in parts for one in sizes[part].tolist()] == lengths
    assert all(sizes[part][:-1].sum() < 16_000_000 for part in parts)


def test_a_batch_is_of_one_size_whatever_the_mailboxes_have() -> None:
    for messages in (10, 200, 5_000):
        scale = LOADER.scale({"mailboxes": 10_000, "messages": messages})
        [group] = LOADER.groups(scale)
        most = max(64_000_000, messages * MEAN_BYTES)
        assert 10_000 * messages * MEAN_BYTES / group.batches == pytest.approx(most, rel=0.2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mailboxes": 0}, "Mail is scaled by mailboxes, .* not 0: write `mailboxes: 200`"),
        ({"mailboxes": True}, "not True"),
        ({"mailboxes": 1.5}, r"not 1\.5"),
        ({"messages": 9}, "Each mailbox is loaded with messages, a whole number from 10 to 30,000, not 9"),
        ({"messages": "many"}, "not 'many'"),
        ({"compressibility": 5}, r"compressible from 1\.3 to 4 to one, not 5: write `compressibility: 2`"),
        ({"branches": 1}, "The scale of mail has no 'branches': it is `mailboxes: N, messages: M`"),
    ],
)
def test_an_impossible_scale_is_refused(given: dict, said: str) -> None:
    with pytest.raises(StallmarkError, match=said):
        LOADER.scale(given)
