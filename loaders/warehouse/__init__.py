"""The warehouse's rows: byte for byte what TPC-H's own generator makes, out of `tpchgen-cli`.

That generator takes a scale factor and no seed: there is one warehouse of each size, whatever the seed of a scenario,
which decides the parameters of queries alone. A batch is a part of a table as the generator cuts it: a range of keys.
Its start costs a second of CPU (for its text pool), like 700,000 rows. So all loader processes share one generator, and
batches come in the order in which it makes them.
"""

import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from stallmark.errors import StallmarkError, as_reason
from stallmark.loaders import Batch, Loader, Piece, Scale, Supply, TableGroup
from stallmark.processes import exit_clause, hang_up, write_order
from stallmark.redact import environment
from stallmark.schema import warehouse
from stallmark.schema.draw import Ints
from stallmark.schema.warehouse import GENERATOR, find_generator, order_keys

# `tpchgen-cli`: where it is, and parts of its tables as files that are gone afterwards.

VARIED = {
    "supplier": ("s_suppkey", "s_name", "s_address", "s_phone", "s_acctbal", "s_comment"),
    "part": ("p_partkey", "p_name", "p_comment"),
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_supplycost", "ps_comment"),
    "customer": ("c_custkey", "c_name", "c_address", "c_phone", "c_acctbal", "c_comment"),
    "orders": ("o_orderkey", "o_custkey", "o_totalprice", "o_clerk", "o_comment"),
    "lineitem": ("l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_comment"),
}
"""The columns in which barely a value repeats, by table: a dictionary of theirs would be larger than they are."""

PART_BYTES = 60_000_000
"""No less than the largest file of a part takes: 52.7 MB, of lineitems."""
AHEAD = 2
"""Number of parts made in advance, in addition to two for each loader process."""
LOOK_EVERY_S = 0.01


class Begun(msgspec.Struct):
    """The folder of the files, as the guard reports it."""

    folder: str


class Ended(msgspec.Struct):
    """The end of the generator, as the guard reports it."""

    code: int
    stderr: str


Answer = TypeVar("Answer", Begun, Ended)


class Part(NamedTuple):
    """A part of a table, by its number from 1."""

    table: str
    number: int


def command() -> str:
    """Return the path of the generator. Raise StallmarkError if it is missing."""
    path = find_generator()
    if path is None:
        raise StallmarkError(
            f"The warehouse's data comes out of {GENERATOR}, which is not installed: "
            "pip install 'stallmark[warehouse]', then build again."
        )
    return path


@contextmanager
def making(factor: float, wanted: Collection[Part], parts: int, workers: int) -> Iterator[tuple[Path, Iterator[Part]]]:
    """Yield a temporary folder, and the wanted parts of tables in the order in which their files (`file_of`) are there.

    Each table has `parts` parts. The reader of a file removes it: the generator waits while there are more files than
    `workers` processes can read. The folder is removed on exit, and by `guard` if this process is killed. The iterator
    raises StallmarkError with the generator's message.
    """
    order = {"commands": _commands(factor, wanted, parts, workers), "most_bytes": PART_BYTES * (2 * workers + AHEAD)}
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),  # without secrets, which are none of its business
    )
    lines: SimpleQueue[str] = SimpleQueue()
    listener = threading.Thread(target=_listen, args=[guard, lines], daemon=True)
    assert guard.stdin
    with guard:
        listener.start()
        try:
            write_order(guard.stdin, json.dumps(order) + "\n")
            folder = Path(_answer(guard, lines, Begun).folder)
            yield folder, _as_they_are_made(guard, lines, folder, set(wanted))
        finally:
            hang_up(guard.stdin)  # ends the generator
            listener.join()


def file_of(folder: Path, part: Part) -> Path:
    """Return the Parquet file of a part."""
    return folder / part.table / f"{part.table}.{part.number}.parquet"


