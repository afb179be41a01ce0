#!/usr/bin/env bash
# DuckDB's rows scanned are one of three figures, by version and format, and mostly not what was scanned. In 1.4, which
# has long-term support, it is a guess of all rows, times the threads: 4,000,000 for a million rows by four threads, as
# many for a look-up that reads one row group, and 10,000 for ten files of Parquet with 901,000 rows, of which the first
# is small, as its rows stand for those of each. 1.5 counts its tables' rows and goes on to guess for Parquet. 2.0
# counts for both: of a table the rows before the filter, of Parquet those that the filter leaves, so that the same scan
# of the same million rows is 1,000,000 or 9,972. Each is operator_rows_scanned or rows_scanned of the profile, and the
# sum over a query cumulative_rows_scanned or total_rows_scanned, "number of rows scanned". So more threads look like
# worse plans, Parquet seems to find each row without a search where the table is read from end to end, a filter seems
# pushed down to storage that reads all the same, and rows per query or second change a hundredfold with an update. From
# 2.0 on the row groups scanned, beside them, are right for both.
#
# The rows of a filter that 1 % meet, all over the table, by one thread and by four, and those of one key, by four.
# Run with duckdb 1.4.5, 1.5.6 and 2.0.1 of PyPI, on Debian 12, 2026-11-30:
#   DuckDB 1.4.5, table, 9,972 found of 1,000,000: 1,000,000 scanned, by four threads 4,000,000; of a key 4,000,000
#   DuckDB 1.4.5, Parquet, 9,972 found of 1,000,000: 1,000,000 scanned, by four threads 4,000,000; of a key 4,000,000
#   DuckDB 1.4.5, ten files, 8,974 found of 901,000: 10,000 scanned, by four threads 40,000; of a key 40,000
#   DuckDB 1.5.6, table, 9,972 found of 1,000,000: 1,000,000 scanned, by four threads 1,000,000; of a key 122,880
#   DuckDB 1.5.6, Parquet, 9,972 found of 1,000,000: 1,000,000 scanned, by four threads 4,000,000; of a key 4,000,000
#   DuckDB 1.5.6, ten files, 8,974 found of 901,000: 440,880 scanned, by four threads 1,763,520; of a key 1,763,520
#   DuckDB 2.0.1, table, 9,972 found of 1,000,000: 1,000,000 scanned, by four threads 1,000,000; of a key 122,880
#   DuckDB 2.0.1, Parquet, 9,972 found of 1,000,000: 9,972 scanned, by four threads 9,972; of a key 1
#   DuckDB 2.0.1, ten files, 8,974 found of 901,000: 8,974 scanned, by four threads 8,974; of a key 1
# Source: query_profiler.cpp of DuckDB 1.5.5 (each thread adds the estimated cardinality of the scan, if there is no
# exact count), row_group.cpp and multi_file_function.hpp of August 2026 (rows_scanned; pull request 23635 would have
# Parquet count before the filter); its documentation, "Metrics" (rows scanned by the operator, and by the query).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/scans.py" <<'PYTHON'
import json
import sys
from pathlib import Path

import duckdb

folder, version = Path(sys.argv[1]) / duckdb.__version__, duckdb.__version__
folder.mkdir()
connection = duckdb.connect(str(folder / "database"))
connection.execute("CREATE TABLE t AS SELECT i AS id, hash(i) % 100 AS number FROM range(1000000) r(i); CHECKPOINT")
connection.execute(f"COPY t TO '{folder}/t.parquet' (ROW_GROUP_SIZE 100000)")
for number in range(10):
    rows = f"FROM t WHERE id BETWEEN {number * 100000} AND {number * 100000 + (99999 if number else 999)}"
    connection.execute(f"COPY ({rows}) TO '{folder}/{number}.parquet'")


def find_values(node, names):
    """The values of these names in a profile, at any depth."""
    if isinstance(node, list):
        return [value for child in node for value in find_values(child, names)]
    if not isinstance(node, dict):
        return []
    return [node[name] for name in names if name in node] + find_values(list(node.values()), names)


def count_scanned(source, threads, condition):
    """Return the rows that a query finds, the rows scanned of its profile, and its row groups scanned, if they are."""
    connection.execute(f"SET threads = {threads}; PRAGMA enable_profiling = 'json'")
    connection.execute(f"SET profiling_output = '{folder}/profile.json'")
    [(found,)] = connection.execute(f"SELECT count(id) FROM {source} WHERE {condition}").fetchall()
    connection.execute("PRAGMA disable_profiling")
    profile = json.loads((folder / "profile.json").read_text())
    [scanned] = find_values(profile, ("operator_rows_scanned", "rows_scanned"))[-1:]
    [total] = find_values(profile, ("cumulative_rows_scanned", "total_rows_scanned"))[:1]
    return found, scanned, total, find_values(profile, ("row_groups_scanned",))


as_seen = True
for title, source, rows in (
    ("table", "t", 1_000_000),
    ("Parquet", f"'{folder}/t.parquet'", 1_000_000),
    ("ten files", f"'{folder}/[0-9].parquet'", 901_000),
):
    found, by_one, total, groups = count_scanned(source, 1, "number = 7")
    _, by_four, _, _ = count_scanned(source, 4, "number = 7")
    _, of_key, _, groups_of_key = count_scanned(source, 4, "id = 150077")
    print(f"DuckDB {version}, {title}, {found:,} found of {rows:,}: {by_one:,} scanned,", end=" ")
    print(f"by four threads {by_four:,}; of a key {of_key:,}")
    as_seen &= total == by_one and 0.008 * rows < found < 0.012 * rows
    if version >= "2":
        as_seen &= groups in ([9], [10]) and groups_of_key == [1]
    guessed = version < "1.5" or version < "2" and title != "table"
    if guessed:
        as_seen &= by_four == 4 * by_one == of_key and (by_one < 0.6 * rows if title == "ten files" else by_one == rows)
    elif title == "table":
        as_seen &= by_one == by_four == rows and of_key == 122_880
    else:
        as_seen &= by_one == by_four == found and of_key == 1
sys.exit(0 if as_seen else "This has changed.")
PYTHON
status=0
for version in 1.4.5 1.5.6 2.0.1; do
    python3 -m venv "$folder/venv-$version"
    "$folder/venv-$version/bin/pip" install --quiet --disable-pip-version-check "duckdb==$version"
    "$folder/venv-$version/bin/python" "$folder/scans.py" "$folder" || status=1
done
exit $status
