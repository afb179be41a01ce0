"""The format of records, of runs and of profiles, for people and programs that read one: every table and column, with
unit and meaning.

It is made of the schemas that records are written by, so that it cannot differ from them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stallmark import capabilities
from stallmark.collectors import OF_STATEMENTS, ON_REQUEST, REGISTRY
from stallmark.collectors.mssql.io_latency import Volumes
from stallmark.collectors.sampler import Collector
from stallmark.record import profile
from stallmark.record.manifest import Manifest
from stallmark.record.profile_tables import RAW_TABLES, stores_changes
from stallmark.record.schema import (
    EXTERNAL,
    MAINTENANCE,
    OWN_STATEMENTS,
    QUERIES_LEFT,
    RAW_IO,
    SAMPLED,
    STEPS,
    TABLES,
    added_tables,
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
_OTHERS = {
    "maintenance": (MAINTENANCE, "Backups, checks and rebuilds beside the users, a row each."),
    "raw_io": (RAW_IO, "Reads and writes of raw loads beside the users, in a second, by load and cell."),
    "own_statements": (OWN_STATEMENTS, "Statements of SQL of a user's own that ended in a second."),
    "queries_left": (QUERIES_LEFT, "Queries at a rate that did not end: given up, or forgotten before they began."),
    "external_…": (EXTERNAL, "What `stallmark attach` has added, a table for each file."),
}
_COLLECTED = {
    "samples": "The samples of a server, a row each.",
    "file_counters": "Reads and writes of files so far; of PostgreSQL, of each class of file.",
    "server_counters": "What the server as a whole counted so far, or has now, a row for each counter.",
    "wait_counters": "Waits that ended so far, by type, of a server that keeps totals of them (SQL Server).",
    "sessions_seen": "Sessions at work, by what they waited for at the moment of the sample (PostgreSQL). All rows are "
    "stored: a missing row means no session.",
}
_IMPORTED = {
    "file_io": "I/O of a class of file in an interval. A missing row means that nothing was recorded.",
    "server": "Work and memory of the server as a whole in an interval. A missing row means that nothing was recorded.",
}
_CHANGES = "A row is stored only if it differs from the one before in its session: a missing row means no change."
_ON_WINDOWS: Mapping[str, Sequence[type[Collector]]] = {"mssql": (Volumes,)}
"""Collectors that the registry has on Windows alone; the format is the same everywhere."""
_TYPES = {"double": "float64", "float": "float32"}

_INTRODUCTION = """\
# What is in a record?

This page is printed by `stallmark schema --record --markdown`. A run leaves a folder of its own, and so does a
[profile](#profiles):

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
and no other file is read. At most 1,000 rows are shown, `--csv` and `--json` write all.

[Profiles](#profiles) have tables of their own, and are opened in the same way."""
_PROFILES = """\
## Profiles

A profile has a folder, too: `profile.json` in place of `manifest.json`, and the tables below. `stallmark sql` and
`stallmark export` open it as they open runs, also while it is collected. In `run` is the name of its folder. Runs and
profiles may be named together: no table of a profile has the name of one of a run, and `steps` has rows of runs alone.

One that was collected from a server holds its counters as the server counted them. Each table has a part for each
session of collecting, `<table>-001.parquet` and so on; SQL and CSV have them as one table. What exists no longer has a
last row without values, of the epoch `gone`.

Take differences between neighbouring rows of one `epoch`. A difference across two sessions, or across a gap, counts
what happened there; the report leaves these out (`sessions` and `gaps` in `profile.json`). Where a missing row means no
change, a sum of differences needs no other rows; it is null if there was no change at all. The value at each sample is
that of the last row up to it:

```sh
stallmark sql profile-shop "select date_trunc('hour', to_timestamp(clock)) as hour, file_class, \\
  sum(n) as reads, sum(bytes) / sum(n) / 1024 as kib, sum(ms) / sum(n) as read_ms from (select run, sample, \\
  file_class, reads - lag(reads) over w as n, read_bytes - lag(read_bytes) over w as bytes, \\
  read_stall_ms - lag(read_stall_ms) over w as ms from file_counters \\
  window w as (partition by run, entity, epoch order by sample)) join samples using (run, sample) \\
  group by all order by all"
stallmark sql profile-shop "select max(value) as connections, arg_max(to_timestamp(clock), value) as at, \\
  count(*) as samples from samples asof join (from server_counters where counter = 'connections') as stored \\
  on samples.run = stored.run and samples.sample >= stored.sample"
stallmark export profile-shop --csv profile-shop-csv
```

One that was imported holds intervals of what was recorded: `file_io` and `server`. A rate is the count divided by the
time from `start` to `"end"`. Times are UTC.

```sh
stallmark sql profile-files "select date_trunc('hour', start) as hour, file_class, sum(reads) as reads, \\
  sum(reads) / sum(epoch(\\"end\\" - start)) as reads_per_s from file_io group by all order by all"
```"""


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
    """Yield every table that a record may have: of the driver, of collectors by engine, and of capabilities."""
    for name, meaning in _DRIVER.items():
        yield RecordTable(name, "", meaning, TABLES[name])
    for name, (schema, meaning) in _OTHERS.items():
        yield RecordTable(name, "", meaning, schema)
    for engine, kinds in REGISTRY.items():
        requested = [kind for kinds_of_engine in ON_REQUEST.get(engine, {}).values() for kind in kinds_of_engine]
        own: Sequence[type[Collector]] = [OF_STATEMENTS[engine]] if engine in OF_STATEMENTS else []
        for kind in {kind.name: kind for kind in (*kinds, *requested, *own, *_ON_WINDOWS.get(engine, ()))}.values():
            yield RecordTable(kind.name, engine, kind.help, pa.schema([*SAMPLED, *kind.columns]))
    for name, table in added_tables().items():
        yield RecordTable(name, "", table.meaning, table.columns)


def profile_tables() -> Iterator[RecordTable]:
    """Yield every table that a profile may have, collected or imported."""
    for name, meaning in _COLLECTED.items():
        meaning = f"{meaning} {_CHANGES}" if stores_changes(name) else meaning
        yield RecordTable(name, "", meaning, RAW_TABLES[name])
    for name, meaning in _IMPORTED.items():
        yield RecordTable(name, "", meaning, profile.TABLES[name])


def in_json() -> dict[str, Any]:
    """Return the tables that records hold, and the JSON schemas of the manifests."""
    return {
        "tables": [table.facts() for table in tables()],
        "manifest": Manifest.model_json_schema(),
        "capability_manifests": {
            name: model.model_json_schema()
            for name in capabilities.NAMES
            if (model := capabilities.part(name, "manifest"))
        },
        "profile_tables": [table.facts() for table in profile_tables()],
        "profile": profile.ProfileManifest.model_json_schema(),
    }


def markdown() -> str:
    """Return the page that documents the format."""
    of_runs = (part for table in (STEPS_IN_SQL, *tables()) for part in _section(table, "##"))
    of_profiles = (part for table in profile_tables() for part in _section(table, "###"))
    return "\n\n".join([_INTRODUCTION, *of_runs, _PROFILES, *of_profiles]) + "\n"


def _section(table: RecordTable, heading: str) -> Iterator[str]:
    engine = {"postgresql": " (PostgreSQL)", "mssql": " (SQL Server)"}.get(table.engine, "")
    rows = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    for column in table.columns:
        rows.append(f"| `{column.name}` | {type_of(column)} | {unit_of(column)} | {meaning_of(column)} |")
    yield f"{heading} {table.name}{engine}"
    yield table.meaning
    yield "\n".join(rows)
