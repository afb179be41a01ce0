"""The way of the server's I/O counters, while a run goes on, to the search that judges by them."""

from collections.abc import Sequence

from stallmark.collectors.base import Row, Sink
from stallmark.driver.searched_load import IOSample, SearchedLoad


def io_sink(store: Sink, load: SearchedLoad) -> Sink:
    """Return a sink that stores rows and counts the reads of data files among them, of all the server's processes."""

    def sink(table: str, rows: Sequence[Row]) -> None:
        store(table, rows)
        if table == "server_io" and (sample := _of_data_files(rows)):
            load.count_io(sample)

    return sink


def _of_data_files(rows: Sequence[Row]) -> IOSample | None:
    data = [row for row in rows if row["kind"] == "data"]
    if not data:
        return None

    def total(name: str) -> float:
        return float(sum(row.get(name) or 0 for row in data))

    timed = any(row["read_stall_ms"] is not None for row in data)
    return IOSample(data[0]["t"], total("reads"), total("read_stall_ms") if timed else None)