def _commands(factor: float, wanted: Collection[Part], parts: int, workers: int) -> list[list[str]]:
    """Return the generator's commands: one for all parts, or one for each number that is wanted.

    A start costs a second of CPU, and a part of all tables at most as much. So a command for all, with a thread for
    each loader process, may be quicker though it makes parts in vain.
    """
    by_number: dict[int, list[str]] = defaultdict(list)
    for part in sorted(wanted):
        by_number[part.number].append(part.table)
    if 2 * len(by_number) * workers >= parts:
        tables = sorted({part.table for part in wanted})
        return [[*_command(factor, parts, tables), f"--num-threads={workers}"]]
    return [
        [*_command(factor, parts, tables), "--num-threads=1", f"--part={number}"]
        for number, tables in by_number.items()
    ]


def _command(factor: float, parts: int, tables: Sequence[str]) -> list[str]:
    order = [command(), "parquet", f"--scale-factor={factor:g}", f"--parts={parts}", "--quiet"]
    # Read once, at once, and gone: not compressed.
    order += [f"--tables={','.join(tables)}", "--compression=UNCOMPRESSED", "--row-group-bytes=64MB"]
    if plain := [f"{column}=PLAIN" for table in tables for column in VARIED.get(table, ())]:
        order.append(f"--column-encoding={','.join(plain)}")
    return order


def _as_they_are_made(
    guard: subprocess.Popen, lines: "SimpleQueue[str]", folder: Path, missing: set[Part]
) -> Iterator[Part]:
    wanted = frozenset(missing)
    while missing:
        has_ended = not lines.empty()
        for file in folder.glob("*/*.parquet"):
            part = Part(file.parent.name, int(file.stem.rpartition(".")[2]))
            if part in missing:
                missing.remove(part)
                yield part
            elif part not in wanted:
                file.unlink()
        if missing and has_ended:
            ended = _answer(guard, lines, Ended)
            message = " ".join(ended.stderr.split()) or f"it {exit_clause(ended.code)}"
            raise StallmarkError(f"{GENERATOR} made no {min(missing).table}: {as_reason(message)}.")
        if missing:
            time.sleep(LOOK_EVERY_S)


def _answer(guard: subprocess.Popen, lines: "SimpleQueue[str]", kind: type[Answer]) -> Answer:
    if line := lines.get():
        return msgspec.json.decode(line, type=kind)
    raise StallmarkError(f"The guard of {GENERATOR} {exit_clause(guard.wait())}: build again.")


def _listen(guard: subprocess.Popen, lines: "SimpleQueue[str]") -> None:
    assert guard.stdout
    for line in guard.stdout:
        lines.put(line)
    lines.put("")


PIECE_ROWS = 100_000
ORDERS_OF_A_BATCH = 187_500
"""All tables are cut into as many parts. Of lineitems a part is 750,000 rows in a file of 53 MB: in larger ones the
server waits the longer for the first."""

# Of each table with keys from 1: the key, and how many there are at 1.
_KEYS = {
    "supplier": ("s_suppkey", warehouse.SUPPLIERS),
    "part": ("p_partkey", warehouse.PARTS),
    "partsupp": ("ps_partkey", warehouse.PARTS),
    "customer": ("c_custkey", warehouse.CUSTOMERS),
    "orders": ("o_orderkey", warehouse.ORDERS),
    "lineitem": ("l_orderkey", warehouse.ORDERS),
}
_NAME = "warehouse"
_OURS = "refresh"
"""The table that the generator does not make."""


