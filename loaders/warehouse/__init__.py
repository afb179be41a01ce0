"""The warehouse's rows: byte for byte what TPC-H's own generator makes, out of `tpchgen-cli`.

That generator takes a scale factor and no seed: there is one warehouse of each size, whatever the seed of a scenario,
which decides the parameters of queries alone. A batch is a part of the generator's own: a range of keys of several
tables. It starts once for each, which costs it about a second of CPU (its stock of text), so batches are large; their
pieces are not.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from stallmark.driver.engines.errors import StallmarkError
from stallmark.loaders.plan import Batch, Group, Loader, Piece, Scale
from stallmark.loaders.warehouse import generator
from stallmark.schema import warehouse_scale as sizes
from stallmark.schema.arrays import Ints
from stallmark.schema.warehouse_refresh import order_keys

PIECE_ROWS = 100_000
ORDERS_OF_A_BATCH = 300_000  # and four times as many lineitems: five batches at 1, 250 MB of rows each

# Of each table with keys from 1: the key, and how many there are at 1.
_DIMENSIONS = {
    "supplier": ("s_suppkey", sizes.SUPPLIERS),
    "part": ("p_partkey", sizes.PARTS),
    "partsupp": ("ps_partkey", sizes.PARTS),
    "customer": ("c_custkey", sizes.CUSTOMERS),
}
_FIXED = ("region", "nation")
_ORDERS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


class WarehouseLoader(Loader):
    example = "factor=1"
    seeded: ClassVar = False

    def scale(self, given: Scale) -> dict[str, Any]:
        if unknown := set(given) - {"factor"}:
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

    def groups(self, scale: Scale) -> list[Group]:
        rows = {f"warehouse.{table}": count for table, count in sizes.rows(scale["factor"]).items()}
        orders = {f"warehouse.{table}": rows.pop(f"warehouse.{table}") for table in _ORDERS}
        parts = {group: _parts(scale["factor"], group) for group in ("dimensions", "orders")}
        return [Group("dimensions", parts["dimensions"], rows), Group("orders", parts["orders"], orders)]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        factor = scale["factor"]
        if batch.group == "orders":
            first, last = order_keys(_places(factor, batch, sizes.ORDERS), 0).tolist()
            return {
                f"warehouse.{table}": f"{key} BETWEEN {first} AND {last}" for table, key in _ORDERS.items()
            }
        ranges = {}
        for table, (key, of_one) in _DIMENSIONS.items():
            first, last = _places(factor, batch, of_one).tolist()
            ranges[f"warehouse.{table}"] = f"{key} BETWEEN {first} AND {last}"
        fixed = () if batch.number else (*_FIXED, "refresh")
        return ranges | {f"warehouse.{table}": "1 = 1" for table in fixed}

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        is_first = batch == Batch("dimensions", 0)
        tables = list(_ORDERS if batch.group == "orders" else _DIMENSIONS) + list(_FIXED if is_first else ())
        parts = _parts(scale["factor"], batch.group)
        with generator.generated(scale["factor"], tables, batch.number + 1, parts) as files:
            for table in tables:
                for piece in _pieces(files[table]):
                    yield f"warehouse.{table}", piece
        if is_first:
            yield (
                "warehouse.refresh",
                pa.table({"refresh_set": pa.array([0], pa.int32()), "inserted": [True], "deleted": [True]}),
            )


def _parts(factor: float, group: str) -> int:
    """How many batches a group has: above 1 the dimensions have one for each 1 of the factor."""
    if group == "orders":
        return -(-sizes.count(factor, sizes.ORDERS) // ORDERS_OF_A_BATCH)
    return max(1, int(factor))


def _places(factor: float, batch: Batch, of_one: int) -> Ints:
    """The numbers of the first and the last row in a batch, from 1: the generator's parts are of one size, and the
    last has what is left over."""
    total, parts = sizes.count(factor, of_one), _parts(factor, batch.group)
    first = batch.number * (total // parts)
    last = total if batch.number == parts - 1 else first + total // parts
    return np.array([first + 1, last])


def _pieces(file: Path) -> Iterator[pa.Table]:
    with parquet.ParquetFile(file) as opened:
        schema = pa.schema([pa.field(field.name, _written(field)) for field in opened.schema_arrow])
        for rows in opened.iter_batches(PIECE_ROWS, use_threads=False):
            yield pa.Table.from_batches([rows]).cast(schema)


def _written(field: pa.Field) -> pa.DataType:
    """The type of the schema for that of the generator: all of its keys are large, and ours are those of orders."""
    if pa.types.is_string_view(field.type):
        return pa.string()
    if pa.types.is_int64(field.type) and not field.name.endswith("orderkey"):
        return pa.int32()
    return field.type


LOADER = WarehouseLoader()
