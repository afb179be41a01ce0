"""The warehouse's rows: byte for byte what TPC-H's own generator makes, out of `tpchgen-cli`.

That generator takes a scale factor and no seed: there is one warehouse of each size, whatever the seed of a scenario,
which decides the parameters of queries alone. A batch is a part of the generator's own: a range of keys of every table.
It starts once for each, which costs it a second of CPU (its stock of text), as much as 700,000 rows: so batches are
large, and there are few; their pieces are not.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from stallmark.errors import StallmarkError
from stallmark.loaders.plan import Batch, Loader, Piece, Scale, TableGroup
from stallmark.loaders.warehouse import generator
from stallmark.schema.arrays import Ints
from stallmark.schema.warehouse import scale as sizes
from stallmark.schema.warehouse.refresh import order_keys

PIECE_ROWS = 100_000
# And all that goes with them: eight batches at 1, of 1.1 million rows and 150 MB each. Each costs one start of the
# generator, a second of CPU; in larger ones the server waits the longer for the first.
ORDERS_OF_A_BATCH = 187_500

# Of each table with keys from 1: the key, and how many there are at 1.
_KEYS = {
    "supplier": ("s_suppkey", sizes.SUPPLIERS),
    "part": ("p_partkey", sizes.PARTS),
    "partsupp": ("ps_partkey", sizes.PARTS),
    "customer": ("c_custkey", sizes.CUSTOMERS),
    "orders": ("o_orderkey", sizes.ORDERS),
    "lineitem": ("l_orderkey", sizes.ORDERS),
}
_FIXED = ("region", "nation")


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
        rows = {f"warehouse.{table}": count for table, count in sizes.rows(scale["factor"]).items()}
        return [TableGroup("all", _parts(scale["factor"]), rows)]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        ranges = {}
        for table, (key, of_one) in _KEYS.items():
            places = _places(scale["factor"], batch, of_one)
            first, last = (order_keys(places, 0) if of_one == sizes.ORDERS else places).tolist()
            ranges[f"warehouse.{table}"] = f"{key} BETWEEN {first} AND {last}"
        fixed = () if batch.number else (*_FIXED, "refresh")
        return ranges | {f"warehouse.{table}": "1 = 1" for table in fixed}

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        tables = [*_KEYS, *(() if batch.number else _FIXED)]
        parts = _parts(scale["factor"])
        with generator.generated(scale["factor"], tables, batch.number + 1, parts) as files:
            for table in tables:
                for piece in _pieces(files[table]):
                    yield f"warehouse.{table}", piece
        if not batch.number:
            yield (
                "warehouse.refresh",
                pa.table({"refresh_set": pa.array([0], pa.int32()), "inserted": [True], "deleted": [True]}),
            )


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