class WarehouseLoader(Loader):
    example = "factor=1"
    measures: ClassVar = ("factor",)
    seeded: ClassVar = False

    def scale(self, given: Scale) -> dict[str, Any]:
        if unknown := set(given) - set(self.measures):
            raise StallmarkError(f"The warehouse's scale has no {sorted(unknown)[0]!r}: it is `factor: F`.")
        factor = given.get("factor")
        if type(factor) not in (int, float) or factor not in warehouse.FACTORS:
            allowed = ", ".join(f"{allowed_factor:g}" for allowed_factor in warehouse.FACTORS[:-1])
            raise StallmarkError(
                f"The warehouse's scale factor is {allowed} or {warehouse.FACTORS[-1]} (about 2 GB of disk for each 1; "
                f"below 1 it is for trying out), not {'nothing' if factor is None else repr(factor)}: "
                "write `factor: 1`."
            )
        return {"factor": next(allowed for allowed in warehouse.FACTORS if allowed == factor)}

    def ready(self) -> None:
        command()

    def groups(self, scale: Scale) -> list[TableGroup]:
        parts = _parts(scale["factor"])
        return [
            TableGroup(table, parts if table in _KEYS else 1, {f"warehouse.{table}": count})
            for table, count in warehouse.rows(scale["factor"]).items()
        ]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        table = f"warehouse.{batch.group}"
        if batch.group not in _KEYS:
            return {table: "1 = 1"}
        key, of_one = _KEYS[batch.group]
        places = _places(scale["factor"], batch, of_one)
        first, last = (order_keys(places, 0) if of_one == warehouse.ORDERS else places).tolist()
        return {table: f"{key} BETWEEN {first} AND {last}"}

    @contextmanager
    def supply(self, scale: Scale, batches: Sequence[Batch], workers: int) -> Iterator[Supply]:
        ours = [batch for batch in batches if batch.group == _OURS]
        wanted = [Part(batch.group, batch.number + 1) for batch in batches if batch.group != _OURS]
        if not wanted:
            yield Supply(iter(ours))
            return
        with making(scale["factor"], wanted, _parts(scale["factor"]), workers) as (folder, made):
            yield Supply(chain(ours, (Batch(part.table, part.number - 1) for part in made)), {_NAME: str(folder)})

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        with self.supply(scale, [batch], 1) as supply:
            for record_batch in supply.batches:
                yield from self.supplied(supply.folders, seed, scale, record_batch)

    def supplied(self, folders: Mapping[str, str], seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        table = f"warehouse.{batch.group}"
        if batch.group == _OURS:
            none = pa.table({"refresh_set": pa.array([0], pa.int32()), "inserted": [True], "deleted": [True]})
            yield table, none
            return
        file = file_of(Path(folders[_NAME]), Part(batch.group, batch.number + 1))
        try:
            for piece in _pieces(file):
                yield table, piece
        finally:  # also where somebody else has loaded the batch: what is not read holds the generator up
            file.unlink(missing_ok=True)


def _parts(factor: float) -> int:
    """Return the number of batches."""
    return -(-warehouse.count(factor, warehouse.ORDERS) // ORDERS_OF_A_BATCH)


def _places(factor: float, batch: Batch, of_one: int) -> Ints:
    """Return the numbers of the first and the last row in a batch, from 1: the generator's parts are of one size, and
    the last has what is left over."""
    total, parts = warehouse.count(factor, of_one), _parts(factor)
    first = batch.number * (total // parts)
    last = total if batch.number == parts - 1 else first + total // parts
    return np.array([first + 1, last])


def _pieces(file: Path) -> Iterator[pa.Table]:
    with parquet.ParquetFile(file) as opened:
        schema = pa.schema([pa.field(field.name, _written(field)) for field in opened.schema_arrow])
        for rows in opened.iter_batches(PIECE_ROWS, use_threads=False):
            yield pa.Table.from_batches([rows]).cast(schema)


def _written(field: pa.Field) -> pa.DataType:
    """Return the type of the schema for that of the generator: all of its keys are large, and ours are those
    of orders."""
    if pa.types.is_string_view(field.type):
        return pa.string()
    if pa.types.is_int64(field.type) and not field.name.endswith("orderkey"):
        return pa.int32()
    return field.type


LOADER = WarehouseLoader()
