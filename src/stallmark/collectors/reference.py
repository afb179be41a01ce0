"""The page on the format of a run record, from the tables' own schemas: `python -m stallmark.collectors.reference`."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from stallmark.collectors import ON_REQUEST, REGISTRY
from stallmark.collectors.base import Collector
from stallmark.collectors.mssql.volumes import Volumes
from stallmark.record.manifest import FORMAT
from stallmark.record.schema import MAINTENANCE, PROBE_TABLES, SAMPLED, TABLES, unit_of

_INTRODUCTION = f"""\
# Which tables and columns has a run record?

Every run leaves a folder below `stallmark-runs/`. It holds `manifest.json` (format {FORMAT}) and one Parquet file for
each table. Nothing else is needed to make its report. This page is made from the same schemas that write the files.

- Each column's unit and meaning are in the Parquet file too, in the column's metadata.
- A name ends with its unit: `_us` microseconds, `_ms` milliseconds, `_s` seconds, `_bytes` bytes, `_kib` KiB.
- A column without a unit is a count, a name or a text. A missing value is null, never 0.
- Times (`t`, `second`) count from the start of the run. The manifest has that moment in UTC, as `started`.
- Collectors store a server's counters as they are: cumulative. Take differences, and start anew when `epoch` changes.
- `server_time` is the server's own clock.
- While a run lasts, each table is an Arrow stream (`.arrows`). A run that was killed keeps it.
- The manifest says in which seconds each step was measured: `steps`, from `measure_s` to `end_s`.

Read a table with pandas, Polars, DuckDB or pyarrow:

```python
import pandas

transactions = pandas.read_parquet("01-3-of-the-data/transactions.parquet")
print(transactions.groupby("second")["committed"].sum())
```

A histogram is two columns of lists. Add up `latency_gaps`: the sums are buckets, and `latency_counts` says how many
transactions each holds. Buckets 0 to 2047 are that many microseconds; from there on each doubling has 1024 buckets.
"""

_TYPES = {
    pa.string(): "text",
    pa.bool_(): "true or false",
    pa.float32(): "number",
    pa.float64(): "number",
    pa.list_(pa.int16()): "list of whole numbers",
    pa.list_(pa.int32()): "list of whole numbers",
}

_DRIVER = {
    "transactions": "Transactions per second and type, as the driver counted them.",
    "users": "Virtual users per second and executor process.",
    "deferred_queue": "What no virtual user starts, such as the market of the brokerage.",
    "errors": "Failed calls per second, by class and code.",
    "transaction_io": "The reads of sampled transactions, on PostgreSQL 18 and later.",
    "collector_cost": "The time and CPU that each sample cost.",
    "queries": "The queries of query runs, one row each.",
    "maintenance": "Maintenance beside the users, one row each time; where a variant asks for it.",
    "probe_steps": "The steps of a probe of raw storage.",
    "probe_histogram": "How many I/Os of a step took how long.",
    "probe_windows": "The rate of a step, window by window.",
}


def reference() -> str:
    """Return the page as Markdown."""
    return "\n".join([_INTRODUCTION, *_driver_tables(), *_collectors()])


def _driver_tables() -> Iterator[str]:
    yield "## The driver's tables\n"
    for name, schema in (TABLES | {"maintenance": MAINTENANCE}).items():
        yield from _table(name, _DRIVER[name], schema)
    yield "## Probes of raw storage\n"
    for name, schema in PROBE_TABLES.items():
        yield from _table(name, _DRIVER[name], schema)


def _collectors() -> Iterator[str]:
    yield (
        "## Collectors\n\nEvery collector's table begins with "
        + " and ".join(f"`{field.name}` ({_meaning(field)})" for field in SAMPLED)
        + ". Its counters have the server's own meaning, which the view named in brackets documents.\n"
    )
    shown = REGISTRY["postgresql"]
    of_mssql = [one for one in REGISTRY["mssql"] if one not in (*shown, Volumes)]
    on_request = [one for several in ON_REQUEST["mssql"].values() for one in several]
    groups: dict[str, Sequence[type[Collector]]] = {
        "PostgreSQL": shown,
        "SQL Server": [*of_mssql, Volumes],
        "SQL Server, on request (`observe`)": on_request,
    }
    for title, kinds in groups.items():
        yield f"### {title}\n"
        for kind in kinds:
            yield from _collector(kind)


def _collector(kind: type[Collector]) -> Iterator[str]:
    yield f"#### {kind.title} (`{kind.name}`, every {kind.interval_s:g} s)\n"
    yield f"{kind.help}\n"
    columns = (f"`{field.name}`{f' ({unit})' if (unit := unit_of(field)) else ''}" for field in kind.columns)
    yield f"Columns: {', '.join(columns)}.\n"


def _table(name: str, title: str, schema: pa.Schema) -> Iterator[str]:
    yield f"### `{name}`\n\n{title}\n\n| column | type | unit | meaning |\n|---|---|---|---|"
    for field in schema:
        kind = _TYPES.get(field.type, "whole number")
        unit = unit_of(field) or ""
        yield f"| `{field.name}` | {kind} | {unit} | {_meaning(field)} |"
    yield ""


def _meaning(field: pa.Field) -> str:
    return field.metadata[b"meaning"].decode()


if __name__ == "__main__":
    print(reference(), end="")
