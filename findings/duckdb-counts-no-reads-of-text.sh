#!/usr/bin/env bash
# DuckDB counts no byte of what it reads of columns of text: io.total_bytes_read of a query's profile, "the total amount
# of bytes read from storage", is right to the block for numbers, to the kilobyte for Parquet, and 0 for 9 MB of short
# texts, for 84 MB of long ones and for a look-up by key. A read is counted if whoever asks the buffers for the block
# hands its query on to them, and what scans strings or fetches single rows does not. So a query over both kinds of
# columns shows the share of the numbers alone, text looks as if it came from memory, a table of DuckDB's seems to spare
# the reads that the same data need in Parquet, and the 0 of a query that waits for its storage rules the storage out:
# total_read_operations and total_read_time are 0 as well, and EXPLAIN ANALYZE leaves out its line "Data Read". What is
# counted changes with the version: 1.4, which has long-term support, counts next to nothing, and 1.5 neither doubles nor
# Parquet, so that an update multiplies the reads of a query that does the same.
#
# Each query is the first of a connection, when DuckDB's buffers are empty. What it read is from the system, as rchar.
# Run with duckdb 1.4.5, 1.5.6 and 2.0.1 of PyPI, on Debian 12, 2026-11-30 (lines of 1.4.5 and 1.5.6 that are alike
# are one here):
#   DuckDB 1.4.5, each query: about as many MB read as below, long texts 129, total_bytes_read 0.0 MB
#   DuckDB 1.5.6, numbers: 4.5 MB read, total_bytes_read 4.5 MB
#   DuckDB 1.5.6, numbers and short texts: 13.4 MB read, total_bytes_read 4.2 MB
#   DuckDB 1.5.6, each other: about as many MB read as below, long texts 129, total_bytes_read 0.0 MB
#   DuckDB 2.0.1, numbers: 4.5 MB read, total_bytes_read 4.5 MB
#   DuckDB 2.0.1, doubles: 4.2 MB read, total_bytes_read 4.2 MB
#   DuckDB 2.0.1, texts of Parquet: 16.2 MB read, total_bytes_read 16.2 MB
#   DuckDB 2.0.1, short texts: 9.2 MB read, total_bytes_read 0.0 MB
#   DuckDB 2.0.1, long texts: 84.4 MB read, total_bytes_read 0.0 MB
#   DuckDB 2.0.1, a look-up by key: 1.3 MB read, total_bytes_read 0.0 MB
#   DuckDB 2.0.1, numbers and short texts: 13.6 MB read, total_bytes_read 4.5 MB
# Source: duckdb_available_metrics() of DuckDB 2.0 (the words above, and nothing of text); StringInitScan of
# dict_fsst.cpp and FixedSizeFetchRow of fixed_size_uncompressed.cpp, beside the scan of bitpacking.cpp, which alone
# calls Pin with the query's context. Needs to read /proc/self/io.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/reads.py" <<'PYTHON'
import json
import sys
from pathlib import Path

import duckdb

folder, version = Path(sys.argv[1]), duckdb.__version__
file, profile, parquet = (str(folder / name) for name in (version, "profile.json", "t.parquet"))
connection = duckdb.connect(file)
connection.execute(
    "CREATE TABLE t AS SELECT i AS id, hash(i) AS number, hash(i) / 1e9 AS double, md5(i::VARCHAR) AS text"
    " FROM range(500000) r(i);"
    "CREATE UNIQUE INDEX by_id ON t (id);"
    "CREATE TABLE documents AS SELECT repeat(md5(i::VARCHAR), 200) AS text FROM range(20000) r(i);"
    f"COPY t TO '{parquet}'; CHECKPOINT"
)
connection.close()


def count_bytes():
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def connect():
    """Open the database with empty buffers, and read its catalog."""
    connection = duckdb.connect(file)
    connection.execute("SELECT count(*) FROM duckdb_columns()").fetchall()
    return connection


def count_reads(name, query):
    """The bytes of a query that the system read, those of its profile, and whether three other figures have reads."""
    connection = connect()
    connection.execute(f"PRAGMA enable_profiling = 'json'; SET profiling_output = '{profile}'")
    before = count_bytes()
    connection.execute(query).fetchall()
    read = count_bytes() - before
    connection.close()
    metrics = json.loads(Path(profile).read_text())
    metrics = metrics.get("io", metrics)
    counted = metrics["total_bytes_read"]
    print(f"DuckDB {version}, {name}: {read / 1e6:.1f} MB read, total_bytes_read {counted / 1e6:.1f} MB")
    with connect() as connection:
        [[_, plan]] = connection.execute(f"EXPLAIN ANALYZE {query}").fetchall()
    others = [metrics.get("total_read_operations", 0) > 0, metrics.get("total_read_time", 0) > 0, "Data Read" in plan]
    return read, counted, others


queries = {
    "numbers": "SELECT bit_xor(hash(number)) FROM t",
    "doubles": "SELECT bit_xor(hash(double)) FROM t",
    "texts of Parquet": f"SELECT bit_xor(hash(text)) FROM '{parquet}'",
    "short texts": "SELECT bit_xor(hash(text)) FROM t",
    "long texts": "SELECT bit_xor(hash(text)) FROM documents",
    "a look-up by key": "SELECT number FROM t WHERE id = 123456",
    "numbers and short texts": "SELECT bit_xor(hash(number, text)) FROM t",
}
reads = {name: count_reads(name, query) for name, query in queries.items()}
counted_queries = {"1.4": 0, "1.5": 1, "2.0": 3}[version[:3]]  # the first of those above
read, counted, _ = reads.pop("numbers and short texts")
as_seen = counted < read / 2 and (counted > 0) == (counted_queries > 0)
for position, (name, (read, counted, others)) in enumerate(reads.items()):
    if position < counted_queries:
        as_seen &= 0 <= read - counted < (1000 if "Parquet" in name else 2**18)  # which is the size of a block
        as_seen &= all(others) == (version[0] == "2")  # 1.5 has none of them
    else:
        as_seen &= read > 1e6 and counted < 1e4 and not any(others)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 -m venv "$folder/venv"
for version in 1.4.5 1.5.6 2.0.1; do
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==$version
    "$folder/venv/bin/python" "$folder/reads.py" "$folder"
done
