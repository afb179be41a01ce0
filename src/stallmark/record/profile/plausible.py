"""A check of the rows that are read from a profile: what names them is there, counts have bounds, times too.

Checksums find damage. A profile may also come from somebody else. What is refused here would end the analysis in the
middle, or fill the memory: each hour and each minute takes some.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from stallmark.record.profile.intervals import FileClass

LONGEST_S = 3660 * 86_400.0
"""No profile is of more than ten years."""
LATEST_S = 4_102_444_800.0
"""The end of the year 2099."""
_NEVER_NULL: Final = frozenset((
    "sample", "session", "server", "clock", "monotonic_s", "entity", "counter", "file_class", "wait_type",
    "wait_class", "users",
))  # fmt: skip


_CLASSES: Final = frozenset(FileClass)


def wrong_rows(table: pa.Table | pa.RecordBatch) -> str | None:
    """Return what is wrong with the rows of a table, or of a batch of it; None where nothing is."""
    for field in table.schema:
        values = table[field.name]
        if values.null_count and (field.name in _NEVER_NULL or pa.types.is_timestamp(field.type)):
            return f"its column {field.name} has rows without a value"
        if pa.types.is_floating(field.type) and not np.isfinite(values.drop_null().to_numpy()).all():
            return f"its column {field.name} has a value that is no finite number"
        if field.name == "file_class" and not _CLASSES.issuperset(values.unique().to_pylist()):
            return "its column file_class has a class that there is none of"
        if field.name == "sample" and (np.diff(values.to_numpy()) < 0).any():
            return "its samples are not in the order in which they were taken"
    seconds = [_seconds(table[field.name]) for field in table.schema if _is_time(field)]
    if seconds and table.num_rows:
        first, last = min(map(np.min, seconds)), max(map(np.max, seconds))
        if not 0 <= first <= last < LATEST_S:
            return "its times are before 1970 or after 2100"
        if last - first > LONGEST_S:
            return "its times are more than ten years apart"
    return None


def _is_time(field: pa.Field) -> bool:
    return field.name == "clock" or pa.types.is_timestamp(field.type)


def _seconds(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_numpy() / 1e6
    return column.to_numpy()
