"""The format of a run record, for people and programs that read one: every table and column, with unit and meaning.

It is made of the schemas that records are written by, so that it cannot differ from them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stallmark.collectors import OF_STATEMENTS, ON_REQUEST, REGISTRY
from stallmark.collectors.mssql.io_latency import Volumes
from stallmark.collectors.sampler import Collector
from stallmark.record.manifest import Manifest
from stallmark.record.schema import (
    EXTERNAL,
    MAINTENANCE,
    OWN_STATEMENTS,
    PROBE_TABLES,
    QUERIES_LEFT,
    RAW_IO,
    SAMPLED,
    STEPS,
    TABLES,
    meaning_of,
    unit_of,
)

_DRIVER = {
    "transactions": "Transactions that ended in a second, by type.",
    "users": "The work of the driver's executors in a second.",
    "client_cpu": "CPU of the client's other processes in a second.",
    "deferred_queue": "Transactions that no virtual user starts, of workloads that have some.",
    "errors": "Failed calls in a second, by type of transaction, class and code.",
    "transaction_io": "I/O of sampled transactions, where the server counts it by session.",
    "collector_cost": "The cost of sampling.",
    "queries": "Queries of decision support, a row each.",
}
_PROBE = {
    "probe_steps": "A probe of raw storage: a row for each pattern and number of I/Os under way.",
    "probe_histogram": "Its I/Os by how long they took.",
    "probe_windows": "Its rate over time.",
}
_OTHERS = {
    "maintenance": (MAINTENANCE, "Backups, checks and rebuilds beside the users, a row each."),
    "raw_io": (RAW_IO, "Reads and writes of raw loads beside the users, in a second, by load and cell."),
    "own_statements": (OWN_STATEMENTS, "Statements of SQL of a user's own that ended in a second."),
    "queries_left": (QUERIES_LEFT, "Queries at a rate that did not end: given up, or forgotten before they began."),
    "external_…": (EXTERNAL, "What `stallmark attach` has added, a table for each file."),
}
_ON_WINDOWS: Mapping[str, Sequence[type[Collector]]] = {"mssql": (Volumes,)}
"""Collectors that the registry has on Windows alone; the format is the same everywhere."""
_TYPES = {"double": "float64", "float": "float32"}

_INTRODUCTION = """\
# What is in a run record?

This page is printed by `stallmark schema --record --markdown`. A run leaves a folder of its own:

| file | content |
|---|---|
| `manifest.json` | everything that decides the figures, and no secret (its JSON schema: `stallmark schema --record`) |
| `<table>.parquet` | one table each |
| `<table>.arrows` | the same while the run lasts, or after it was killed: an Arrow stream; its last batch may be cut |
| `<table>.sums` | its checksums |
| `plans/`, `deadlocks/` | query plans and deadlock graphs, where the server gave some |

A column's unit and meaning stand in the metadata of its Parquet field, as `unit` and `meaning`. Records from before
these were written have none and are read all the same. Times are seconds since the run's start (`t`), or the whole
second they fall in (`second`); `started` in the manifest is that start in UTC. A missing value is null, never 0.

A closed record is read only as it was written. `tables` in the manifest has length and CRC-32 of each Parquet file, and
each of their pages has its own. `checksum` at the end of the manifest is the CRC-32 of the rest as JSON, its keys
sorted, without blanks, in ASCII. Where one does not match, the file is named and nothing of the record is shown. If you
change a manifest on purpose, remove its `checksum`. A stream's `.sums` has 20 bytes for its schema and for each batch:
where it ends, the rows so far, and the CRC-32 of all before it. Records from before there were checksums are read
unchecked. Links in a record are not followed.

Counters are stored as the server counts them. Take differences between samples of one `epoch` only.

A histogram is two columns of lists. The sums of `…_gaps` are the numbers of the buckets in use, `…_counts` their
counts. Up to 2047 a bucket's number is its value in µs. Above, with `n = number - 2048`, it is
`(1024 + n % 1024) << (1 + n // 1024)`, three significant digits. `stallmark export RUN --csv DIR` writes them out, one
row for each bucket.

Where `service_counts` is null, `service_gaps` has a number for each transaction. Take the latencies of the row from the
shortest to the longest, and as many service times. The number is by how many buckets the service time lies below the
latency of its rank. `stallmark sql` and `stallmark export` give both histograms in full.

