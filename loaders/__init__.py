"""Fill the tables: pure batch generators, the load plan, and the ledger that makes a load resumable.

Here is the plan of a load: the loaders of one workload or several, tables in batches, and filler of their rows.
"""

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stallmark.errors import StallmarkError, WrongOption
from stallmark.schema import parts_of
from stallmark.schema.draw import hashed

if TYPE_CHECKING:
    from sqlalchemy import MetaData

    from stallmark.schema.size import Estimate


# The plan of a load: groups of tables in batches, and the rows of each batch.
#
# A loader's batch is a pure function of (seed, scale, group, batch number). So any process on any machine may
# make any batch in any order, and a load that stopped needs nothing but the list of batches that are in.

LARGEST_SEED = 2**63 - 1 - 1000  # signed in the identity row, with room for a loader's own streams beside it

Scale = Mapping[str, Any]
Piece = tuple[str, pa.Table]
"""Rows of a table by its full name."""


@dataclass(frozen=True)
class TableGroup:
    """Tables that are generated together."""

    name: str
    batches: int
    rows: Mapping[str, int]
    """The rows of each table over all batches, exact or expected."""
    article_bytes: Mapping[str, int] = field(default_factory=dict)
    """The mean length of a table's articles, if it depends on the scale."""


class Batch(NamedTuple):
    group: str
    number: int


@dataclass(frozen=True)
class Supply:
    """Batches for the loader processes of a machine, in the order in which they can have them. `folders` hold what was
    made for all of these processes together, by workload."""

    batches: Iterator[Batch]
    folders: Mapping[str, str] = field(default_factory=dict)


