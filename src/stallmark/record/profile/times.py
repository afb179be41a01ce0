"""A check of the times that are read from a profile: its hours and minutes take memory, each of them."""

import numpy as np
import pyarrow as pa

LONGEST_S = 3660 * 86_400.0
"""No profile is of more than ten years."""


def wrong_times(table: pa.Table, *columns: str) -> str | None:
    """Return what is wrong with columns of times, or of seconds since 1970; None where nothing is."""
    if why := wrong_numbers(table, *columns):
        return why
    seconds = [_seconds(table[name]) for name in columns]
    if table.num_rows and not max(map(np.max, seconds)) - min(map(np.min, seconds)) <= LONGEST_S:
        return "its times are more than ten years apart"
    return None


def wrong_numbers(table: pa.Table, *columns: str) -> str | None:
    """Return which column lacks a value; None where none does."""
    return next((f"its column {name} has rows without a value" for name in columns if table[name].null_count), None)


def _seconds(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_numpy() / 1e6
    return column.to_numpy()
