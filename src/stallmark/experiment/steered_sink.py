"""The way of the server's I/O counters, while a run goes on, to the load that is steered or judged by them."""

from collections.abc import Sequence

from stallmark.collectors.base import Row, Sink
from stallmark.driver.steered_load import IOCounting, IOSample


def steered_sink(store: Sink, load: IOCounting) -> Sink:
    """Return a sink that stores rows and counts I/Os of data files among them, of all the server's processes: reads,
    writes and extensions, as reports do."""

    def sink(table: str, rows: Sequence[Row]) -> None:
        store(table, rows)
        if table == "server_io" and (sample := _of_data_files(rows)):
            load.count_io(sample)

    return sink


def _of_data_files(rows: Sequence[Row]) -> IOSample | None:
    data = [row for row in rows if row["kind"] == "data"]
    if not data:
        return None

    def total(*names: str) -> float:
        return float(sum(row.get(name) or 0 for row in data for name in names))

    timed = any(row["read_stall_ms"] is not None for row in data)
    return IOSample(data[0]["t"], total("reads"), total("writes", "extends"), total("read_stall_ms") if timed else None)