class Loader(ABC):
    """The generator of one workload's data; a module `loaders/<workload>` holds it as `LOADER`."""

    example: ClassVar[str]
    """A scale as it is written on the command line."""

    measures: ClassVar[tuple[str, ...]]
    """The measures that its scale may name."""

    seeded: ClassVar[bool] = True
    """True if the seed decides the data. If not, a database is the same for every seed."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the parameters other than scale and seed that determine the data: part of a database's identity."""
        return {}

    @abstractmethod
    def scale(self, given: Scale) -> dict[str, Any]:
        """Return the complete scale; raise StallmarkError if it is invalid."""

    def select_scale(self, scale: Scale) -> dict[str, Any]:
        """Return this workload's part of a scale of several workloads."""
        return {name: value for name, value in scale.items() if name in self.measures}

    def ready(self) -> None:
        """Prepare a build; raise StallmarkError if something is missing that the loader needs for batches."""

    @abstractmethod
    def groups(self, scale: Scale) -> Sequence[TableGroup]: ...

    @abstractmethod
    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        """Return the SQL condition that selects exactly the rows of this batch, by table, for a heap without keys."""

    @abstractmethod
    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        """Yield the rows of a batch as (table, rows) pieces, small enough that one at a time fits in memory."""

    @contextmanager
    def supply(self, scale: Scale, batches: Sequence[Batch], workers: int) -> Iterator[Supply]:
        """Yield the supply of batches for `workers` loader processes. Its temporary files are removed on exit."""
        yield Supply(iter(batches))

    def supplied(self, folders: Mapping[str, str], seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        """Yield the rows of a batch of a supply, once."""
        return self.batch(seed, scale, batch)


@dataclass(frozen=True)
class BatchShare:
    """A share of the batches, for one of several machines: number `k` of `n`, counted from 1."""

    k: int
    n: int

    @classmethod
    def parse(cls, text: str) -> "BatchShare":
        match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        part = cls(int(match[1]), int(match[2])) if match else None
        if part is None or not 1 <= part.k <= part.n:
            raise WrongOption(f"{text} is not a share: write k/n with 1 ≤ k ≤ n, for instance 3/8")
        return part

    def share_of(self, batches: int) -> "BatchShare | None":
        """Return the share of `batches` indivisible batches, or None if no batch is left for this share."""
        if self.n <= batches:
            return self
        return BatchShare(self.k, batches) if self.k <= batches else None

    def __str__(self) -> str:
        return f"{self.k}/{self.n}"


@dataclass(frozen=True)
class LoadPlan:
    groups: Sequence[TableGroup]

    @property
    def rows(self) -> dict[str, int]:
        """Return the rows of each table, over all groups that fill it."""
        total: Counter[str] = Counter()
        for group in self.groups:
            total.update(group.rows)
        return dict(total)

    @property
    def article_bytes(self) -> dict[str, int]:
        """Return the mean lengths of articles by table, if they depend on the scale."""
        return {table: length for group in self.groups for table, length in group.article_bytes.items()}

    def estimate(self, metadata: "MetaData", dialect: str, workers: int = 1) -> "Estimate":
        """Return the disk space of loaded tables; the keys of `workers` tables are built at the same time."""
        from stallmark.schema import size  # a loader process starts without SQLAlchemy

        tables = size.with_article_bytes(metadata, self.article_bytes)
        return size.estimate(tables, self.rows, dialect, workers=workers)

    def rows_in(self, batches: Iterable[Batch]) -> int:
        """Return the rows of some batches: of each the mean of its group."""
        mean = {group.name: sum(group.rows.values()) / group.batches for group in self.groups if group.batches}
        return round(sum(mean[batch.group] for batch in batches))

    def batches(self, part: BatchShare | None = None) -> list[Batch]:
        """Return the batches of a part, or all. Parts are disjoint, have as many batches of each group, or one more,
        and together they are the whole.

        All groups continue side by side: what is left is of the kind of what was loaded lately, and takes as long.

        Raises StallmarkError if there are more parts than batches.
        """
        everything = [Batch(group.name, number) for group in self.groups for number in range(group.batches)]
        if part and part.n > (most := len(everything)):
            raise WrongOption(
                f"--part {part} is a share of nothing: there are {most:,} batches to share out, so write k/n with n "
                f"up to {most}."
            )
        of_group = {group.name: group.batches for group in self.groups}
        share = everything[part.k - 1 :: part.n] if part else everything
        return sorted(share, key=lambda batch: batch.number / of_group[batch.group])


def checked_seed(seed: Any) -> int:
    """Return the seed if it can be one; else raise StallmarkError."""
    if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
        raise StallmarkError(f"The seed is a whole number from 0 to {LARGEST_SEED}, not {seed!r}.")
    return seed


def finite(given: Any) -> float | None:
    """Return a finite number, or None."""
    return float(given) if type(given) in (int, float) and math.isfinite(given) else None


def rows_of_batch(total: int, batch_rows: int, number: int) -> tuple[int, int]:
    """Return (first, count) of batch `number` when `total` rows are cut into batches of `batch_rows`."""
    first = number * batch_rows
    return first, max(0, min(batch_rows, total - first))


# Filler text: cheap to make, and about as compressible as a business database.
#
# Arrays and drives with inline compression would flatter a database of blanks. A filler is a row of words of
# 12 characters, each drawn from a pool of 256 that was itself drawn at random: words repeat within a page (what
# an LZ compressor finds), their letters do not. The target is 2:1 on 8 KiB pages with the fast compressors that
# arrays use inline. Measured on heap pages of bank.accounts: LZ4 1.9:1, zlib 2.5:1.
#
# Every word is a pure function of (key, row number, position): a row's text does not depend on its batch.

WORD = 12
POOL = 256
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-", np.uint8)


class Filler:
    """Generates columns of text of one width. `key` (any integer) decides pool and words."""

    def __init__(self, key: int, width: int):
        self._key = key
        self._width = width
        letters = hashed(key ^ 0x706F6F6C, np.arange(POOL * WORD, dtype=np.uint64)) >> np.uint64(58)
        self._pool = _ALPHABET[letters.astype(np.intp)].view(f"V{WORD}")

    def column(self, first: int, rows: int) -> pa.StringArray:
        """Return the texts of rows `first` … `first + rows - 1`."""
        words = -(-self._width // WORD)
        numbers = np.arange(first, first + rows, dtype=np.uint64)
        drawn = np.empty((rows, words), np.uint8)
        for start in range(0, words, 8):  # a hash gives eight bytes, each the number of a word
            eight = hashed(self._key + start, numbers).astype("<u8").view(np.uint8).reshape(rows, 8)
            drawn[:, start : start + 8] = eight[:, : words - start]
        text = self._pool.take(drawn).view(np.uint8).reshape(rows, words * WORD)
        return strings(np.ascontiguousarray(text[:, : self._width]))


def strings(text: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Return an Arrow column from ASCII text of shape (rows, width), without a copy."""
    rows, width = text.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))


def digits(numbers: npt.NDArray[np.int64], width: int) -> pa.StringArray:
    """Return the last `width` decimal digits of each number, with leading zeros."""
    places = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return strings((numbers[:, np.newaxis] // places % 10 + ord("0")).astype(np.uint8))


# The rows of several workloads, each as its own loader makes them.
class LoadersTogether(Loader):
    """Groups of the ledger are named after the loader that they are of: "warehouse/orders". A scale names the measures
    of all; what several of them know, as `compressibility`, is one for all."""

    def __init__(self, parts: Mapping[str, Loader]):
        self._parts = parts
        self.example = ",".join(part.example for part in parts.values())  # type: ignore[misc]
        self.measures = tuple(dict.fromkeys(name for part in parts.values() for name in part.measures))  # type: ignore[misc]
        self.seeded = any(part.seeded for part in parts.values())  # type: ignore[misc]

    @property
    def options(self) -> Mapping[str, Any]:
        return {name: value for part in self._parts.values() for name, value in part.options.items()}

    def scale(self, given: Scale) -> dict[str, Any]:
        if unknown := [name for name in given if name not in self.measures]:
            raise StallmarkError(
                f"{'+'.join(self._parts)} has no measure {unknown[0]!r}: there are {', '.join(self.measures)}."
            )
        scales = [part.scale(part.select_scale(given)) for part in self._parts.values()]
        return {name: value for scale in scales for name, value in scale.items()}

    def ready(self) -> None:
        for part in self._parts.values():
            part.ready()

    def groups(self, scale: Scale) -> list[TableGroup]:
        return [
            TableGroup(f"{name}/{group.name}", group.batches, group.rows, group.article_bytes)
            for name, part in self._parts.items()
            for group in part.groups(part.select_scale(scale))
        ]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        part, own = self._split_batch(batch)
        return part.rows_of(part.select_scale(scale), own)

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        part, own = self._split_batch(batch)
        return part.batch(seed, part.select_scale(scale), own)

    @contextmanager
    def supply(self, scale: Scale, batches: Sequence[Batch], workers: int) -> Iterator[Supply]:
        with ExitStack() as stack:
            supplies = {
                name: stack.enter_context(
                    part.supply(part.select_scale(scale), self._batches_of(name, batches), workers)
                )
                for name, part in self._parts.items()
            }
            yield Supply(
                (
                    Batch(f"{name}/{batch.group}", batch.number)
                    for name, supply in supplies.items()
                    for batch in supply.batches
                ),
                {where: folder for supply in supplies.values() for where, folder in supply.folders.items()},
            )

    def supplied(self, folders: Mapping[str, str], seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        part, own = self._split_batch(batch)
        return part.supplied(folders, seed, part.select_scale(scale), own)

    def _batches_of(self, name: str, batches: Sequence[Batch]) -> list[Batch]:
        return [self._split_batch(batch)[1] for batch in batches if batch.group.startswith(f"{name}/")]

    def _split_batch(self, batch: Batch) -> tuple[Loader, Batch]:
        """Return the loader that a batch is of, and how that one calls it."""
        part, _, group = batch.group.partition("/")
        return self._parts[part], Batch(group, batch.number)


class UserData(Loader):
    """The data of a user's workload, of which nothing is generated."""

    example = "(it has no scale)"
    measures = ()
    seeded = False

    def scale(self, given: Scale) -> dict[str, Any]:
        if given:
            raise StallmarkError("SQL of your own has no scale, because its data are yours: remove it.")
        return {}

    def groups(self, scale: Scale) -> Sequence[TableGroup]:
        return ()

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        return {}

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        yield from ()


def loader_for(workload: str) -> Loader:
    """Return the loader of a workload, or of several whose names are joined by "+" or ","."""
    if len(parts := parts_of(workload)) > 1:
        return LoadersTogether({part: loader_for(part) for part in parts})
    name = f"stallmark.loaders.{workload}"
    return import_module(name).LOADER if find_spec(name) else UserData()
