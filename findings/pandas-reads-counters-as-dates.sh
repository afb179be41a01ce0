#!/usr/bin/env bash
# pandas reads a counter of milliseconds as dates once it is past 31,536,000, if its name ends in _time, and then 1.5 s
# of reads are 25 minutes. read_json takes such columns for dates when all their numbers are more than a year has
# seconds, and counts them in seconds, or in ms, µs or ns if they are too large for that. read_time and busy_time of
# psutil, total_exec_time and shared_blk_read_time of PostgreSQL, total_elapsed_time of SQL Server: all are such names,
# and a counter is there after 8.8 hours of reads. So a recording of a new server is right, and the next one is not; a
# latency, time / I/Os, is 1,000 times too long, from 9,223 million on right by chance, and later 1,000 times too short;
# and sums, correlations and all else that takes the numeric columns is without the times. Nothing warns.
# convert_dates=False reads numbers, as read_csv and a DataFrame of dicts do.
#
# Two samples of one disk, with 500 reads and 1,500 ms between them, as JSON lines with the names of psutil.
# Run with pandas 3.1.1, on Debian 12, 2026-11-30:
#           31,000,000 ms of reads: 31000000, int64, 3.0 ms for each read, numbers: read_count read_time
#           32,000,000 ms of reads: 1971-01-06 08:53:20, datetime64[us], 3000.0 ms for each read, numbers: read_count
#        9,000,000,000 ms of reads: 2255-03-14 16:00:00, datetime64[us], 3000.0 ms for each read, numbers: read_count
#       11,000,000,000 ms of reads: 1970-05-08 07:33:20, datetime64[us], 3.0 ms for each read, numbers: read_count
#   11,000,000,000,000 ms of reads: 1970-05-08 07:33:20, datetime64[us], 0.003 ms for each read, numbers: read_count
# Source: documentation of pandas, read_json (convert_dates, keep_default_dates, date_unit); that of PostgreSQL 18,
# pg_stat_statements and pg_stat_database, and of psutil, disk_io_counters, for the names.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile pandas==3.1.1
"$folder/venv/bin/python" - <<'PYTHON'
import io
import json
import sys

import pandas

EXPECTED = {
    31_000_000: ("int64", 3),
    32_000_000: ("datetime64[us]", 3000),
    9_000_000_000: ("datetime64[us]", 3000),
    11_000_000_000: ("datetime64[us]", 3),
    11_000_000_000_000: ("datetime64[us]", 0.003),
}
as_seen = True
for read_time, expected in EXPECTED.items():
    samples = [
        {"read_count": 1_000_000, "read_time": read_time},
        {"read_count": 1_000_500, "read_time": read_time + 1500},
    ]
    read = pandas.read_json(io.StringIO("\n".join(map(json.dumps, samples))), lines=True)
    latency = (read.read_time.diff() / read.read_count.diff())[1]
    milliseconds = latency if read.read_time.dtype == "int64" else latency / pandas.Timedelta(milliseconds=1)
    seen = str(read.read_time.dtype), round(milliseconds, 6)
    as_seen &= seen == expected
    print(f"{read_time:18,} ms of reads: {read.read_time[0]}, {seen[0]}, {seen[1]} ms for each read,", end=" ")
    print("numbers:", *read.select_dtypes("number"))
sys.exit(0 if as_seen else "This has changed.")
PYTHON
