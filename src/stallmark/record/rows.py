"""Rows on their way into a table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa


class Rows(Sequence[dict[str, Any]]):
    """Tuples whose column names are stored once. Indexing makes a new mapping for that row alone, which the caller may
    keep."""

    def __init__(self, names: Sequence[str], values: Sequence[Sequence[Any]]):
        self.names, self.values = names, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Rows(self.names, self.values[index])
        return dict(zip(self.names, self.values[index], strict=True))

    def with_constants(self, **constants: Any) -> "Rows":
        """Return the rows with columns before theirs that are the same in all."""
        values = tuple(constants.values())
        return Rows([*constants, *self.names], [(*values, *row) for row in self.values])


class Columns(Sequence[dict[str, Any]]):
    """Many rows, as an array for each column."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.arrays = arrays

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    def __getitem__(self, index: Any) -> Any:
        selected = {name: values[index] for name, values in self.arrays.items()}
        return Columns(selected) if isinstance(index, slice) else selected

    def with_constants(self, **constants: Any) -> "Columns":
        """Return the rows with columns before theirs that are the same in all."""
        return Columns({name: np.full(len(self), constant) for name, constant in constants.items()} | dict(self.arrays))


def batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows in the columns of a table. Values that a row lacks are missing."""
    # Arrays convert without a Python object for each value.
    if isinstance(rows, Columns):
        arrays = [pa.array(rows.arrays[field.name], from_pandas=False).cast(field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    values = rows.values if isinstance(rows, Rows) and rows.names == schema.names else list(rows)
    return pa.RecordBatch.from_struct_array(pa.array(values, pa.struct(schema)))