## In SQL

```sh
stallmark sql stallmark-runs/*-buffer-pool "select run, transaction, sum(committed) as committed, \\
  sum(latency_us) / sum(committed + rolled_back) / 1000 as mean_ms from transactions join steps using (run) \\
  where second >= measure_s and second < end_s group by all order by mean_ms desc"
stallmark sql stallmark-runs/*-buffer-pool "select run, wait_class, event, \\
  sum(samples / polls) / count(distinct second) as users from waits group by all order by users desc limit 10"
stallmark sql stallmark-runs/*-buffer-pool --csv "select run, entity, 10 * floor(t / 10) as from_s, \\
  sum(n) / sum(s) as reads_per_s, sum(ms) / sum(n) as read_ms from (select run, entity, t, t - lag(t) over w as s, \\
  reads - lag(reads) over w as n, read_ms - lag(read_ms) over w as ms from device \\
  window w as (partition by run, entity, epoch order by t)) group by all order by all"
```

`stallmark sql` opens the tables below to SELECTs in DuckDB's dialect, of several runs at once. Before its own columns,
each has the name of the run in a column `run`. A column that a record of another version lacks is null. A division by
zero is null. Quote names that are words of SQL: `"table"`, `"order"`. One SELECT is answered; nothing else is executed,
and no other file is read. At most 1,000 rows are shown, `--csv` and `--json` write all."""


@dataclass(frozen=True)
class RecordTable:
    """A table of a record. `engine` is the dialect of the servers that have it; empty if all do."""

    name: str
    engine: str
    meaning: str
    columns: pa.Schema

    def facts(self) -> dict[str, Any]:
        return {
            "table": self.name,
            "engine": self.engine,
            "meaning": self.meaning,
            "columns": [
                {"name": column.name, "type": type_of(column), "unit": unit_of(column), "meaning": meaning_of(column)}
                for column in self.columns
            ],
        }


STEPS_IN_SQL = RecordTable(
    "steps", "", "The steps of the runs, a row each: a table of `stallmark sql` alone, made from the manifests.", STEPS
)


def type_of(field: pa.Field) -> str:
    if pa.types.is_list(field.type):
        return f"list of {field.type.value_type}"
    return _TYPES.get(str(field.type), str(field.type))


def tables() -> Iterator[RecordTable]:
    """Yield every table that a record may have: of the driver, of collectors by engine, and of probes."""
    for name, meaning in _DRIVER.items():
        yield RecordTable(name, "", meaning, TABLES[name])
    for name, (schema, meaning) in _OTHERS.items():
        yield RecordTable(name, "", meaning, schema)
    for engine, kinds in REGISTRY.items():
        requested = [kind for kinds_of_engine in ON_REQUEST.get(engine, {}).values() for kind in kinds_of_engine]
        own: Sequence[type[Collector]] = [OF_STATEMENTS[engine]] if engine in OF_STATEMENTS else []
        for kind in {kind.name: kind for kind in (*kinds, *requested, *own, *_ON_WINDOWS.get(engine, ()))}.values():
            yield RecordTable(kind.name, engine, kind.help, pa.schema([*SAMPLED, *kind.columns]))
    for name, meaning in _PROBE.items():
        yield RecordTable(name, "", meaning, PROBE_TABLES[name])


def in_json() -> dict[str, Any]:
    """Return the tables, and the JSON schema of the manifest."""
    return {"tables": [table.facts() for table in tables()], "manifest": Manifest.model_json_schema()}


def markdown() -> str:
    """Return the page that documents the format."""
    parts = [_INTRODUCTION]
    for table in (STEPS_IN_SQL, *tables()):
        engine = {"postgresql": " (PostgreSQL)", "mssql": " (SQL Server)"}.get(table.engine, "")
        rows = ["| column | type | unit | meaning |", "|---|---|---|---|"]
        for column in table.columns:
            rows.append(f"| `{column.name}` | {type_of(column)} | {unit_of(column)} | {meaning_of(column)} |")
        parts += [f"## {table.name}{engine}", table.meaning, "\n".join(rows)]
    return "\n\n".join(parts) + "\n"
