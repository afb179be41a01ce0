"""The bank's rows: every balance starts at zero, as TPC-B has it; fillers are generated text."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, Filler, Loader, Piece, Scale, TableGroup, rows_of_batch
from stallmark.schema.bank import ACCOUNTS_PER_BRANCH, MOST_BRANCHES, TELLERS_PER_BRANCH

BATCH_ROWS = 100_000


class BankLoader(Loader):
    example = "branches=10"
    measures: ClassVar = ("branches",)

    def scale(self, given: Scale) -> dict[str, Any]:
        if unknown := set(given) - set(self.measures):
            raise StallmarkError(f"The bank's scale has no {sorted(unknown)[0]!r}: it is `branches: N`.")
        branches = given.get("branches")
        if type(branches) is not int or not 1 <= branches <= MOST_BRANCHES:
            raise StallmarkError(
                f"The bank's scale is a number of branches from 1 to {MOST_BRANCHES:,} "
                f"(about 16 MB each), not {'nothing' if branches is None else repr(branches)}: write `branches: 10`."
            )
        return {"branches": branches}

    def groups(self, scale: Scale) -> list[TableGroup]:
        rows = {name: scale["branches"] * per_branch for name, (per_branch, _) in _TABLES.items()}
        return [TableGroup(name, -(-count // BATCH_ROWS), {f"bank.{name}": count}) for name, count in rows.items()]

    def rows_of(self, scale: Scale, batch: Batch) -> dict[str, str]:
        per_branch, _ = _TABLES[batch.group]
        first, count = rows_of_batch(scale["branches"] * per_branch, BATCH_ROWS, batch.number)
        return {f"bank.{batch.group}": f"{_KEYS[batch.group]} BETWEEN {first + 1} AND {first + count}"}

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        per_branch, make = _TABLES[batch.group]
        first, count = rows_of_batch(scale["branches"] * per_branch, BATCH_ROWS, batch.number)
        yield f"bank.{batch.group}", make(seed, first, count)


def branches(seed: int, first: int, rows: int) -> pa.Table:
    """Return `rows` branches from row number `first`, counted from 0."""
    return pa.table(
        {"bid": _numbers(first, rows), "bbalance": _zeros(rows), "filler": _filler(seed, 88).column(first, rows)}
    )


def tellers(seed: int, first: int, rows: int) -> pa.Table:
    return pa.table(
        {
            "tid": _numbers(first, rows),
            "bid": _branch_of(first, rows, TELLERS_PER_BRANCH),
            "tbalance": _zeros(rows),
            "filler": _filler(seed + 1, 84).column(first, rows),
        }
    )


def accounts(seed: int, first: int, rows: int) -> pa.Table:
    return pa.table(
        {
            "aid": _numbers(first, rows),
            "bid": _branch_of(first, rows, ACCOUNTS_PER_BRANCH),
            "abalance": _zeros(rows),
            "filler": _filler(seed + 2, 84).column(first, rows),
        }
    )


Maker = Callable[[int, int, int], pa.Table]
# Rows per branch, and who makes them. The history starts empty.
_TABLES: Mapping[str, tuple[int, Maker]] = {
    "accounts": (ACCOUNTS_PER_BRANCH, accounts),
    "tellers": (TELLERS_PER_BRANCH, tellers),
    "branches": (1, branches),
}

_KEYS = {"accounts": "aid", "tellers": "tid", "branches": "bid"}

_filler = lru_cache(Filler)


def _numbers(first: int, rows: int) -> np.ndarray:
    return np.arange(first + 1, first + rows + 1, dtype=np.int32)


def _branch_of(first: int, rows: int, per_branch: int) -> np.ndarray:
    return np.arange(first, first + rows, dtype=np.int32) // np.int32(per_branch) + np.int32(1)


def _zeros(rows: int) -> np.ndarray:
    return np.zeros(rows, np.int32)


LOADER = BankLoader()
