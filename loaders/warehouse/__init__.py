"""The warehouse's rows: byte for byte what TPC-H's own generator makes, out of `tpchgen-cli`.

That generator takes a scale factor and no seed: there is one warehouse of each size, whatever the seed of a scenario,
which decides the parameters of queries alone. A batch is a part of a table as the generator cuts it: a range of keys.
Its start costs a second of CPU (its stock of text), as much as 700,000 rows: so there is one for all loader processes,
and batches come in the order in which it makes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from stallmark.errors import StallmarkError
from stallmark.loaders.plan import Batch, Loader, Piece, Scale, Supply, TableGroup
from stallmark.loaders.warehouse import generator
from stallmark.loaders.warehouse.generator import Part
from stallmark.schema.draw import Ints
from stallmark.schema.warehouse import scale as sizes
from stallmark.schema.warehouse.refresh import order_keys

PIECE_ROWS = 100_000
ORDERS_OF_A_BATCH = 187_500
"""All tables are cut into as many parts. Of lineitems a part is 750,000 rows in a file of 53 MB: in larger ones the
server waits the longer for the first."""

# Of each table with keys from 1: the key, and how many there are at 1.
_KEYS = {
    "supplier": ("s_suppkey", sizes.SUPPLIERS),
    "part": ("p_partkey", sizes.PARTS),
    "partsupp": ("ps_partkey", sizes.PARTS),
    "customer": ("c_custkey", sizes.CUSTOMERS),
    "orders": ("o_orderkey", sizes.ORDERS),
    "lineitem": ("l_orderkey", sizes.ORDERS),
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
        if type(factor) not in (int, float) or factor not in sizes.FACTORS:
            allowed = ", ".join(f"{one:g}" for one in sizes.FACTORS[:-1])
            raise StallmarkError(
                f"The warehouse's scale factor is {allowed} or {sizes.FACTORS[-1]} (about 2 GB of disk for each 1; "
                f"below 1 it is for trying out), not {'nothing' if factor is None else repr(factor)}: "
                "write `factor: 1`."
            )
        return {"factor": next(one for one in sizes.FACTORS if one == factor)}

    def ready(self) -> None:
        generator.command()

    def groups(self, scale: Scale) -> list[TableGroup]:
        parts = _parts(scale["factor"])
        return [
            TableGroup(table, parts if table in _KEYS else 1, {f"warehouse.{table}": count})
            for table, count in sizes.rows(scale["factor"]).items()
        ]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        table = f"warehouse.{batch.group}"
        if batch.group not in _KEYS:
            return {table: "1 = 1"}
        key, of_one = _KEYS[batch.group]
        places = _places(scale["factor"], batch, of_one)
        first, last = (order_keys(places, 0) if of_one == sizes.ORDERS else places).tolist()
        return {table: f"{key} BETWEEN {first} AND {last}"}

    @contextmanager
    def supply(self, scale: Scale, batches: Sequence[Batch], workers: int) -> Iterator[Supply]:
        ours = [batch for batch in batches if batch.group == _OURS]
        wanted = [Part(batch.group, batch.number + 1) for batch in batches if batch.group != _OURS]
        if not wanted:
            yield Supply(iter(ours))
            return
        with generator.making(scale["factor"], wanted, _parts(scale["factor"]), workers) as (folder, made):
            yield Supply(chain(ours, (Batch(part.table, part.number - 1) for part in made)), {_NAME: str(folder)})

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        with self.supply(scale, [batch], 1) as supply:
            for one in supply.batches:
                yield from self.supplied(supply.folders, seed, scale, one)

    def supplied(self, folders: Mapping[str, str], seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        table = f"warehouse.{batch.group}"
        if batch.group == _OURS:
            none = pa.table({"refresh_set": pa.array([0], pa.int32()), "inserted": [True], "deleted": [True]})
            yield table, none
            return
        file = generator.file_of(Path(folders[_NAME]), Part(batch.group, batch.number + 1))
        try:
            for piece in _pieces(file):
                yield table, piece
        finally:  # also where somebody else has loaded the batch: what is not read holds the generator up
            file.unlink(missing_ok=True)


def _parts(factor: float) -> int:
    """Return the number of batches."""
    return -(-sizes.count(factor, sizes.ORDERS) // ORDERS_OF_A_BATCH)


def _places(factor: float, batch: Batch, of_one: int) -> Ints:
    """Return the numbers of the first and the last row in a batch, from 1: the generator's parts are of one size, and
    the last has what is left over."""
    total, parts = sizes.count(factor, of_one), _parts(factor)
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
