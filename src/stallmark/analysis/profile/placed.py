"""The columns of a profile's tables, placed on one line of intervals: of files by class, and of the server."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.record.profile.intervals import FileClass, Intervals


class Placed:
    """The intervals (n) in which anything was seen: `start` and `end` in seconds since 1970, and the columns of their
    tables as arrays (n), NaN where a value is not known."""

    def __init__(self, intervals: Intervals):
        spans = pa.concat_tables([table.select(["start", "end"]) for table in (intervals.file_io, intervals.server)])
        self.start, first = np.unique(seconds_of(spans.column("start")), return_index=True)
        self.end = seconds_of(spans.column("end"))[first]
        self._server = intervals.server
        self._of_class = {
            name: intervals.file_io.filter(pc.equal(intervals.file_io.column("file_class"), name)) for name in FileClass
        }

    @property
    def seconds(self) -> np.ndarray:
        return self.end - self.start

    def has(self, name: FileClass) -> bool:
        return self._of_class[name].num_rows > 0

    def server(self, column: str) -> np.ndarray:
        """Return a column of the server."""
        return self._column(self._server, column)

    def of_class(self, name: FileClass, column: str) -> np.ndarray:
        """Return a column of a class of file."""
        return self._column(self._of_class[name], column)

    def log(self, column: str, of_server: str) -> np.ndarray:
        """Return a column of the log's files; that `of_server`, where the files do not tell."""
        found = self.of_class(FileClass.LOG, column)
        return found if is_known(found) else self.server(of_server)

    def total(self, *columns: str, without: FileClass | None = None) -> np.ndarray:
        """Return the sum of columns over the classes of file, NaN where a part is; a part that is never known is left
        out."""
        classes = [name for name in FileClass if name is not without and self.has(name)]
        known = [one for name in classes for column in columns if is_known(one := self.of_class(name, column))]
        return np.sum(known, axis=0) if known else np.full(len(self.start), np.nan)

    def _column(self, rows: pa.Table, column: str) -> np.ndarray:
        found = np.full(len(self.start), np.nan)
        places = np.searchsorted(self.start, seconds_of(rows.column("start")))
        found[places] = rows.column(column).cast(pa.float64()).to_numpy(zero_copy_only=False)
        return found


def is_known(values: np.ndarray) -> bool:
    """Tell whether any of the values is known."""
    return bool(np.isfinite(values).any())


def seconds_of(column: pa.ChunkedArray) -> np.ndarray:
    """Return times as seconds since 1970."""
    return column.cast(pa.int64()).to_numpy() / 1e6
