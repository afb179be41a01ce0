#!/usr/bin/env bash
# DuckDB reads a date of a CSV without a word as whatever order of day, month and year its first rows allow, and the
# order is not the same from column to column: 12 March 2026 is 3 December with four digits of the year, 26 December
# 2003 with two, as iostat and sar write it in the C locale, and 12 March with AM or PM. So of a month's files, one a
# day, up to twelve are in the wrong months, and those from the 13th on hold text. Nothing warns: give timestampformat
# or all_varchar wherever the year does not come first.
#
# Run with DuckDB 2.0.0, on Debian 12, 2026-11-29 (all of them mean the 12th and 13th of March 2026):
#   03/12/2026 10:00:00     TIMESTAMP  2026-12-03 10:00:00
#   03/13/2026 10:00:00     VARCHAR    03/13/2026 10:00:00
#   03/12/26 10:00:00       TIMESTAMP  2003-12-26 10:00:00
#   03/12/2026 10:00:00 AM  TIMESTAMP  2026-03-12 10:00:00
#   03/12/2026              DATE       2026-12-03
#   03/13/2026              DATE       2026-03-13
# Source: documentation of DuckDB, "CSV auto detection" (the formats that are tried, %y-%m-%d first).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import duckdb

EXPECTED = {
    "03/12/2026 10:00:00": ("TIMESTAMP", "2026-12-03 10:00:00"),
    "03/13/2026 10:00:00": ("VARCHAR", "03/13/2026 10:00:00"),
    "03/12/26 10:00:00": ("TIMESTAMP", "2003-12-26 10:00:00"),
    "03/12/2026 10:00:00 AM": ("TIMESTAMP", "2026-03-12 10:00:00"),
    "03/12/2026": ("DATE", "2026-12-03"),
    "03/13/2026": ("DATE", "2026-03-13"),
}
seen = {}
for stamp in EXPECTED:
    with open("times.csv", "w") as file:
        file.write(f"time,reads\n{stamp},1\n")
    [(kind, text)] = duckdb.sql("SELECT typeof(time), time::VARCHAR FROM read_csv('times.csv')").fetchall()
    seen[stamp] = kind, text
    print(f"{stamp:23} {kind:10} {text}")
sys.exit(seen != EXPECTED)
PYTHON
